package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestGraph: what informerd relates equals what follows, the long way round,
// from the JSON of the API server.
func TestGraph(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime, "pods", "deployments.apps", "secrets", "clusterrolebindings.rbac.authorization.k8s.io")

	for _, tt := range []struct {
		what, root, direction string
		depth                 int
	}{
		{"around a Deployment", "deployments.apps/shop/frontend", "both", 3},
		{"around a Deployment, near", "deployments.apps/payments/reporting", "both", 1},
		{"what a Deployment needs", "deployments.apps/shop/checkout", "out", 4},
		{"what uses a Secret", "secrets/shop/shop-credentials", "in", 5},
		{"what uses a ConfigMap that is not there", "configmaps/team-a/importer-mappings", "in", 3},
		{"what runs on a node", "nodes/-/" + firstNode(t, c), "in", 1},
		{"behind an Ingress", "ingresses.networking.k8s.io/shop/shop", "out", 3},
		{"what a StatefulSet needs", "statefulsets.apps/data/kafka", "out", 2},
		{"objects of a definition", "customresourcedefinitions.apiextensions.k8s.io/-/queues.messaging.example.com", "out", 1},
		{"what a ServiceAccount may do", "serviceaccounts/shop/shop", "in", 1},
		{"whom a NetworkPolicy lets in", "networkpolicies.networking.k8s.io/data/postgres", "out", 1},
		{"what lets in a namespace", "networkpolicies.networking.k8s.io/shop/allow-ingress", "both", 2},
		{"what uses a PriorityClass", "priorityclasses.scheduling.k8s.io/-/system-node-critical", "in", 2},
	} {
		t.Run(tt.what, func(t *testing.T) {
			query := url.Values{"depth": {fmt.Sprint(tt.depth)}, "direction": {tt.direction}, "limit": {"5000"}}
			harness.Eventually(t, time.Minute, "the graph to equal the API server's objects", func() error {
				truth, err := relationsOf(c, i)
				if err != nil {
					return err
				}
				var got graph
				if err := i.Read("/v1/graph/"+tt.root+"?"+query.Encode(), &got); err != nil {
					return err
				}
				want := truth.walk(tt.root, tt.depth, tt.direction)
				if len(want) == 0 || got.Truncated {
					return fmt.Errorf("%d edges expected, truncated = %v", len(want), got.Truncated)
				}
				return errors.Join(same(got.edges(), want), got.checkNodes(truth))
			})
		})
	}

	t.Run("what dangles", func(t *testing.T) {
		harness.Eventually(t, time.Minute, "what dangles to equal the API server's objects", func() error {
			truth, err := relationsOf(c, i)
			if err != nil {
				return err
			}
			items, err := readDangling(i, "/v1/graph/dangling")
			if err != nil {
				return err
			}
			for _, known := range []string{ // the demo cluster's faults
				"services/shop/checkout-canary selects", "ingresses.networking.k8s.io/shop/old-blog routes services/shop/blog",
				"deployments.apps/team-a/legacy-importer mounts configmaps/team-a/importer-mappings",
				"persistentvolumeclaims/team-a/scratch class storageclasses.storage.k8s.io/-/fast-local",
			} {
				if !slices.Contains(items, known) {
					return fmt.Errorf("%s is not listed", known)
				}
			}
			return same(items, truth.dangling())
		})
	})
}

func firstNode(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	list, err := c.List(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "")
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("no nodes: %v", err)
	}
	return list.Items[0].Name()
}

type graphNode struct {
	ID, Resource, UID string
	Missing, Unknown  bool
}

// graph is an answer of informerd.
type graph struct {
	Truncated bool
	Nodes     []graphNode
	Edges     []struct{ From, To, Edge, Why string }
}

func (g *graph) edges() (all []string) {
	for _, e := range g.Edges {
		all = append(all, e.From+" "+e.Edge+" "+e.To)
	}
	slices.Sort(all)
	return slices.Compact(all) // several places of an object may name the same
}

// readDangling reads what dangles: "from edge to", or "from edge" of a selector.
func readDangling(i *harness.Informerd, url string) (items []string, err error) {
	var got struct {
		Items []struct {
			From, To       graphNode
			Edge, Selector string
		}
	}
	err = i.Read(url, &got)
	for _, d := range got.Items {
		items = append(items, strings.TrimSpace(d.From.ID+" "+d.Edge+" "+d.To.ID))
	}
	return items, err
}

// checkNodes compares which nodes are there, and who they are.
func (g *graph) checkNodes(truth *relations) error {
	for _, n := range g.Nodes {
		o, ok := truth.objects[n.ID]
		if n.Missing == ok || n.Unknown || ok && o.UID() != n.UID {
			return fmt.Errorf("node %+v, of the API server: %v with UID %q", n, ok, o.UID())
		}
	}
	return nil
}

// relations are all objects of a cluster and all their edges, as "from edge to"
// with ids like those of the API.
type relations struct {
	objects  map[string]harness.Object
	byUID    map[string]string
	edges    map[string]bool
	optional map[string]bool
	nothing  []string // what selects nothing
}

// references lists where objects of the demo cluster name others. To ends with a
// slash for resources at cluster scope.
var references = func() (all []reference) {
	pod := func(from, spec string) {
		add := func(edge, path, to string) { all = append(all, reference{from, edge, spec + path, to}) }
		add("runsAs", ".serviceAccountName", "serviceaccounts")
		add("pulls", ".imagePullSecrets.*.name", "secrets")
		add("mounts", ".volumes.*.configMap.name", "configmaps")
		add("mounts", ".volumes.*.secret.secretName", "secrets")
		add("mounts", ".volumes.*.projected.sources.*.configMap.name", "configmaps")
		add("mounts", ".volumes.*.projected.sources.*.secret.name", "secrets")
		add("mounts", ".volumes.*.persistentVolumeClaim.claimName", "persistentvolumeclaims")
		add("class", ".priorityClassName", "priorityclasses.scheduling.k8s.io/")
		add("class", ".runtimeClassName", "runtimeclasses.node.k8s.io/")
		add("class", ".volumes.*.ephemeral.volumeClaimTemplate.spec.storageClassName", "storageclasses.storage.k8s.io/")
		for _, containers := range []string{".containers", ".initContainers", ".ephemeralContainers"} {
			add("env", containers+".*.env.*.valueFrom.configMapKeyRef.name", "configmaps")
			add("env", containers+".*.env.*.valueFrom.secretKeyRef.name", "secrets")
			add("env", containers+".*.envFrom.*.configMapRef.name", "configmaps")
			add("env", containers+".*.envFrom.*.secretRef.name", "secrets")
		}
	}
	pod("pods", "spec")
	for _, w := range []string{"deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "replicationcontrollers"} {
		pod(w, "spec.template.spec")
	}
	pod("cronjobs.batch", "spec.jobTemplate.spec.template.spec")
	return append(all,
		reference{"pods", "runsOn", "spec.nodeName", "nodes/"},
		reference{"statefulsets.apps", "servedBy", "spec.serviceName", "services"},
		reference{"persistentvolumeclaims", "binds", "spec.volumeName", "persistentvolumes/"},
		reference{"persistentvolumeclaims", "class", "spec.storageClassName", "storageclasses.storage.k8s.io/"},
		reference{"persistentvolumes", "class", "spec.storageClassName", "storageclasses.storage.k8s.io/"},
		reference{"statefulsets.apps", "class", "spec.volumeClaimTemplates.*.spec.storageClassName", "storageclasses.storage.k8s.io/"},
		reference{"persistentvolumes", "driver", "spec.csi.driver", "csidrivers.storage.k8s.io/"},
		reference{"storageclasses.storage.k8s.io", "driver", "provisioner", "csidrivers.storage.k8s.io/"},
		reference{"csinodes.storage.k8s.io", "driver", "spec.drivers.*.name", "csidrivers.storage.k8s.io/"},
		reference{"volumeattachments.storage.k8s.io", "driver", "spec.attacher", "csidrivers.storage.k8s.io/"},
		reference{"flowschemas.flowcontrol.apiserver.k8s.io", "class", "spec.priorityLevelConfiguration.name", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io/"},
		reference{"validatingadmissionpolicybindings.admissionregistration.k8s.io", "applies", "spec.policyName", "validatingadmissionpolicies.admissionregistration.k8s.io/"},
		reference{"ingresses.networking.k8s.io", "class", "spec.ingressClassName", "ingressclasses.networking.k8s.io/"},
		reference{"ingresses.networking.k8s.io", "routes", "spec.rules.*.http.paths.*.backend.service.name", "services"},
		reference{"ingresses.networking.k8s.io", "routes", "spec.defaultBackend.service.name", "services"},
		reference{"ingresses.networking.k8s.io", "tls", "spec.tls.*.secretName", "secrets"},
		reference{"endpointslices.discovery.k8s.io", "endpoint", "endpoints.*.targetRef.name", "pods"},
		reference{"serviceaccounts", "pulls", "imagePullSecrets.*.name", "secrets"},
		reference{"serviceaccounts", "holds", "secrets.*.name", "secrets"},
	)
}()

type reference struct{ from, edge, path, to string }

// relationsOf takes everything from the API server.
func relationsOf(c *harness.Cluster, i *harness.Informerd) (*relations, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resources, err := i.Resources()
	if err != nil {
		return nil, err
	}
	r := &relations{objects: map[string]harness.Object{}, byUID: map[string]string{}, edges: map[string]bool{}, optional: map[string]bool{}}
	of := map[string][]harness.Object{}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if resources[name].State == "unwatched" {
			continue
		}
		gvr := schema.GroupVersionResource{Group: resources[name].Group, Version: resources[name].Version, Resource: resources[name].Resource}
		list, err := c.List(ctx, gvr, "")
		if err != nil {
			return nil, err
		}
		of[name] = list.Items
		for _, o := range list.Items {
			r.objects[idOf(name, o)], r.byUID[o.UID()] = o, idOf(name, o)
		}
	}
	for name, objects := range of {
		for _, o := range objects {
			r.relate(name, o)
		}
	}
	r.relateSelectors("services", "spec.selector", of)
	r.relateSelectors("poddisruptionbudgets.policy", "spec.selector.matchLabels", of)
	r.relateSelectors("networkpolicies.networking.k8s.io", "spec.podSelector.matchLabels", of)
	r.relatePeers("allowsFrom", "spec.ingress.*.from.*", of)
	r.relatePeers("allowsTo", "spec.egress.*.to.*", of)
	return r, nil
}

func idOf(resource string, o harness.Object) string { return id(resource, o.Namespace(), o.Name()) }

func id(resource, namespace, name string) string {
	return resource + "/" + cmp.Or(namespace, "-") + "/" + name
}

func (r *relations) add(from, edge, to string) { r.edges[from+" "+edge+" "+to] = true }

// relate enters what one object says.
func (r *relations) relate(resource string, o harness.Object) {
	self := idOf(resource, o)
	for _, owner := range at(o, "metadata.ownerReferences.*.uid") {
		r.add(r.byUID[owner.(string)], "owns", self)
	}
	for _, ref := range references {
		if ref.from != resource {
			continue
		}
		to, clusterScope := strings.CutSuffix(ref.to, "/")
		namespace := o.Namespace()
		if clusterScope {
			namespace = ""
		}
		parent, field := "", ref.path
		if dot := strings.LastIndex(ref.path, "."); dot >= 0 {
			parent, field = ref.path[:dot], ref.path[dot+1:]
		}
		for _, p := range at(o, parent) {
			for _, name := range at(p, field) {
				edge := self + " " + ref.edge + " " + id(to, namespace, name.(string))
				if m, _ := p.(map[string]any); m["optional"] == true || resource == "replicasets.apps" || ref.edge == "driver" {
					r.optional[edge] = true
				}
				r.edges[edge] = true
			}
		}
	}
	r.relateKinds(resource, self, o)
}

// relateKinds enters references that say what kind they name.
func (r *relations) relateKinds(resource, self string, o harness.Object) {
	text := func(v any, path string) string {
		for _, s := range at(v, path) {
			return s.(string)
		}
		return ""
	}
	switch resource {
	case "horizontalpodautoscalers.autoscaling":
		resources := map[string]string{"Deployment": "deployments.apps", "StatefulSet": "statefulsets.apps"}
		r.add(self, "scales", id(resources[text(o, "spec.scaleTargetRef.kind")], o.Namespace(), text(o, "spec.scaleTargetRef.name")))
	case "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io":
		role := id("clusterroles.rbac.authorization.k8s.io", "", text(o, "roleRef.name"))
		if text(o, "roleRef.kind") == "Role" {
			role = id("roles.rbac.authorization.k8s.io", o.Namespace(), text(o, "roleRef.name"))
		}
		r.add(self, "grants", role)
		for _, s := range at(o, "subjects.*") {
			if text(s, "kind") == "ServiceAccount" {
				r.add(self, "subject", id("serviceaccounts", text(s, "namespace"), text(s, "name")))
			}
		}
	case "endpointslices.discovery.k8s.io":
		if service := o.Labels()["kubernetes.io/service-name"]; service != "" {
			r.add(id("services", o.Namespace(), service), "slices", self)
		}
	case "apiservices.apiregistration.k8s.io":
		for _, s := range at(o, "spec.service") {
			if s != nil {
				r.add(self, "calls", id("services", text(s, "namespace"), text(s, "name")))
			}
		}
	case "persistentvolumes":
		if name := text(o, "spec.claimRef.name"); name != "" {
			r.add(id("persistentvolumeclaims", text(o, "spec.claimRef.namespace"), name), "binds", self)
		}
	case "ingressclasses.networking.k8s.io":
		if text(o, "spec.parameters.kind") == "ConfigMap" {
			r.add(self, "parameters", id("configmaps", text(o, "spec.parameters.namespace"), text(o, "spec.parameters.name")))
		}
	case "customresourcedefinitions.apiextensions.k8s.io":
		for other := range r.objects {
			if strings.HasPrefix(other, o.Name()+"/") {
				r.add(self, "defines", other)
			}
		}
	}
}

// relateSelectors enters the pods that objects of a resource select by labels at path.
func (r *relations) relateSelectors(resource, path string, of map[string][]harness.Object) {
	for _, o := range of[resource] {
		found := at(o, path)
		if len(found) == 0 && resource == "services" {
			continue
		}
		labels := map[string]any{} // of an empty podSelector
		if len(found) > 0 {
			labels, _ = found[0].(map[string]any)
		}
		selected := 0
		for _, pod := range of["pods"] {
			matches := pod.Namespace() == o.Namespace()
			for k, v := range labels {
				matches = matches && pod.Labels()[k] == v
			}
			if matches {
				selected++
				r.add(idOf(resource, o), "selects", idOf("pods", pod))
			}
		}
		if selected == 0 && len(labels) > 0 {
			r.nothing = append(r.nothing, idOf(resource, o)+" selects")
		}
	}
}

// relatePeers enters what NetworkPolicies allow their pods to talk with, by the
// labels of pods and namespaces.
func (r *relations) relatePeers(edge, path string, of map[string][]harness.Object) {
	wants := func(peer any, selector string) (labels map[string]any, given bool) {
		found := at(peer, selector)
		if len(found) == 0 {
			return nil, false
		}
		for _, l := range at(found[0], "matchLabels") {
			labels, _ = l.(map[string]any)
		}
		return labels, true
	}
	has := func(o harness.Object, labels map[string]any) bool {
		for k, v := range labels {
			if o.Labels()[k] != v {
				return false
			}
		}
		return true
	}
	for _, policy := range of["networkpolicies.networking.k8s.io"] {
		for _, peer := range at(policy, path) {
			pods, ofPods := wants(peer, "podSelector")
			spaces, ofSpaces := wants(peer, "namespaceSelector")
			in, selected := map[string]bool{policy.Namespace(): !ofSpaces}, 0
			for _, ns := range of["namespaces"] {
				if ofSpaces && has(ns, spaces) {
					if in[ns.Name()] = true; !ofPods {
						selected++
						r.add(idOf("networkpolicies.networking.k8s.io", policy), edge, idOf("namespaces", ns))
					}
				}
			}
			for _, pod := range of["pods"] {
				if ofPods && in[pod.Namespace()] && has(pod, pods) {
					selected++
					r.add(idOf("networkpolicies.networking.k8s.io", policy), edge, idOf("pods", pod))
				}
			}
			if selected == 0 && len(pods)+len(spaces) > 0 {
				r.nothing = append(r.nothing, idOf("networkpolicies.networking.k8s.io", policy)+" "+edge)
			}
		}
	}
}

// at lists the values at a path; * is every element.
func at(v any, path string) []any {
	if path == "" {
		return []any{v}
	}
	step, rest, _ := strings.Cut(path, ".")
	if o, ok := v.(harness.Object); ok {
		v = map[string]any(o)
	}
	var out []any
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, at(e, rest)...)
		}
	case map[string]any:
		if below, ok := v[step]; ok {
			out = at(below, rest)
		}
	}
	return out
}

// hub says where walks end.
func hub(id string) bool {
	for _, prefix := range []string{"nodes/", "namespaces/", "storageclasses.storage.k8s.io/", "ingressclasses.networking.k8s.io/",
		"priorityclasses.scheduling.k8s.io/", "runtimeclasses.node.k8s.io/", "csidrivers.storage.k8s.io/",
		"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io/", "clusterroles.rbac.authorization.k8s.io/", "customresourcedefinitions.apiextensions.k8s.io/"} {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return strings.HasPrefix(id, "serviceaccounts/") && strings.HasSuffix(id, "/default") || strings.HasSuffix(id, "/kube-root-ca.crt")
}

// walk lists the edges within depth of root.
func (r *relations) walk(root string, depth int, direction string) []string {
	near := map[string]bool{root: true}
	walked := map[string]bool{}
	for range depth {
		next := maps.Clone(near)
		for e := range r.edges {
			parts := strings.Split(e, " ")
			from, to := parts[0], parts[2]
			if near[from] && (from == root || !hub(from)) && direction != "in" {
				next[to], walked[e] = true, true
			}
			if near[to] && (to == root || !hub(to)) && direction != "out" {
				next[from], walked[e] = true, true
			}
		}
		near = next
	}
	return slices.Sorted(maps.Keys(walked))
}

// dangling lists references to what is not there and what selects nothing.
func (r *relations) dangling() []string {
	all := slices.Clone(r.nothing)
	for e := range r.edges {
		to := e[strings.LastIndex(e, " ")+1:]
		if _, ok := r.objects[to]; !ok && !r.optional[e] {
			all = append(all, e)
		}
	}
	return all
}

// same compares two sets.
func same(got, want []string) error {
	var differ []string
	for _, s := range got {
		if !slices.Contains(want, s) {
			differ = append(differ, "+ "+s)
		}
	}
	for _, s := range want {
		if !slices.Contains(got, s) {
			differ = append(differ, "- "+s)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("%d differences (+ informerd's, - the API server's):\n%s", len(differ), strings.Join(differ[:min(len(differ), 20)], "\n"))
}
