package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// healthItem is an item of /v1/health.
type healthItem struct {
	ID, Status, Reason, Message string
	Affected                    int
	Cause                       *struct{ ID, Reason string }
}

// TestHealth: what is broken in the demo cluster on purpose, and a node and a pod that
// break while it is looked at, are told with their causes, and nothing else is bad.
func TestHealth(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime, "pods", "nodes", "deployments.apps", "replicasets.apps", "persistentvolumeclaims", "queues.messaging.example.com")
	breakNode(t, c)

	// An object alone tells no more than that it is on its way for its first minutes.
	want := map[string]string{ // by id: reasons, and the beginning of the cause
		"deployments.apps/shop/recommendations":          "bad ImagePullBackOff pods/shop/recommendations-",
		"deployments.apps/payments/reporting":            "bad Unschedulable pods/payments/reporting-",
		"deployments.apps/team-a/legacy-importer":        "bad CrashLoopBackOff pods/team-a/legacy-importer-",
		"queues.messaging.example.com/payments/webhooks": "bad Degraded",
		"nodes/-/broken":                                  "bad NotReady",
		"pods/default/hungry":                             "bad OOMKilled",
		"persistentvolumeclaims/team-a/scratch":           "progressing|bad Pending",
		"configmaps/payments/ledger-migration-lock":       "progressing|bad Terminating",
		"queues.messaging.example.com/team-a/experiments": "bad Provisioning",
	}
	harness.Eventually(t, time.Minute, "what is broken to be told", func() error {
		var got struct{ Items []healthItem }
		if err := i.Read("/v1/health?limit=1000", &got); err != nil {
			return err
		}
		told := map[string]healthItem{}
		for n, item := range got.Items {
			told[item.ID] = item
			if n > 0 && item.Status == "bad" && got.Items[n-1].Status != "bad" {
				return fmt.Errorf("%s is bad and after what is %s", item.ID, got.Items[n-1].Status)
			}
			if _, known := want[item.ID]; item.Status == "bad" && !known {
				return fmt.Errorf("%s is bad: %s: %s", item.ID, item.Reason, item.Message)
			}
		}
		for id, text := range want {
			if err := told[id].is(strings.Fields(text)); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		return nil
	})
	sameInFilters(t, i)
	childrenOf(t, i)
}

// is compares an item with statuses, a reason and the beginning of a cause.
func (item healthItem) is(want []string) error {
	cause := ""
	if item.Cause != nil {
		cause = item.Cause.ID
	}
	switch {
	case !slices.Contains(strings.Split(want[0], "|"), item.Status) || item.Reason != want[1]:
		return fmt.Errorf("it is %q by %q (%s), want %v", item.Status, item.Reason, item.Message, want)
	case len(want) > 2 && (!strings.HasPrefix(cause, want[2]) || !strings.Contains(item.Message, want[1]) || item.Affected == 0):
		return fmt.Errorf("it is caused by %q, affects %d and reads %q, want %v", cause, item.Affected, item.Message, want)
	case len(want) == 2 && cause != "":
		return fmt.Errorf("it is caused by %s", cause)
	}
	return nil
}

// sameInFilters: health(object) of a filter is the verdict on the object by itself.
func sameInFilters(t *testing.T, i *harness.Informerd) {
	t.Helper()
	var pods struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	if err := i.Read(`/v1/resources/pods/objects?fields=metadata.namespace,metadata.name&filter=health(object)=='bad'%26%26healthReason(object)=='OOMKilled'`, &pods); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 || pods.Items[0].Metadata.Name != "hungry" {
		t.Errorf("by a filter these have run out of memory: %+v", pods.Items)
	}
}

// childrenOf: one object is told with what it owns, the worst first.
func childrenOf(t *testing.T, i *harness.Informerd) {
	t.Helper()
	var one struct {
		Item     healthItem
		Children []healthItem
	}
	if err := i.Read("/v1/health/deployments.apps/shop/recommendations", &one); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, c := range one.Children {
		resource, _, _ := strings.Cut(c.ID, "/")
		kinds[resource+" "+c.Status]++
	}
	if one.Item.Status != "bad" || kinds["replicasets.apps bad"] != 1 || kinds["pods bad"] != 2 {
		t.Errorf("it is %+v and owns %v", one.Item, kinds)
	}
}

// breakNode makes a node that nobody looks after, which is not ready, and a pod on it
// that has run out of memory.
func breakNode(t *testing.T, c *harness.Cluster) {
	t.Helper()
	ctx := t.Context()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	node, err := c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Client.CoreV1().Nodes().Delete(context.Background(), "broken", metav1.DeleteOptions{})
	})
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "container runtime is down", LastTransitionTime: now, LastHeartbeatTime: now}}
	if _, err := c.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hungry"}, Spec: corev1.PodSpec{
		NodeName: "broken", Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/hungry:1"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, // to stay
	}}
	pods := c.Client.CoreV1().Pods(metav1.NamespaceDefault)
	if pod, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		grace := int64(0)
		_ = pods.Delete(context.Background(), "hungry", metav1.DeleteOptions{GracePeriodSeconds: &grace})
	})
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "registry.example.com/hungry:1", RestartCount: 3,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", StartedAt: now, FinishedAt: now}}}}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
