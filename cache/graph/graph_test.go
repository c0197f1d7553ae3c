package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

// TestReferences: each line is an object and the edges it makes.
func TestReferences(t *testing.T) {
	for _, tt := range []struct {
		name, resource, id, body string
		edges                    []string
	}{
		{"pod", "pods", "a/p", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u1"}]},
			"spec":{"nodeName":"n","serviceAccountName":"s","imagePullSecrets":[{"name":"pull"}],
			"volumes":[{"configMap":{"name":"c1"}},{"secret":{"secretName":"s1"}},{"persistentVolumeClaim":{"claimName":"p1"}},
				{"projected":{"sources":[{"configMap":{"name":"c2"}},{"secret":{"name":"s2"}},{"serviceAccountToken":{"path":"t"}}]}},
				{"csi":{"driver":"d","nodePublishSecretRef":{"name":"s3"}}},{"emptyDir":{}}],
			"containers":[{"env":[{"name":"A","value":"1"},{"valueFrom":{"configMapKeyRef":{"name":"c3","key":"k"}}},{"valueFrom":{"secretKeyRef":{"name":"s4","key":"k"}}}],
				"envFrom":[{"configMapRef":{"name":"c4"}},{"secretRef":{"name":"s5"}}]}],
			"initContainers":[{"envFrom":[{"secretRef":{"name":"s6"}}]}],
			"ephemeralContainers":[{"env":[{"valueFrom":{"configMapKeyRef":{"name":"c5"}}}]}]}}`, []string{
			"replicasets.apps a/r (missing) -owns-> pods a/p", "pods a/p -runsOn-> nodes n (missing)",
			"pods a/p -runsAs-> serviceaccounts a/s (missing)", "pods a/p -pulls-> secrets a/pull (missing)",
			"pods a/p -mounts-> configmaps a/c1 (missing)", "pods a/p -mounts-> configmaps a/c2 (missing)",
			"pods a/p -mounts-> secrets a/s1 (missing)", "pods a/p -mounts-> secrets a/s2 (missing)", "pods a/p -mounts-> secrets a/s3 (missing)",
			"pods a/p -driver-> csidrivers.storage.k8s.io d (missing)",
			"pods a/p -mounts-> persistentvolumeclaims a/p1 (missing)",
			"pods a/p -env-> configmaps a/c3 (missing)", "pods a/p -env-> configmaps a/c4 (missing)", "pods a/p -env-> configmaps a/c5 (missing)",
			"pods a/p -env-> secrets a/s4 (missing)", "pods a/p -env-> secrets a/s5 (missing)", "pods a/p -env-> secrets a/s6 (missing)",
		}},
		{"template", "cronjobs.batch", "a/c", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"serviceAccountName":"s","volumes":[{"secret":{"secretName":"k"}}]}}}}}}`, []string{
			"cronjobs.batch a/c -runsAs-> serviceaccounts a/s (missing)", "cronjobs.batch a/c -mounts-> secrets a/k (missing)",
		}},
		{"claim", "persistentvolumeclaims", "a/c", `{"spec":{"volumeName":"v","storageClassName":"fast"}}`, []string{
			"persistentvolumeclaims a/c -binds-> persistentvolumes v (missing)",
			"persistentvolumeclaims a/c -class-> storageclasses.storage.k8s.io fast (missing)",
		}},
		{"classes of a pod", "pods", "a/p", `{"spec":{"priorityClassName":"high","runtimeClassName":"kata","resourceClaims":[{"name":"x","resourceClaimName":"gpu"},{"name":"y","resourceClaimTemplateName":"gpus"}],
			"volumes":[{"csi":{"driver":"csi.example.com"}},{"ephemeral":{"volumeClaimTemplate":{"spec":{"storageClassName":"fast"}}}}]}}`, []string{
			"pods a/p -class-> priorityclasses.scheduling.k8s.io high (missing)", "pods a/p -class-> runtimeclasses.node.k8s.io kata (missing)",
			"pods a/p -claims-> resourceclaims.resource.k8s.io a/gpu (missing)", "pods a/p -claims-> resourceclaimtemplates.resource.k8s.io a/gpus (missing)",
			"pods a/p -driver-> csidrivers.storage.k8s.io csi.example.com (missing)", "pods a/p -class-> storageclasses.storage.k8s.io fast (missing)",
		}},
		{"a deployment without pods", "deployments.apps", "a/d", `{"spec":{"replicas":0,"template":{"spec":{"serviceAccountName":"s","priorityClassName":"high",
			"volumes":[{"configMap":{"name":"c"}},{"persistentVolumeClaim":{"claimName":"p"}}],"containers":[{"envFrom":[{"secretRef":{"name":"k"}}]}]}}}}`, []string{
			"deployments.apps a/d -runsAs-> serviceaccounts a/s (missing)", "deployments.apps a/d -mounts-> configmaps a/c (missing)",
			"deployments.apps a/d -mounts-> persistentvolumeclaims a/p (missing)", "deployments.apps a/d -env-> secrets a/k (missing)",
			"deployments.apps a/d -class-> priorityclasses.scheduling.k8s.io high (missing)",
		}},
		{"an old revision", "replicasets.apps", "a/r", `{"spec":{"replicas":0,"template":{"spec":{"volumes":[{"configMap":{"name":"c"}}]}}}}`, []string{
			"replicasets.apps a/r -mounts-> configmaps a/c (missing)",
		}},
		{"replication controller", "replicationcontrollers", "a/r", `{"spec":{"template":{"spec":{"imagePullSecrets":[{"name":"s"}]}}}}`, []string{
			"replicationcontrollers a/r -pulls-> secrets a/s (missing)",
		}},
		{"claim templates", "statefulsets.apps", "a/s", `{"spec":{"serviceName":"h","volumeClaimTemplates":[{"spec":{"storageClassName":"fast"}}]}}`, []string{
			"statefulsets.apps a/s -servedBy-> services a/h (missing)", "statefulsets.apps a/s -class-> storageclasses.storage.k8s.io fast (missing)",
		}},
		{"claim from a snapshot", "persistentvolumeclaims", "a/c", `{"spec":{"volumeAttributesClassName":"silver","dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"},
			"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"p","namespace":"b"}}}`, []string{
			"persistentvolumeclaims a/c -class-> volumeattributesclasses.storage.k8s.io silver (missing)",
			"persistentvolumeclaims a/c -source-> volumesnapshots.snapshot.storage.k8s.io a/s (missing)",
			"persistentvolumeclaims a/c -source-> persistentvolumeclaims b/p (missing)",
		}},
		{"volume", "persistentvolumes", "v", `{"spec":{"storageClassName":"fast","claimRef":{"kind":"PersistentVolumeClaim","namespace":"a","name":"c","uid":"u"},"csi":{"driver":"csi.example.com"}}}`, []string{
			"persistentvolumes v -class-> storageclasses.storage.k8s.io fast (missing)", "persistentvolumeclaims a/c (missing) -binds-> persistentvolumes v",
			"persistentvolumes v -driver-> csidrivers.storage.k8s.io csi.example.com (missing)",
		}},
		{"volume reserved for a claim", "persistentvolumes", "v", `{"spec":{"claimRef":{"namespace":"a","name":"c"}}}`, []string{
			"persistentvolumeclaims a/c (missing) -binds-> persistentvolumes v",
		}},
		{"storage class", "storageclasses.storage.k8s.io", "fast", `{"provisioner":"csi.example.com"}`, []string{
			"storageclasses.storage.k8s.io fast -driver-> csidrivers.storage.k8s.io csi.example.com (missing)",
		}},
		{"drivers of a node", "csinodes.storage.k8s.io", "n", `{"spec":{"drivers":[{"name":"csi.example.com","nodeID":"x"}]}}`, []string{
			"csinodes.storage.k8s.io n -driver-> csidrivers.storage.k8s.io csi.example.com (missing)",
		}},
		{"attachment", "volumeattachments.storage.k8s.io", "x", `{"spec":{"attacher":"csi.example.com","nodeName":"n","source":{"persistentVolumeName":"v"}}}`, []string{
			"volumeattachments.storage.k8s.io x -driver-> csidrivers.storage.k8s.io csi.example.com (missing)",
			"volumeattachments.storage.k8s.io x -attaches-> nodes n (missing)", "volumeattachments.storage.k8s.io x -attaches-> persistentvolumes v (missing)",
		}},
		{"snapshot", "volumesnapshots.snapshot.storage.k8s.io", "a/s", `{"spec":{"source":{"persistentVolumeClaimName":"c"},"volumeSnapshotClassName":"k"},"status":{"boundVolumeSnapshotContentName":"x"}}`, []string{
			"volumesnapshots.snapshot.storage.k8s.io a/s -source-> persistentvolumeclaims a/c (missing)",
			"volumesnapshots.snapshot.storage.k8s.io a/s -class-> volumesnapshotclasses.snapshot.storage.k8s.io k (missing)",
			"volumesnapshots.snapshot.storage.k8s.io a/s -binds-> volumesnapshotcontents.snapshot.storage.k8s.io x (missing)",
		}},
		{"snapshot content", "volumesnapshotcontents.snapshot.storage.k8s.io", "x", `{"spec":{"volumeSnapshotRef":{"namespace":"a","name":"s","uid":"u"}}}`, []string{
			"volumesnapshots.snapshot.storage.k8s.io a/s (missing) -binds-> volumesnapshotcontents.snapshot.storage.k8s.io x",
		}},
		{"devices", "resourceclaims.resource.k8s.io", "a/c", `{"spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"gpu"}}]}}}`, []string{
			"resourceclaims.resource.k8s.io a/c -class-> deviceclasses.resource.k8s.io gpu (missing)",
		}},
		{"template of devices", "resourceclaimtemplates.resource.k8s.io", "a/c", `{"spec":{"spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"gpu"}}]}}}}`, []string{
			"resourceclaimtemplates.resource.k8s.io a/c -class-> deviceclasses.resource.k8s.io gpu (missing)",
		}},
		{"ingress class", "ingressclasses.networking.k8s.io", "nginx", `{"spec":{"parameters":{"apiGroup":"example.com","kind":"Widget","name":"w","namespace":"a","scope":"Namespace"}}}`, []string{
			"ingressclasses.networking.k8s.io nginx -parameters-> widgets.example.com a/w (missing)",
		}},
		{"token of an account", "secrets", "a/t", `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"s"}},"type":"kubernetes.io/service-account-token"}`, []string{
			"serviceaccounts a/s (missing) -holds-> secrets a/t",
		}},
		{"API service", "apiservices.apiregistration.k8s.io", "v1.x", `{"spec":{"service":{"namespace":"a","name":"s"}}}`, []string{
			"apiservices.apiregistration.k8s.io v1.x -calls-> services a/s (missing)",
		}},
		{"policy binding", "validatingadmissionpolicybindings.admissionregistration.k8s.io", "b", `{"spec":{"policyName":"p"}}`, []string{
			"validatingadmissionpolicybindings.admissionregistration.k8s.io b -applies-> validatingadmissionpolicies.admissionregistration.k8s.io p (missing)",
		}},
		{"mutating policy binding", "mutatingadmissionpolicybindings.admissionregistration.k8s.io", "b", `{"spec":{"policyName":"p"}}`, []string{
			"mutatingadmissionpolicybindings.admissionregistration.k8s.io b -applies-> mutatingadmissionpolicies.admissionregistration.k8s.io p (missing)",
		}},
		{"flow schema", "flowschemas.flowcontrol.apiserver.k8s.io", "f", `{"spec":{"priorityLevelConfiguration":{"name":"exempt"}}}`, []string{
			"flowschemas.flowcontrol.apiserver.k8s.io f -class-> prioritylevelconfigurations.flowcontrol.apiserver.k8s.io exempt (missing)",
		}},
		{"vertical autoscaler", "verticalpodautoscalers.autoscaling.k8s.io", "a/v", `{"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"s"}}}`, []string{
			"verticalpodautoscalers.autoscaling.k8s.io a/v -scales-> statefulsets.apps a/s (missing)",
		}},
		{"slice", "endpointslices.discovery.k8s.io", "a/web-x", `{"metadata":{"labels":{"kubernetes.io/service-name":"web"}},"endpoints":[{"targetRef":{"kind":"Pod","namespace":"a","name":"p"}}]}`, []string{
			"services a/web (missing) -slices-> endpointslices.discovery.k8s.io a/web-x",
			"endpointslices.discovery.k8s.io a/web-x -endpoint-> pods a/p (missing)",
		}},
		{"ingress", "ingresses.networking.k8s.io", "a/i", `{"spec":{"ingressClassName":"nginx","defaultBackend":{"service":{"name":"d"}},"tls":[{"hosts":["h"],"secretName":"t"}],
			"rules":[{"http":{"paths":[{"backend":{"service":{"name":"s","port":{"number":80}}}},{"backend":{"resource":{"apiGroup":"example.com","kind":"Widget","name":"w"}}}]}}]}}`, []string{
			"ingresses.networking.k8s.io a/i -class-> ingressclasses.networking.k8s.io nginx (missing)",
			"ingresses.networking.k8s.io a/i -routes-> services a/d (missing)", "ingresses.networking.k8s.io a/i -routes-> services a/s (missing)",
			"ingresses.networking.k8s.io a/i -routes-> widgets.example.com a/w (missing)", "ingresses.networking.k8s.io a/i -tls-> secrets a/t (missing)",
		}},
		{"route", "httproutes.gateway.networking.k8s.io", "a/r", `{"spec":{"parentRefs":[{"name":"g"},{"name":"g","namespace":"infra"},{"group":"","kind":"Service","name":"mesh"}],
			"rules":[{"backendRefs":[{"name":"s","port":80},{"namespace":"b","name":"s"}],"filters":[{"requestMirror":{"backendRef":{"name":"m"}}}]}]}}`, []string{
			"httproutes.gateway.networking.k8s.io a/r -attaches-> gateways.gateway.networking.k8s.io a/g (missing)",
			"httproutes.gateway.networking.k8s.io a/r -attaches-> gateways.gateway.networking.k8s.io infra/g (missing)",
			"httproutes.gateway.networking.k8s.io a/r -attaches-> services a/mesh (missing)",
			"httproutes.gateway.networking.k8s.io a/r -routes-> services a/s (missing)", "httproutes.gateway.networking.k8s.io a/r -routes-> services b/s (missing)",
			"httproutes.gateway.networking.k8s.io a/r -routes-> services a/m (missing)",
		}},
		{"gateway", "gateways.gateway.networking.k8s.io", "a/g", `{"spec":{"gatewayClassName":"x","listeners":[{"tls":{"certificateRefs":[{"name":"t"}]}}]}}`, []string{
			"gateways.gateway.networking.k8s.io a/g -class-> gatewayclasses.gateway.networking.k8s.io a/x (unknown)",
			"gateways.gateway.networking.k8s.io a/g -tls-> secrets a/t (missing)",
		}},
		{"autoscaler", "horizontalpodautoscalers.autoscaling", "a/h", `{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`, []string{
			"horizontalpodautoscalers.autoscaling a/h -scales-> deployments.apps a/d (missing)",
		}},
		{"autoscaler of an unknown kind", "horizontalpodautoscalers.autoscaling", "a/h", `{"spec":{"scaleTargetRef":{"apiVersion":"argoproj.io/v1","kind":"Rollout","name":"d"}}}`, []string{
			"horizontalpodautoscalers.autoscaling a/h -scales-> Rollout.argoproj.io a/d (unknown)",
		}},
		{"binding", "rolebindings.rbac.authorization.k8s.io", "a/b", `{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
			"subjects":[{"kind":"ServiceAccount","name":"s","namespace":"b"},{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"u"}]}`, []string{
			"rolebindings.rbac.authorization.k8s.io a/b -grants-> clusterroles.rbac.authorization.k8s.io view (missing)",
			"rolebindings.rbac.authorization.k8s.io a/b -subject-> serviceaccounts b/s (missing)",
		}},
		{"webhook", "validatingwebhookconfigurations.admissionregistration.k8s.io", "w", `{"webhooks":[{"clientConfig":{"service":{"namespace":"a","name":"s"}}},{"clientConfig":{"url":"https://x"}}]}`, []string{
			"validatingwebhookconfigurations.admissionregistration.k8s.io w -calls-> services a/s (missing)",
		}},
		{"account", "serviceaccounts", "a/s", `{"secrets":[{"name":"t"}],"imagePullSecrets":[{"name":"p"}]}`, []string{
			"serviceaccounts a/s -holds-> secrets a/t (missing)", "serviceaccounts a/s -pulls-> secrets a/p (missing)",
		}},
		{"event", "events", "a/e", `{"involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"a","name":"p","uid":"u"},"related":{"apiVersion":"v1","kind":"Node","name":"n"}}`, []string{
			"events a/e -about-> pods a/p (missing)", "events a/e -about-> nodes n (missing)",
		}},
		{"malformed", "pods", "a/p", `{"metadata":{"ownerReferences":[{"kind":"ReplicaSet","name":"r"}]},"spec":{"nodeName":7,"serviceAccountName":"",
			"imagePullSecrets":[{"name":7},{}],"volumes":"x","containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":["x"]}}}]}]}}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.Put(tt.resource, tt.id, tt.body)
			equal(t, "edges", w.walk(tt.resource, tt.id).text(), tt.edges)
		})
	}
}

// shop is a Deployment with two pods, and what is around it.
func shop(t testing.TB) *world {
	w := newWorld(t)
	w.Put("deployments.apps", "shop/web", "")
	w.Put("replicasets.apps", "shop/web-1", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"`+followtest.UID("deployments.apps", "shop/web")+`"}]}}`)
	for _, name := range []string{"shop/web-1-a", "shop/web-1-b"} {
		w.Put("pods", name, `{"metadata":{"labels":{"app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"`+followtest.UID("replicasets.apps", "shop/web-1")+`"}]},
			"spec":{"nodeName":"n1","serviceAccountName":"default","volumes":[{"configMap":{"name":"web"}},{"secret":{"secretName":"gone","optional":true}}]}}`)
	}
	w.Put("pods", "shop/other", `{"metadata":{"labels":{"app":"other"}},"spec":{"nodeName":"n1","serviceAccountName":"default","volumes":[{"configMap":{"name":"web"}}]}}`)
	w.Put("services", "shop/web", `{"spec":{"selector":{"app":"web"}}}`)
	w.Put("services", "shop/nothing", `{"spec":{"selector":{"app":"wbe"}}}`)
	w.Put("services", "shop/external", `{"spec":{"externalName":"example.com"}}`)
	w.Put("services", "other/web", `{"spec":{"selector":{"app":"web"}}}`)
	w.Put("networkpolicies.networking.k8s.io", "shop/all", `{"spec":{"podSelector":{}}}`)
	w.Put("poddisruptionbudgets.policy", "shop/web", `{"spec":{"selector":{"matchExpressions":[{"key":"app","operator":"In","values":["web"]}]}}}`)
	w.Put("ingresses.networking.k8s.io", "shop/web", `{"spec":{"rules":[{"http":{"paths":[{"backend":{"service":{"name":"web"}}}]}}]}}`)
	w.Put("configmaps", "shop/web", "")
	w.Put("serviceaccounts", "shop/default", "")
	w.Put("nodes", "n1", "")
	w.Put("namespaces", "shop", "")
	return w
}

func TestWalk(t *testing.T) {
	w := shop(t)
	a := w.walk("deployments.apps", "shop/web", func(q *Query) { q.Depth = 3 })
	pods := []string{"pods shop/web-1-a", "pods shop/web-1-b"}
	want := []string{"deployments.apps shop/web -owns-> replicasets.apps shop/web-1"}
	for _, p := range pods {
		want = append(want, "replicasets.apps shop/web-1 -owns-> "+p, p+" -runsOn-> nodes n1", p+" -runsAs-> serviceaccounts shop/default",
			p+" -mounts-> configmaps shop/web", p+" -mounts-> secrets shop/gone (missing)", "services shop/web -selects-> "+p,
			"networkpolicies.networking.k8s.io shop/all -selects-> "+p, "poddisruptionbudgets.policy shop/web -selects-> "+p)
	}
	equal(t, "graph", a.text(), want)
	for _, n := range a.Nodes {
		if hub := n.Resource == "nodes" || n.Resource == "serviceaccounts"; n.Hub != hub {
			t.Errorf("%s: hub = %v", n.text(), n.Hub)
		}
		if n.State != cache.Live {
			t.Errorf("%s: state = %q", n.text(), n.State)
		}
	}
	if a.Truncated || len(a.Unanswered) > 0 || a.Nodes[0].Depth != 0 || a.Nodes[len(a.Nodes)-1].Depth != 3 {
		t.Errorf("answer = %+v", a)
	}
}

func TestWalkRestrictions(t *testing.T) {
	w := shop(t)
	for name, tt := range map[string]struct {
		from, id string
		change   func(*Query)
		want     []string
	}{
		"in": {"configmaps", "shop/web", func(q *Query) { q.Depth, q.Direction = 3, In }, []string{
			"pods shop/web-1-a -mounts-> configmaps shop/web", "pods shop/web-1-b -mounts-> configmaps shop/web", "pods shop/other -mounts-> configmaps shop/web",
			"replicasets.apps shop/web-1 -owns-> pods shop/web-1-a", "replicasets.apps shop/web-1 -owns-> pods shop/web-1-b",
			"deployments.apps shop/web -owns-> replicasets.apps shop/web-1", "services shop/web -selects-> pods shop/web-1-a", "services shop/web -selects-> pods shop/web-1-b",
			"networkpolicies.networking.k8s.io shop/all -selects-> pods shop/other", "networkpolicies.networking.k8s.io shop/all -selects-> pods shop/web-1-a",
			"networkpolicies.networking.k8s.io shop/all -selects-> pods shop/web-1-b", "poddisruptionbudgets.policy shop/web -selects-> pods shop/web-1-a",
			"poddisruptionbudgets.policy shop/web -selects-> pods shop/web-1-b", "ingresses.networking.k8s.io shop/web -routes-> services shop/web"}},
		"kinds": {"deployments.apps", "shop/web", func(q *Query) {
			q.Depth, q.Kinds = 2, []schema.GroupResource{{Group: "apps", Resource: "replicasets"}}
		}, []string{"deployments.apps shop/web -owns-> replicasets.apps shop/web-1"}},
		"edges": {"pods", "shop/web-1-a", func(q *Query) { q.Edges = []string{"mounts"} }, []string{
			"pods shop/web-1-a -mounts-> configmaps shop/web", "pods shop/web-1-a -mounts-> secrets shop/gone (missing)"}},
		"a hub asked for": {"nodes", "n1", func(q *Query) { q.Depth = 1 }, []string{
			"pods shop/web-1-a -runsOn-> nodes n1", "pods shop/web-1-b -runsOn-> nodes n1", "pods shop/other -runsOn-> nodes n1"}},
		"through a hub": {"pods", "shop/other", func(q *Query) {
			q.Depth, q.Through, q.Edges = 2, []schema.GroupResource{{Resource: "nodes"}}, []string{"runsOn"}
		}, []string{"pods shop/web-1-a -runsOn-> nodes n1", "pods shop/web-1-b -runsOn-> nodes n1", "pods shop/other -runsOn-> nodes n1"}},
		"missing": {"secrets", "shop/gone", func(*Query) {}, []string{
			"pods shop/web-1-a -mounts-> secrets shop/gone (missing)", "pods shop/web-1-b -mounts-> secrets shop/gone (missing)"}},
		"contains": {"configmaps", "shop/web", func(q *Query) { q.Edges = []string{"contains"} }, []string{"namespaces shop -contains-> configmaps shop/web"}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, name, w.walk(tt.from, tt.id, tt.change).text(), tt.want) })
	}
	if a := w.walk("namespaces", "shop"); len(a.Edges) != 13 {
		t.Errorf("a namespace contains %d objects, want 13: %v", len(a.Edges), a.text())
	}
}

// TestCrowd: who has nothing in common but a much used object is not related.
func TestCrowd(t *testing.T) {
	w := newWorld(t)
	w.Put("serviceaccounts", "a/s", `{"imagePullSecrets":[{"name":"p"}]}`)
	for i := range crowd + 1 {
		w.Put("pods", fmt.Sprintf("a/p%d", i), `{"spec":{"serviceAccountName":"s"}}`)
	}
	two := func(q *Query) { q.Depth = 2 }
	want := []string{"pods a/p0 -runsAs-> serviceaccounts a/s", "serviceaccounts a/s -pulls-> secrets a/p (missing)"}
	a := w.walk("pods", "a/p0", two)
	equal(t, "around one of many", a.text(), want)
	if !a.Nodes[1].Hub {
		t.Error("the account is not called a hub")
	}
	if a := w.walk("pods", "a/p0", two, func(q *Query) { q.Through = []schema.GroupResource{{Resource: "serviceaccounts"}} }); len(a.Edges) != crowd+2 {
		t.Errorf("%d edges through the account, want %d", len(a.Edges), crowd+2)
	}
	if a := w.walk("serviceaccounts", "a/s"); len(a.Edges) != crowd+2 {
		t.Errorf("%d edges around the account, want %d", len(a.Edges), crowd+2)
	}
	w.Delete("pods", "a/p7")
	if a := w.walk("pods", "a/p0", two); len(a.Edges) != crowd+1 {
		t.Errorf("%d edges around one of few, want %d", len(a.Edges), crowd+1)
	}
}

func TestWalkLimit(t *testing.T) {
	w := shop(t)
	a := w.walk("deployments.apps", "shop/web", func(q *Query) { q.Depth, q.Limit = 5, 3 })
	if !a.Truncated || len(a.Nodes) != 3 {
		t.Errorf("truncated = %v with %d nodes", a.Truncated, len(a.Nodes))
	}
	if b := w.walk("deployments.apps", "shop/web", func(q *Query) { q.Depth, q.Limit = 5, 3 }); !slices.Equal(a.text(), b.text()) {
		t.Errorf("cut off differently: %v, %v", a.text(), b.text())
	}
}

func TestNotFound(t *testing.T) {
	w := shop(t)
	for _, q := range []Query{query("pods", "shop/nobody"), query("unknown.example.com", "a/b")} {
		if _, err := w.graph.Walk(t.Context(), q); !errors.Is(err, cache.ErrNotFound) {
			t.Errorf("Walk(%v) = %v, want ErrNotFound", q.Key, err)
		}
	}
}

// TestPeers: whom a NetworkPolicy lets talk with its pods, from both ends, while
// labels of pods and namespaces move.
func TestPeers(t *testing.T) {
	w := newWorld(t)
	for name, team := range map[string]string{"shop": "shop", "front": "web", "ops": "ops"} {
		w.Put("namespaces", name, `{"metadata":{"labels":{"team":"`+team+`"}}}`)
		w.Put("pods", name+"/web", `{"metadata":{"labels":{"app":"web"}}}`)
		w.Put("pods", name+"/db", `{"metadata":{"labels":{"app":"db"}}}`)
	}
	w.Put("networkpolicies.networking.k8s.io", "shop/db", `{"spec":{"podSelector":{"matchLabels":{"app":"db"}},
		"ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"web"}}},{"namespaceSelector":{"matchLabels":{"team":"ops"}}}]},
			{"from":[{"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"In","values":["web"]}]},"podSelector":{"matchLabels":{"app":"web"}}}]}],
		"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8"}},{"podSelector":{"matchLabels":{"app":"gone"}}},{"namespaceSelector":{"matchLabels":{"team":"nobody"}}},
			{"podSelector":{"matchLabels":{"app":"gone"}},"namespaceSelector":{}},{"podSelector":{},"namespaceSelector":{}}]}]}}`)
	const policy = "networkpolicies.networking.k8s.io shop/db "
	from := []string{"allowsFrom"}
	equal(t, "ingress", w.walk("networkpolicies.networking.k8s.io", "shop/db", func(q *Query) { q.Edges = from }).text(),
		[]string{policy + "-allowsFrom-> pods shop/web", policy + "-allowsFrom-> namespaces ops", policy + "-allowsFrom-> pods front/web"})
	equal(t, "egress and its own", w.walk("networkpolicies.networking.k8s.io", "shop/db", func(q *Query) { q.Edges = []string{"allowsTo", "selects"} }).text(),
		[]string{policy + "-selects-> pods shop/db", policy + "-allowsTo-> pods shop/web", policy + "-allowsTo-> pods shop/db", policy + "-allowsTo-> pods front/web",
			policy + "-allowsTo-> pods front/db", policy + "-allowsTo-> pods ops/web", policy + "-allowsTo-> pods ops/db"})
	around := func(resource, id string) []string {
		return w.walk(resource, id, func(q *Query) { q.Edges = from }).text()
	}
	equal(t, "a pod of the same namespace", around("pods", "shop/web"), []string{policy + "-allowsFrom-> pods shop/web"})
	equal(t, "a pod of another", around("pods", "front/web"), []string{policy + "-allowsFrom-> pods front/web"})
	equal(t, "a pod of a namespace that is let in whole", around("pods", "ops/web"), nil)
	equal(t, "that namespace", around("namespaces", "ops"), []string{policy + "-allowsFrom-> namespaces ops"})

	dangling := func() []string {
		a, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: everything})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, d := range a.Items {
			all = append(all, d.Edge+" "+d.Selector+" in "+d.NamespaceSelector)
		}
		return all
	}
	equal(t, "what selects nothing", dangling(), []string{"allowsTo app=gone in ", "allowsTo  in team=nobody", "allowsTo app=gone in "})

	w.Put("namespaces", "front", `{"metadata":{"labels":{"team":"nobody"}}}`)
	equal(t, "a pod of a namespace that is let in no more", around("pods", "front/web"), nil)
	w.Put("pods", "ops/late", `{"metadata":{"labels":{"app":"gone"}}}`)
	equal(t, "what selects nothing now", dangling(), []string{"allowsTo app=gone in ", "allowsFrom app=web in team in (web)"})
	w.Delete("networkpolicies.networking.k8s.io", "shop/db")
	equal(t, "without the policy", around("pods", "shop/web"), nil)
	w.Resource("namespaces").State = cache.Forbidden
	w.Put("networkpolicies.networking.k8s.io", "shop/db", `{"spec":{"podSelector":{},"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"x"}}}]}]}}`)
	equal(t, "while namespaces cannot be read", dangling(), nil)
}

// TestPeersOfMany: pods that every policy lets its own talk to are not walked
// through to all of them.
func TestPeersOfMany(t *testing.T) {
	w := newWorld(t)
	w.Put("namespaces", "kube-system", `{"metadata":{"labels":{"name":"kube-system"}}}`)
	w.Put("nodes", "n", "")
	w.Put("pods", "kube-system/dns", `{"metadata":{"labels":{"app":"dns"}},"spec":{"nodeName":"n"}}`)
	for i := range crowd + 1 {
		w.Put("networkpolicies.networking.k8s.io", fmt.Sprintf("n%d/dns", i), `{"spec":{"podSelector":{"matchLabels":{"app":"x"}},
			"egress":[{"to":[{"namespaceSelector":{"matchLabels":{"name":"kube-system"}},"podSelector":{"matchLabels":{"app":"dns"}}}]}]}}`)
	}
	two := func(q *Query) { q.Depth, q.Edges = 2, []string{"allowsTo"} }
	a := w.walk("networkpolicies.networking.k8s.io", "n7/dns", two)
	equal(t, "around one of many", a.text(), []string{"networkpolicies.networking.k8s.io n7/dns -allowsTo-> pods kube-system/dns"})
	if !a.Nodes[1].Hub {
		t.Error("the pod is not called a hub")
	}
	if a := w.walk("pods", "kube-system/dns", two); len(a.Edges) != crowd+1 {
		t.Errorf("%d edges around the pod that is asked for, want %d", len(a.Edges), crowd+1)
	}
}

// TestVolumesByUID: a volume whose claim is gone is not that of another claim of
// the same name.
func TestVolumesByUID(t *testing.T) {
	w := newWorld(t)
	w.Put("persistentvolumeclaims", "a/c", `{"metadata":{"uid":"new"},"spec":{"volumeName":"v2"}}`)
	w.Put("persistentvolumes", "v1", `{"spec":{"claimRef":{"namespace":"a","name":"c","uid":"old"}}}`)
	w.Put("persistentvolumes", "v2", `{"spec":{"claimRef":{"namespace":"a","name":"c","uid":"new"}}}`)
	bound := "persistentvolumeclaims a/c -binds-> persistentvolumes v2"
	equal(t, "the claim", w.walk("persistentvolumeclaims", "a/c").text(), []string{bound, bound}) // each names the other
	equal(t, "the volume left behind", w.walk("persistentvolumes", "v1").text(), []string{"persistentvolumeclaims a/c (missing) -binds-> persistentvolumes v1"})
	a, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: everything, Kinds: []schema.GroupResource{{Resource: "persistentvolumes"}}})
	if err != nil || len(a.Items) != 1 || a.Items[0].From.Key.Name != "v1" {
		t.Errorf("dangling = %+v, %v, want the volume left behind", a.Items, err)
	}
}

// TestOwnersByUID: an object of the same name is not the owner.
func TestOwnersByUID(t *testing.T) {
	w := newWorld(t)
	w.Put("replicasets.apps", "a/r", `{"metadata":{"uid":"new"}}`)
	w.Put("pods", "a/p", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"old"}]}}`)
	equal(t, "edges of the pod", w.walk("pods", "a/p").text(), []string{"replicasets.apps a/r (missing) -owns-> pods a/p"})
	equal(t, "edges of the ReplicaSet", w.walk("replicasets.apps", "a/r").text(), nil)

	w.Put("replicasets.apps", "a/r", `{"metadata":{"uid":"old"}}`)
	equal(t, "edges after the owner came", w.walk("replicasets.apps", "a/r").text(), []string{"replicasets.apps a/r -owns-> pods a/p"})
	equal(t, "edges of the pod", w.walk("pods", "a/p").text(), []string{"replicasets.apps a/r -owns-> pods a/p"})
}

// TestUnknown: what the copy cannot tell is not missing.
func TestUnknown(t *testing.T) {
	w := newWorld(t)
	w.Put("pods", "a/p", `{"spec":{"volumes":[{"secret":{"secretName":"s"}},{"configMap":{"name":"c"}}]}}`)
	w.Put("pods", "b/p", `{"spec":{"volumes":[{"configMap":{"name":"c"}}]}}`)
	w.Resource("secrets").State = cache.Forbidden
	maps := w.Resource("configmaps")
	w.Resources = slices.DeleteFunc(w.Resources, func(r *followtest.Resource) bool { return r == maps })
	w.addLine("N configmaps v1 ConfigMap", func(s *cache.Spec) { s.Namespaces = []string{"b"} })
	equal(t, "edges", w.walk("pods", "a/p").text(), []string{"pods a/p -mounts-> secrets a/s (unknown)", "pods a/p -mounts-> configmaps a/c (unknown)"})
	equal(t, "edges", w.walk("pods", "b/p").text(), []string{"pods b/p -mounts-> configmaps b/c (missing)"})

	a, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: everything})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Items) != 1 || a.Items[0].From.Key.Namespace != "b" {
		t.Errorf("dangling = %+v, want that of b only", a.Items)
	}
	if len(a.Unanswered) != 1 || a.Unanswered[0].Spec.Name() != "secrets" {
		t.Errorf("unanswered = %+v, want secrets", a.Unanswered)
	}
}

// TestSelectionsUnreadable: what selects a pod or a namespace that cannot be read
// any more is not looked for.
func TestSelectionsUnreadable(t *testing.T) {
	w := newWorld(t)
	w.Put("namespaces", "a", "")
	w.Put("pods", "a/p", `{"metadata":{"labels":{"app":"x"}}}`)
	w.Put("services", "a/s", `{"spec":{"selector":{"app":"x"}}}`)
	w.walk("pods", "a/p")
	for _, k := range w.graph.all {
		k.view.Hold(nil)
	}
	asked := &walk{sighted: w.graph.seenBy(cache.WholeSight()), rules: w.graph.rules, ctx: t.Context(), query: &Query{}, reaches: map[string][]reach{}, crowds: map[nodeID]bool{}}
	for id := range nodeID(w.graph.nodes.End()) {
		n := w.graph.nodeOf(id)
		if !n.present {
			continue
		}
		if err := asked.selections(id, func(h hop) { t.Errorf("an edge of %s by %s", n.key(), h.rule.Edge) }); err != nil {
			t.Error(err)
		}
	}
}

// TestSiblings: what siblings name is held once, also after they have moved, and none of it is
// left when the last one goes.
func TestSiblings(t *testing.T) {
	w := newWorld(t)
	pod := func(i, node int, config string) {
		w.Put("pods", fmt.Sprintf("a/web-%d", i), fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u"}]},
			"spec":{"nodeName":"node-%d","serviceAccountName":"web","volumes":[{"configMap":{"name":%q}},{"persistentVolumeClaim":{"claimName":"c-%d"}}]}}`, node, config, i%2))
	}
	want := func(node int, config string) []string {
		return []string{fmt.Sprintf("pods a/web-7 -mounts-> configmaps a/%s (missing)", config), "pods a/web-7 -mounts-> persistentvolumeclaims a/c-1 (missing)",
			fmt.Sprintf("pods a/web-7 -runsOn-> nodes node-%d (missing)", node), "pods a/web-7 -runsAs-> serviceaccounts a/web (missing)",
			"replicasets.apps a/web (missing) -owns-> pods a/web-7"}
	}
	for round, config := range []string{"one", "two"} {
		for i := range 60 {
			pod(i, i%3+round, config)
		}
		equal(t, config, w.walk("pods", "a/web-7", func(q *Query) { q.Depth = 1 }).text(), want(7%3+round, config))
		// One for all, one of their owner, and those of three nodes with two claims.
		if n := w.graph.bundles.Len(); n != 1+1+3*2 {
			t.Errorf("60 siblings have %d bundles", n)
		}
	}
	for i := range 60 {
		w.Delete("pods", fmt.Sprintf("a/web-%d", i))
	}
	if _, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: everything}); err != nil {
		t.Fatal(err)
	}
	if s := w.graph.state; s.nodes.Len()+s.aliases.Len()+s.bundles.Len()+s.byEdges.Len()+s.edges > 0 {
		t.Errorf("%d nodes, %d aliases, %d bundles and %d edges are left", s.nodes.Len(), s.aliases.Len(), s.bundles.Len(), s.edges)
	}
}

// TestResourcesComeAndGo: a definition that comes turns what was unknown into
// objects, and back.
func TestResourcesComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.Put("horizontalpodautoscalers.autoscaling", "a/h", `{"spec":{"scaleTargetRef":{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","name":"r"}}}`)
	unknown := []string{"horizontalpodautoscalers.autoscaling a/h -scales-> Rollout.argoproj.io a/r (unknown)"}
	equal(t, "before", w.walk("horizontalpodautoscalers.autoscaling", "a/h").text(), unknown)
	rollouts := w.addLine("N rollouts.argoproj.io v1alpha1 Rollout")
	equal(t, "with the resource", w.walk("horizontalpodautoscalers.autoscaling", "a/h").text(),
		[]string{"horizontalpodautoscalers.autoscaling a/h -scales-> rollouts.argoproj.io a/r (missing)"})
	w.Put("rollouts.argoproj.io", "a/r", "")
	there := []string{"horizontalpodautoscalers.autoscaling a/h -scales-> rollouts.argoproj.io a/r"}
	equal(t, "with the object", w.walk("horizontalpodautoscalers.autoscaling", "a/h").text(), there)
	w.Resources = slices.DeleteFunc(w.Resources, func(r *followtest.Resource) bool { return r == rollouts })
	equal(t, "without the resource", w.walk("horizontalpodautoscalers.autoscaling", "a/h").text(),
		[]string{"horizontalpodautoscalers.autoscaling a/h -scales-> rollouts.argoproj.io a/r (unknown)"})
	w.Resources = append(w.Resources, rollouts)
	equal(t, "with both again", w.walk("horizontalpodautoscalers.autoscaling", "a/h").text(), there)
}

// TestVersionChanges: the cluster serves a resource in another version now.
func TestVersionChanges(t *testing.T) {
	w := newWorld(t)
	body := `{"spec":{"scaleTargetRef":{"apiVersion":"example.com/v1","kind":"Widget","name":"w"}}}`
	w.Put("horizontalpodautoscalers.autoscaling", "a/h", body)
	w.Put("widgets.example.com", "a/w", "")
	want := []string{"horizontalpodautoscalers.autoscaling a/h -scales-> widgets.example.com a/w"}
	equal(t, "in v1", w.walk("widgets.example.com", "a/w").text(), want)
	v1 := w.Resource("widgets.example.com")
	w.Resources = slices.DeleteFunc(w.Resources, func(r *followtest.Resource) bool { return r == v1 })
	w.addLine("N widgets.example.com v2 Widget")
	w.Put("widgets.example.com", "a/w", "")
	equal(t, "in v2", w.walk("widgets.example.com", "a/w").text(), want)
}

func TestDefinitions(t *testing.T) {
	w := newWorld(t)
	w.Put(crds, "widgets.example.com", "")
	w.Put("widgets.example.com", "a/w", "")
	want := []string{crds + " widgets.example.com -defines-> widgets.example.com a/w"}
	equal(t, "edges of the definition", w.walk(crds, "widgets.example.com").text(), want)
	equal(t, "edges of the object", w.walk("widgets.example.com", "a/w").text(), want)
}

func TestDeclared(t *testing.T) {
	w := newWorld(t,
		Rule{Edge: "paints", From: "widgets.example.com", Path: "spec.colors[*]", To: "configmaps"},
		Rule{Edge: "signs", From: "widgets.example.com", Path: "spec.key.name", To: "secrets", NamespacePath: "spec.key.namespace"},
		Rule{Edge: "follows", From: "widgets.example.com", Path: "spec.leader"})
	w.Put("widgets.example.com", "a/w", `{"spec":{"colors":["red",{"name":"blue","namespace":"b"},7],"key":{"namespace":"vault","name":"k"},"leader":{"apiVersion":"v1","kind":"Pod","name":"p"}}}`)
	equal(t, "edges", w.walk("widgets.example.com", "a/w").text(), []string{
		"widgets.example.com a/w -paints-> configmaps a/red (missing)", "widgets.example.com a/w -paints-> configmaps b/blue (missing)",
		"widgets.example.com a/w -signs-> secrets vault/k (missing)", "widgets.example.com a/w -follows-> pods a/p (missing)"})
	if edges := w.graph.Edges(); !slices.Contains(edges, "paints") || !slices.Contains(edges, "owns") || !slices.IsSorted(edges) {
		t.Errorf("Edges() = %v", edges)
	}
	for _, bad := range []Rule{{}, {Edge: "e", From: "pods", Path: "a..b"}, {Edge: "e", From: "pods", Path: "a", NamespacePath: "["},
		{Edge: "e", From: "pods", Path: "a[*]", NamespacePath: "b"}} {
		if _, err := New(nil, Options{Declared: []Rule{bad}}); err == nil {
			t.Errorf("New(%+v) does not fail", bad)
		}
	}
}

// TestDeclareWhileAsked: every answer is whole, by the references of before or of
// after.
func TestDeclareWhileAsked(t *testing.T) {
	w := shop(t)
	w.Put("widgets.example.com", "shop/w", `{"spec":{"color":"web"}}`)
	paints := []Rule{{Edge: "paints", From: "widgets.example.com", Path: "spec.color", To: "configmaps"}}
	var asking sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				a, err := w.graph.Walk(t.Context(), query("configmaps", "shop/web"))
				if err != nil || len(a.Edges) != 3 && len(a.Edges) != 4 {
					t.Errorf("Walk() = %v, %v", a.text(), err)
					return
				}
			}
		})
	}
	for i := range 50 {
		rules := paints
		if i%2 == 1 {
			rules = nil
		}
		if err := w.graph.Declare(rules); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(w.graph.Edges(), "paints"); got != (i%2 == 0) {
			t.Errorf("Edges() has paints: %v", got)
		}
	}
	close(done)
	asking.Wait()
	w.graph.Close()
	if s := w.Resource("pods").Store().Stats().Subscribers; s != 0 {
		t.Errorf("%d subscribers after Close", s)
	}
}

func TestDangling(t *testing.T) {
	w := shop(t)
	w.Put("ingresses.networking.k8s.io", "shop/old", `{"spec":{"rules":[{"http":{"paths":[{"backend":{"service":{"name":"blog"}}}]}}]}}`)
	w.Put("events", "shop/e", `{"involvedObject":{"kind":"Pod","namespace":"shop","name":"deleted"}}`)
	w.Put("pods", "other/p", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u"}]},"spec":{"containers":[{"env":[
		{"valueFrom":{"secretKeyRef":{"name":"s","optional":true}}},{"valueFrom":{"secretKeyRef":{"name":"s"}}}]}]}}`)
	for name, tt := range map[string]struct {
		query DanglingQuery
		want  []string
	}{
		"all": {DanglingQuery{Sight: everything}, []string{
			"ingresses.networking.k8s.io shop/old -routes-> services shop/blog (missing)", "services shop/nothing selects nothing by app=wbe",
			"services other/web selects nothing by app=web", "replicasets.apps other/r (missing) -owns-> pods other/p", "pods other/p -env-> secrets other/s (missing)"}},
		"namespaces": {DanglingQuery{Sight: everything, Namespaces: []string{"sh*"}}, []string{
			"ingresses.networking.k8s.io shop/old -routes-> services shop/blog (missing)", "services shop/nothing selects nothing by app=wbe"}},
		"kinds": {DanglingQuery{Sight: everything, Kinds: []schema.GroupResource{{Resource: "secrets"}}}, []string{"pods other/p -env-> secrets other/s (missing)"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := w.graph.Dangling(t.Context(), tt.query)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "dangling", a.text(), tt.want)
		})
	}
	a, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: everything, Limit: 2})
	if err != nil || len(a.Items) != 2 || !a.Truncated {
		t.Errorf("with limit 2: %+v, %v", a, err)
	}
	w.Put("services", "shop/blog", "")
	w.Put("pods", "shop/late", `{"metadata":{"labels":{"app":"wbe"}}}`)
	a, err = w.graph.Dangling(t.Context(), DanglingQuery{Sight: everything, Namespaces: []string{"shop"}})
	if err != nil || len(a.Items) != 0 {
		t.Errorf("after the repair: %v, %v", a.text(), err)
	}
}

func (a *DanglingAnswer) text() []string {
	var out []string
	for _, d := range a.Items {
		switch from := d.From.text(); {
		case d.To == nil:
			out = append(out, from+" selects nothing by "+d.Selector)
		case d.Edge == "owns":
			out = append(out, d.To.text()+" -owns-> "+from)
		default:
			out = append(out, from+" -"+d.Edge+"-> "+d.To.text())
		}
	}
	return out
}

// TestConcurrent: any goroutine may ask, and gets what is true now, while stores
// change.
func TestConcurrent(t *testing.T) {
	w := shop(t)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := w.graph.Walk(t.Context(), query("deployments.apps", "shop/web", func(q *Query) { q.Depth = 4 })); err != nil {
					t.Error(err)
				}
				if _, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: everything}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 300 {
		name := fmt.Sprintf("shop/cm-%d", i%7)
		w.Put("configmaps", name, "")
		w.Put("pods", "shop/other", `{"spec":{"volumes":[{"configMap":{"name":"`+name[5:]+`"}}]}}`)
		equal(t, "what was just written", w.walk("pods", "shop/other", func(q *Query) { q.Edges = []string{"mounts"} }).text(),
			[]string{"pods shop/other -mounts-> configmaps " + name})
		if i%3 == 0 {
			w.Delete("configmaps", name)
		}
	}
	close(done)
	readers.Wait()
}

func TestCancelled(t *testing.T) {
	w := shop(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.graph.Walk(ctx, query("deployments.apps", "shop/web")); !errors.Is(err, context.Canceled) {
		t.Errorf("Walk() = %v, want context.Canceled", err)
	}
	if a := w.walk("deployments.apps", "shop/web"); len(a.Edges) != 1 {
		t.Errorf("after that: %v", a.text())
	}
}

// TestClose: it gives everything back, and begins anew.
func TestClose(t *testing.T) {
	w := shop(t)
	before := w.walk("deployments.apps", "shop/web").text()
	if n := w.graph.Stats(); n.Nodes == 0 || n.Edges == 0 || n.Unread != 0 {
		t.Errorf("Stats() = %+v", n)
	}
	w.graph.Close()
	if n := w.graph.Stats(); n != (Stats{}) {
		t.Errorf("Stats() after Close = %+v", n)
	}
	if s := w.Resource("pods").Store().Stats().Subscribers; s != 0 {
		t.Errorf("%d subscribers after Close", s)
	}
	equal(t, "graph", w.walk("deployments.apps", "shop/web").text(), before)
}
