package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/follow/followtest"
	"github.com/informerd/informerd/cache/internal/brief"
)

// TestMain has every text overwritten that was to be used no longer, so that one that was kept all
// the same is another one.
func TestMain(m *testing.M) {
	brief.Released = func(room []byte) {
		for i := range room {
			room[i] = '?'
		}
	}
	goleak.VerifyTestMain(m)
}

// everything is the Sight of who may see everything.
var everything = cache.WholeSight()

// world is a cluster of empty, live resources, and its Graph.
type world struct {
	*followtest.Cluster
	graph *Graph
}

// usual are resources as name/Kind; a capital N before means namespaced.
var usual = []string{
	"N pods v1 Pod", "N configmaps v1 ConfigMap", "N secrets v1 Secret", "N services v1 Service",
	"N serviceaccounts v1 ServiceAccount", "N persistentvolumeclaims v1 PersistentVolumeClaim", "- persistentvolumes v1 PersistentVolume",
	"- nodes v1 Node", "- namespaces v1 Namespace", "N deployments.apps v1 Deployment", "N replicasets.apps v1 ReplicaSet",
	"N cronjobs.batch v1 CronJob", "N ingresses.networking.k8s.io v1 Ingress", "- ingressclasses.networking.k8s.io v1 IngressClass",
	"N networkpolicies.networking.k8s.io v1 NetworkPolicy", "N poddisruptionbudgets.policy v1 PodDisruptionBudget",
	"N endpointslices.discovery.k8s.io v1 EndpointSlice", "- storageclasses.storage.k8s.io v1 StorageClass",
	"N horizontalpodautoscalers.autoscaling v2 HorizontalPodAutoscaler", "N roles.rbac.authorization.k8s.io v1 Role",
	"- clusterroles.rbac.authorization.k8s.io v1 ClusterRole", "N rolebindings.rbac.authorization.k8s.io v1 RoleBinding",
	"- validatingwebhookconfigurations.admissionregistration.k8s.io v1 ValidatingWebhookConfiguration",
	"- customresourcedefinitions.apiextensions.k8s.io v1 CustomResourceDefinition", "N widgets.example.com v1 Widget",
	"N statefulsets.apps v1 StatefulSet", "N replicationcontrollers v1 ReplicationController", "- priorityclasses.scheduling.k8s.io v1 PriorityClass",
	"- runtimeclasses.node.k8s.io v1 RuntimeClass", "- csidrivers.storage.k8s.io v1 CSIDriver", "- csinodes.storage.k8s.io v1 CSINode",
	"- volumeattributesclasses.storage.k8s.io v1 VolumeAttributesClass", "N resourceclaims.resource.k8s.io v1 ResourceClaim",
	"N resourceclaimtemplates.resource.k8s.io v1 ResourceClaimTemplate", "- deviceclasses.resource.k8s.io v1 DeviceClass",
	"- volumeattachments.storage.k8s.io v1 VolumeAttachment", "N volumesnapshots.snapshot.storage.k8s.io v1 VolumeSnapshot",
	"- volumesnapshotcontents.snapshot.storage.k8s.io v1 VolumeSnapshotContent", "- volumesnapshotclasses.snapshot.storage.k8s.io v1 VolumeSnapshotClass",
	"- mutatingadmissionpolicies.admissionregistration.k8s.io v1 MutatingAdmissionPolicy",
	"- mutatingadmissionpolicybindings.admissionregistration.k8s.io v1 MutatingAdmissionPolicyBinding",
	"- validatingadmissionpolicies.admissionregistration.k8s.io v1 ValidatingAdmissionPolicy",
	"- validatingadmissionpolicybindings.admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding",
	"- flowschemas.flowcontrol.apiserver.k8s.io v1 FlowSchema", "- prioritylevelconfigurations.flowcontrol.apiserver.k8s.io v1 PriorityLevelConfiguration",
	"- apiservices.apiregistration.k8s.io v1 APIService", "N verticalpodautoscalers.autoscaling.k8s.io v1 VerticalPodAutoscaler",
	"N httproutes.gateway.networking.k8s.io v1 HTTPRoute", "N gateways.gateway.networking.k8s.io v1 Gateway", "N events v1 Event",
}

func newWorld(tb testing.TB, declared ...Rule) *world {
	tb.Helper()
	w := &world{Cluster: &followtest.Cluster{TB: tb}}
	for _, line := range usual {
		w.addLine(line)
	}
	w.graph = w.newGraph(declared...)
	return w
}

func (w *world) newGraph(declared ...Rule) *Graph {
	w.TB.Helper()
	g, err := New(func() []follow.Resource { return followtest.Followed[follow.Resource](w.Cluster) }, Options{Declared: declared})
	if err != nil {
		w.TB.Fatal(err)
	}
	return g
}

// addLine makes a live resource of a line of usual.
func (w *world) addLine(line string, change ...func(*cache.Spec)) *followtest.Resource {
	w.TB.Helper()
	f := strings.Fields(line)
	gr := schema.ParseGroupResource(f[1])
	spec := cache.Spec{Resource: cache.Resource{GVR: gr.WithVersion(f[2])}, Kind: f[3], Namespaced: f[0] == "N", Watch: true}
	for _, c := range change {
		c(&spec)
	}
	return w.Add(spec)
}

// object is JSON in the making.
type object map[string]any

// walk asks and fails the test on an error.
func (w *world) walk(name, id string, change ...func(*Query)) *Answer {
	w.TB.Helper()
	a, err := w.graph.Walk(w.TB.Context(), query(name, id, change...))
	if err != nil {
		w.TB.Fatalf("walk from %s %s: %v", name, id, err)
	}
	return a
}

func query(name, id string, change ...func(*Query)) Query {
	namespace, n, ok := strings.Cut(id, "/")
	if !ok {
		namespace, n = "", id
	}
	q := Query{Resource: schema.ParseGroupResource(name), Key: cache.Key{Namespace: namespace, Name: n}, Depth: 1, Limit: 100000, Sight: everything}
	for _, c := range change {
		c(&q)
	}
	return q
}

// text is an edge as "resource id -edge-> resource id".
func (a *Answer) text() []string {
	var out []string
	for _, e := range a.Edges {
		out = append(out, a.Nodes[e.From].text()+" -"+e.Edge+"-> "+a.Nodes[e.To].text())
	}
	slices.Sort(out)
	return out
}

func (n Node) text() string {
	text := n.Resource + " " + n.Key.String()
	switch {
	case n.Missing:
		text += " (missing)"
	case n.Unknown:
		text += " (unknown)"
	}
	return text
}

func equal(tb testing.TB, what string, got, want []string) {
	tb.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		var b strings.Builder
		for _, s := range got {
			if !slices.Contains(want, s) {
				fmt.Fprintf(&b, "\n  + %s", s)
			}
		}
		for _, s := range want {
			if !slices.Contains(got, s) {
				fmt.Fprintf(&b, "\n  - %s", s)
			}
		}
		tb.Errorf("%s differs (+ got, - wanted):%s", what, &b)
	}
}
