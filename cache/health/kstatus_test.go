package health

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// difference is one from kstatus, with the reason for it.
type difference struct {
	kinds  string // separated by spaces; "*" is any
	ours   Status
	theirs kstatus.Status
	// reasons of ours that it is about, separated by spaces; "" is any.
	reasons string
	why     string
}

// differences are all there may be. Each is met by TestKstatus, or it is not needed.
var differences = []difference{
	{"Pod", Bad, kstatus.CurrentStatus, "", "a pod that has failed, or of which a container just has, is nothing that all is well with; kstatus asks whether somebody has to wait"},
	{"Pod", Bad, kstatus.InProgressStatus, "", "an image that cannot be pulled, a container that has failed, or ten minutes without getting ready will not mend themselves"},
	{"Pod", Progressing, kstatus.CurrentStatus, "OOMKilled Error", "it runs again, and has failed a short while ago"},
	{"Pod", Good, kstatus.InProgressStatus, "Completed", "its containers have completed"},
	{"Deployment", Bad, kstatus.InProgressStatus, "", "pods cannot be made, or too few have been available for longer than a rollout may take"},
	{"Deployment", Bad, kstatus.CurrentStatus, "", "pods cannot be made"},
	{"Deployment", Good, kstatus.InProgressStatus, "", "none are wanted and there are none, or it has no deadline and is available: there is nothing to wait for"},
	{"ReplicaSet", Bad, kstatus.InProgressStatus, "", "pods cannot be made, or in ten minutes none got ready"},
	{"StatefulSet", Bad, kstatus.InProgressStatus, "NotReady", "in ten minutes none got ready"},
	{"StatefulSet", Bad, kstatus.CurrentStatus, "NotReady", "who updates by hand wants them ready all the same"},
	{"StatefulSet", Progressing, kstatus.CurrentStatus, "NotReady Progressing", "who updates by hand wants them ready all the same"},
	{"StatefulSet", Good, kstatus.InProgressStatus, "", "with a partition, or when all are of the latest version, currentReplicas says nothing more"},
	{"DaemonSet", Bad, kstatus.InProgressStatus, "NotReady", "in ten minutes none got ready"},
	{"DaemonSet", Good, kstatus.InProgressStatus, "", "who updates by hand does not wait for it"},
	{"PersistentVolumeClaim", Bad, kstatus.InProgressStatus, "Pending ClaimLost", "its volume is gone, or none was found in ten minutes"},
	{"PersistentVolumeClaim", Unknown, kstatus.InProgressStatus, "Pending", "nobody has begun to make a volume: it may wait for a pod, on purpose"},
	{"PersistentVolume", Bad, kstatus.CurrentStatus, "", "it has failed"},
	{"PersistentVolume", Progressing, kstatus.CurrentStatus, "Pending", "it is not available yet"},
	{"Job", Bad, kstatus.CurrentStatus, "", "it is being ended because it has failed"},
	{"Job", Bad, kstatus.InProgressStatus, "", "nobody has started it in ten minutes"},
	{"Job", Good, kstatus.InProgressStatus, "Suspended", "it is suspended on purpose"},
	{"Node", Bad, kstatus.InProgressStatus, "NotReady", "pods on it are lost"},
	{"Node", Bad, kstatus.CurrentStatus, "", "it is short of memory, disk space, process ids or a network"},
	{"Node", Unknown, kstatus.CurrentStatus, "Unknown", "its kubelet has said nothing"},
	{"HorizontalPodAutoscaler", Bad, kstatus.CurrentStatus, "", "it cannot scale"},
	{"PodDisruptionBudget", Progressing, kstatus.CurrentStatus, "InsufficientPods", "fewer pods are healthy than have to be"},
	{"PodDisruptionBudget", Bad, kstatus.CurrentStatus, "SyncFailed", "it cannot be worked out"},
	{"Service", Progressing, kstatus.CurrentStatus, "NoAddress", "its load balancer has no address; kstatus looks at the ClusterIP"},
	{"Service", Bad, kstatus.CurrentStatus, "NoAddress", "its load balancer has had no address for ten minutes"},
	{"Ingress", Progressing, kstatus.CurrentStatus, "NoAddress", "it has no address yet"},
	{"Ingress", Unknown, kstatus.CurrentStatus, "NoAddress", "it has had no address for ten minutes, which some controllers never give"},
	{"CustomResourceDefinition", Bad, kstatus.InProgressStatus, "Installing", "nobody has served it in ten minutes"},
	{"APIService", Bad, kstatus.CurrentStatus, "", "its API server does not answer"},
	{"APIService", Progressing, kstatus.CurrentStatus, "", "nobody has tried yet"},
	{"APIService", Unknown, kstatus.CurrentStatus, "", "nobody has tried"},
	{"ResourceQuota", Bad, kstatus.CurrentStatus, "QuotaExhausted", "what needs more of it is refused"},
	{"CertificateSigningRequest", Bad, kstatus.CurrentStatus, "", "it was denied, could not be signed, or waits for ten minutes"},
	{"CertificateSigningRequest", Progressing, kstatus.CurrentStatus, "", "it waits to be approved or signed"},
	{"FlowSchema", Bad, kstatus.CurrentStatus, "", "its priority level is not there"},
	{"Widget Queue Certificate", Bad, kstatus.InProgressStatus, "", "its reason speaks of a failure, or it has not been ready for ten minutes"},
	{"Widget Queue Certificate", Unknown, kstatus.InProgressStatus, "", "nobody has known for ten minutes"},
	{"Widget Queue Certificate", Bad, kstatus.CurrentStatus, "", "conditions other than Ready, phases and expiry count, too"},
	{"Widget Queue Certificate", Progressing, kstatus.CurrentStatus, "", "conditions other than Ready, and phases count, too"},
	{"Widget Queue Certificate", Unknown, kstatus.CurrentStatus, "", "conditions other than Ready, and phases count, too"},
}

func (d *difference) covers(kind string, h Health, theirs kstatus.Status) bool {
	return h.Status == d.ours && theirs == d.theirs &&
		(d.kinds == "*" || slices.Contains(strings.Fields(d.kinds), kind)) &&
		(d.reasons == "" || slices.Contains(strings.Fields(d.reasons), h.Reason))
}

// same reports whether both say the same.
func same(h Health, theirs kstatus.Status) bool {
	switch theirs {
	case kstatus.CurrentStatus:
		return h.Status == Good
	case kstatus.InProgressStatus:
		return h.Status == Progressing
	case kstatus.FailedStatus:
		return h.Status == Bad
	case kstatus.TerminatingStatus:
		return h.Reason == "Terminating"
	}
	return false
}

// TestKstatus compares verdicts with those of kstatus, on objects of a real cluster and
// on random ones.
func TestKstatus(t *testing.T) {
	objects := demo(t)
	r := random{rand.New(rand.NewPCG(1, 2)), time.Now()}
	for range 20_000 {
		objects = append(objects, r.object())
	}
	met := make([]bool, len(differences))
	agreed, failures := map[string]int{}, 0
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		theirs, err := kstatus.Compute(u)
		if err != nil {
			continue // a phase that it does not know
		}
		h := Of(raw, time.Now())
		if same(h, theirs.Status) {
			agreed[u.GetKind()+" "+string(theirs.Status)]++
			continue
		}
		at := slices.IndexFunc(differences, func(d difference) bool { return d.covers(u.GetKind(), h, theirs.Status) })
		if at >= 0 {
			met[at] = true
			continue
		}
		if failures++; failures < 20 {
			t.Errorf("%s: %s (%s: %s), kstatus says %s (%s)", raw, h.Status, h.Reason, h.Message, theirs.Status, theirs.Message)
		}
	}
	for i, d := range differences {
		if !met[i] {
			t.Errorf("no object shows that a %s may be %s where kstatus says %s (%s)", d.kinds, d.ours, d.theirs, d.reasons)
		}
	}
	for _, want := range []string{"Pod Current", "Pod InProgress", "Pod Failed", "Pod Terminating", "Deployment Current", "Deployment InProgress", "Deployment Failed",
		"StatefulSet Current", "StatefulSet InProgress", "DaemonSet Current", "DaemonSet InProgress", "ReplicaSet Current", "ReplicaSet InProgress",
		"Job Current", "Job Failed", "Job InProgress", "CustomResourceDefinition Failed", "Widget Current", "Widget InProgress", "Widget Failed", "Node Current"} {
		if agreed[want] == 0 {
			t.Errorf("both never say %s", want)
		}
	}
}

// demo are objects of the demo cluster of cmd/devcluster, some of each kind and all that
// are broken, as informerd held them a minute after it began.
func demo(t *testing.T) (all []fields) {
	t.Helper()
	f, err := os.Open("testdata/demo.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o fields
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	if len(all) < 100 {
		t.Fatalf("%d objects", len(all))
	}
	return all
}

// fields is JSON in the making.
type fields = map[string]any

// random makes objects as controllers might leave them.
type random struct {
	*rand.Rand
	now time.Time
}

func pick[T any](r random, of ...T) T { return of[r.IntN(len(of))] }

func (r random) maybe() bool { return r.IntN(2) == 0 }

// time is one within the last half hour.
func (r random) time() string {
	return r.now.Add(-time.Duration(r.IntN(1800)) * time.Second).UTC().Format(time.RFC3339)
}

func (r random) condition(kind string, reasons ...string) fields {
	return fields{"type": kind, "status": pick(r, "True", "False", "Unknown"), "reason": pick(r, reasons...), "message": "because", "lastTransitionTime": r.time(), "lastUpdateTime": r.time()}
}

// conditions are some of those that lines name: a type, then reasons.
func (r random) conditions(lines ...string) []any {
	all := []any{}
	for _, line := range lines {
		if f := strings.Fields(line); r.IntN(4) > 0 {
			all = append(all, r.condition(f[0], append(f[1:], "Whatever")...))
		}
	}
	return all
}

// numbers puts some of the fields in.
func (r random) numbers(into fields, names ...string) fields {
	for _, name := range names {
		if r.IntN(5) > 0 {
			into[name] = r.IntN(3)
		}
	}
	return into
}

func (r random) object() fields {
	kinds := []string{"v1 Pod", "v1 Pod", "v1 Pod", "apps/v1 Deployment", "apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "v1 Node",
		"v1 PersistentVolumeClaim", "v1 PersistentVolume", "batch/v1 Job", "batch/v1 CronJob", "autoscaling/v2 HorizontalPodAutoscaler", "policy/v1 PodDisruptionBudget",
		"v1 Service", "networking.k8s.io/v1 Ingress", "v1 Namespace", "apiextensions.k8s.io/v1 CustomResourceDefinition", "apiregistration.k8s.io/v1 APIService",
		"v1 ResourceQuota", "certificates.k8s.io/v1 CertificateSigningRequest", "flowcontrol.apiserver.k8s.io/v1 FlowSchema", "v1 ConfigMap", "example.com/v1 Widget", "cert-manager.io/v1 Certificate"}
	version, kind, _ := strings.Cut(pick(r, kinds...), " ")
	metadata := fields{"name": "x", "namespace": "a", "creationTimestamp": r.time()}
	if r.IntN(10) == 0 {
		metadata["deletionTimestamp"] = r.time()
	}
	o := fields{"apiVersion": version, "kind": kind, "metadata": metadata}
	spec, status := r.parts(kind)
	if r.IntN(3) == 0 && kind != "ConfigMap" {
		metadata["generation"], status["observedGeneration"] = 2, 2-r.IntN(6)/5
	}
	if len(spec) > 0 {
		o["spec"] = spec
	}
	if r.IntN(20) > 0 {
		o["status"] = status
	}
	return o
}

func (r random) parts(kind string) (spec, status fields) {
	spec, status = fields{}, fields{}
	switch kind {
	case "Pod":
		status["phase"] = pick(r, "Running", "Running", "Running", "Pending", "Pending", "Succeeded", "Failed")
		status["conditions"] = r.conditions("Ready ContainersNotReady PodCompleted", "PodScheduled Unschedulable")
		status["containerStatuses"] = r.containers()
		if r.IntN(3) == 0 {
			status["initContainerStatuses"] = r.containers()
		}
	case "Deployment":
		r.numbers(spec, "replicas")
		if r.maybe() {
			spec["progressDeadlineSeconds"] = 600
		}
		r.numbers(status, "replicas", "readyReplicas", "updatedReplicas", "availableReplicas")
		if r.maybe() {
			r.settled(spec, status)
		}
		status["conditions"] = r.conditions("Progressing ProgressDeadlineExceeded NewReplicaSetAvailable ReplicaSetUpdated", "Available MinimumReplicasUnavailable", pick(r, "Other", "Other", "ReplicaFailure FailedCreate"))
	case "ReplicaSet":
		r.numbers(spec, "replicas")
		r.numbers(status, "replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
		status["conditions"] = r.conditions("ReplicaFailure FailedCreate")
	case "StatefulSet":
		r.numbers(spec, "replicas")
		spec["updateStrategy"] = pick(r, fields{"type": "OnDelete"}, fields{"type": "RollingUpdate"}, fields{"type": "RollingUpdate", "rollingUpdate": fields{"partition": r.IntN(3)}})
		r.numbers(status, "replicas", "readyReplicas", "currentReplicas", "updatedReplicas")
		status["currentRevision"], status["updateRevision"] = "x-1", pick(r, "x-1", "x-1", "x-2")
	case "DaemonSet":
		spec["updateStrategy"] = fields{"type": pick(r, "RollingUpdate", "OnDelete")}
		r.numbers(status, "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
	case "Node":
		spec["unschedulable"] = r.maybe()
		status["conditions"] = r.conditions("Ready KubeletReady KubeletNotReady", "MemoryPressure", "NetworkUnavailable")
	case "PersistentVolumeClaim":
		status["phase"] = pick(r, "Bound", "Pending", "Lost")
	case "PersistentVolume":
		status["phase"] = pick(r, "Bound", "Pending", "Available", "Released", "Failed")
	case "Job":
		spec["suspend"] = r.IntN(5) == 0
		if r.IntN(4) > 0 {
			status["startTime"] = r.time()
		}
		status["conditions"] = r.conditions(pick(r, "Complete", "Failed BackoffLimitExceeded", "FailureTarget", "Suspended"))
		r.numbers(status, "active", "failed", "succeeded")
	case "HorizontalPodAutoscaler":
		status["conditions"] = r.conditions("AbleToScale FailedGetScale", "ScalingActive ScalingDisabled FailedGetResourceMetric", "ScalingLimited TooManyReplicas")
	case "PodDisruptionBudget":
		r.numbers(status, "currentHealthy", "desiredHealthy", "expectedPods")
		status["conditions"] = r.conditions("DisruptionAllowed SyncFailed InsufficientPods SufficientPods")
	case "Service":
		spec["type"] = pick(r, "ClusterIP", "LoadBalancer", "LoadBalancer")
		spec["clusterIP"] = "10.0.0.1"
		status["loadBalancer"] = pick(r, fields{}, fields{"ingress": []any{fields{"ip": "1.2.3.4"}}})
	case "Ingress":
		status["loadBalancer"] = pick(r, fields{}, fields{"ingress": []any{fields{"ip": "1.2.3.4"}}})
	case "Namespace":
		status["phase"] = "Active"
	case "CustomResourceDefinition":
		status["conditions"] = r.conditions("NamesAccepted NotAccepted", "Established Installing")
	case "APIService":
		status["conditions"] = r.conditions("Available ServiceNotFound Local")
	case "ResourceQuota":
		status["hard"] = fields{"pods": fmt.Sprint(r.IntN(3)), "requests.memory": "1Gi"}
		status["used"] = fields{"pods": fmt.Sprint(r.IntN(3)), "requests.memory": pick(r, "1024Mi", "0", "1M")}
	case "CertificateSigningRequest":
		status["conditions"] = r.conditions(pick(r, "Approved", "Denied", "Failed"))
		if r.maybe() {
			status["certificate"] = "LS0t"
		}
	case "FlowSchema":
		status["conditions"] = r.conditions("Dangling NotFound")
	case "Widget":
		status["conditions"] = r.conditions("Ready ReconcileError Provisioning", pick(r, "Degraded", "Available", "Synced", "Other"), pick(r, "Reconciling", "Stalled", "Other", "Other", "Progressing"))
		if r.maybe() {
			status[pick(r, "phase", "state")] = pick(r, "Ready", "Pending", "Failed", "Unknown", "Swimming")
		}
	case "Certificate":
		status["conditions"] = r.conditions("Ready Pending")
		status["notAfter"] = pick(r, r.time(), r.now.Add(time.Hour).UTC().Format(time.RFC3339))
	}
	return spec, status
}

// settled makes the numbers of a Deployment those of one that is done.
func (r random) settled(spec, status fields) {
	n := 1 + r.IntN(3)
	spec["replicas"] = n
	for _, name := range []string{"replicas", "readyReplicas", "updatedReplicas", "availableReplicas"} {
		status[name] = n
	}
}

func (r random) containers() []any {
	all := []any{}
	for i := range r.IntN(3) {
		exit := fields{"terminated": fields{"exitCode": pick(r, 0, 1, 137), "reason": pick(r, "Completed", "Error", "OOMKilled"), "finishedAt": r.time()}}
		state := pick(r, fields{"running": fields{"startedAt": r.time()}}, fields{"running": fields{"startedAt": r.time()}}, exit,
			fields{"waiting": fields{"reason": pick(r, "ContainerCreating", "PodInitializing", "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"), "message": "because"}})
		all = append(all, fields{"name": fmt.Sprint("c", i), "state": state, "lastState": pick(r, fields{}, fields{}, exit), "restartCount": r.IntN(5)})
	}
	return all
}
