package graph

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// model is a cluster as plain maps. It computes relations the long way round,
// from all objects each time, and shares no code with the Graph.
type model map[string]map[string]object // by resource, by namespace/name

// named lists where the objects of the model name others.
var named = []struct{ from, path, edge, to string }{
	{"pods", "spec.nodeName", "runsOn", "nodes"},
	{"pods", "spec.serviceAccountName", "runsAs", "serviceaccounts"},
	{"pods", "spec.volumes.*.configMap.name", "mounts", "configmaps"},
	{"pods", "spec.volumes.*.secret.secretName", "mounts", "secrets"},
	{"pods", "spec.containers.*.envFrom.*.configMapRef.name", "env", "configmaps"},
	{"pods", "spec.initContainers.*.env.*.valueFrom.secretKeyRef.name", "env", "secrets"},
	{"persistentvolumeclaims", "spec.volumeName", "binds", "persistentvolumes"},
	{"ingresses.networking.k8s.io", "spec.rules.*.http.paths.*.backend.service.name", "routes", "services"},
	{"serviceaccounts", "imagePullSecrets.*.name", "pulls", "secrets"},
}

var clusterScoped = []string{"nodes", "persistentvolumes", "namespaces"}

const policies = "networkpolicies.networking.k8s.io"

// at lists the values at a path; * is every element.
func at(v any, path string) []any {
	if path == "" {
		return []any{v}
	}
	step, rest, _ := strings.Cut(path, ".")
	var out []any
	switch v := v.(type) {
	case []any:
		if step == "*" {
			for _, e := range v {
				out = append(out, at(e, rest)...)
			}
		}
	case map[string]any:
		if below, ok := v[step]; ok {
			out = at(below, rest)
		}
	}
	return out
}

func (m model) label(resource, id string) string {
	text := resource + " " + id
	if _, ok := m[resource][id]; !ok {
		text += " (missing)"
	}
	return text
}

// edges lists the relations between all objects.
func (m model) edges() []string {
	var out []string
	for _, n := range named {
		for id, o := range m[n.from] {
			namespace, _, _ := strings.Cut(id, "/")
			for _, name := range at(map[string]any(o), n.path) {
				target := fmt.Sprint(name)
				if !slices.Contains(clusterScoped, n.to) {
					target = namespace + "/" + target
				}
				out = append(out, m.label(n.from, id)+" -"+n.edge+"-> "+m.label(n.to, target))
			}
		}
	}
	for resource, objects := range m {
		for id, o := range objects {
			for _, ref := range at(map[string]any(o), "metadata.ownerReferences.*") {
				out = append(out, m.owner(id, ref.(map[string]any))+" -owns-> "+m.label(resource, id))
			}
		}
	}
	for id := range m["services"] {
		for _, pod := range m.selected(id) {
			out = append(out, "services "+id+" -selects-> pods "+pod)
		}
	}
	for id := range m[policies] {
		for _, peer := range m.peers(id) {
			for _, target := range peer.found {
				out = append(out, policies+" "+id+" -"+peer.edge+"-> "+target)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// peer is what one selector of a NetworkPolicy selects.
type peer struct {
	edge  string
	found []string
	any   bool // it would take anything
	// across says that there is a selector of namespaces, and ofPods one of pods;
	// in are the namespaces of these.
	across, ofPods bool
	in             map[string]bool
}

// peers of a policy, its own pods first.
func (m model) peers(id string) []peer {
	own, _, _ := strings.Cut(id, "/")
	policy := map[string]any(m[policies][id])
	all := []peer{m.peer("selects", own, map[string]any{"podSelector": at(policy, "spec.podSelector")[0]})}
	for edge, path := range map[string]string{"allowsFrom": "spec.ingress.*.from.*", "allowsTo": "spec.egress.*.to.*"} {
		for _, p := range at(policy, path) {
			all = append(all, m.peer(edge, own, p.(map[string]any)))
		}
	}
	return all
}

func (m model) peer(edge, own string, p map[string]any) peer {
	out := peer{edge: edge, any: true}
	pods, ofPods := p["podSelector"]
	spaces, ofSpaces := p["namespaceSelector"]
	has := func(o object, selector any) bool {
		labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
		for _, wanted := range at(selector, "matchLabels") {
			for k, v := range wanted.(map[string]any) {
				out.any = false
				if labels[k] != v {
					return false
				}
			}
		}
		return true
	}
	has(object{"metadata": map[string]any{}}, pods)
	has(object{"metadata": map[string]any{}}, spaces)
	in := map[string]bool{}
	if !ofSpaces {
		in[own] = true
	}
	out.across, out.ofPods, out.in = ofSpaces, ofPods, in
	for name, o := range m["namespaces"] {
		if ofSpaces && has(o, spaces) {
			if in[name] = true; !ofPods {
				out.found = append(out.found, "namespaces "+name)
			}
		}
	}
	for id, o := range m["pods"] {
		if namespace, _, _ := strings.Cut(id, "/"); ofPods && in[namespace] && has(o, pods) {
			out.found = append(out.found, "pods "+id)
		}
	}
	return out
}

func (m model) owner(id string, ref map[string]any) string {
	for resource, objects := range m {
		for owner, o := range objects {
			if o["metadata"].(map[string]any)["uid"] == ref["uid"] {
				return resource + " " + owner
			}
		}
	}
	namespace, _, _ := strings.Cut(id, "/")
	return fmt.Sprintf("replicasets.apps %s/%s (missing)", namespace, ref["name"])
}

func (m model) selected(service string) (pods []string) {
	namespace, _, _ := strings.Cut(service, "/")
	selector := at(map[string]any(m["services"][service]), "spec.selector")
	if len(selector) == 0 || len(selector[0].(map[string]any)) == 0 {
		return nil
	}
	for id, o := range m["pods"] {
		have, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
		matches := strings.HasPrefix(id, namespace+"/")
		for k, v := range selector[0].(map[string]any) {
			matches = matches && have[k] == v
		}
		if matches {
			pods = append(pods, id)
		}
	}
	return pods
}

// dangling lists what is named and not there, and Services that select nothing, as
// far as sight can tell.
func (m model) dangling(sight cache.Sight) (out []string) {
	for _, e := range m.edgesTo(sight) {
		if strings.Contains(e, "(missing)") {
			out = append(out, e)
		}
	}
	for id, o := range m["services"] {
		namespace, _, _ := strings.Cut(id, "/")
		if len(at(map[string]any(o), "spec.selector")) > 0 && len(m.selected(id)) == 0 && sight.Of(podResource).Namespace(namespace) {
			out = append(out, "services "+id+" selects nothing")
		}
	}
	for id := range m[policies] {
		for _, p := range m.peers(id) {
			if len(p.found) == 0 && !p.any && p.sure(sight) {
				out = append(out, policies+" "+id+" selects nothing")
			}
		}
	}
	return out
}

// random makes objects that name each other often enough.
type random struct{ *rand.Rand }

func (r random) pick(options ...string) string { return options[r.IntN(len(options))] }
func (r random) name() string                  { return r.pick("a", "b", "c", "d") }
func (r random) id() string                    { return r.pick("x", "y") + "/" + r.name() }

// labels is a LabelSelector, now and then an empty one.
func (r random) labels(key string) string {
	return r.pick(`{}`, fmt.Sprintf(`{"matchLabels":{%q:%q}}`, key, r.name()), fmt.Sprintf(`{"matchLabels":{%q:%q}}`, key, r.name()))
}

func (r random) peer() string {
	return r.pick(`{"ipBlock":{"cidr":"10.0.0.0/8"}}`, `{"podSelector":`+r.labels("app")+`}`, `{"namespaceSelector":`+r.labels("team")+`}`,
		`{"podSelector":`+r.labels("app")+`,"namespaceSelector":`+r.labels("team")+`}`)
}

func (r random) object(resource string) (id string, o object) {
	text := map[string]string{
		"pods": fmt.Sprintf(`{"metadata":{"labels":{"app":%q,"tier":%q},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":%q,"uid":"rs-%s-%d"}]},
			"spec":{"nodeName":%q,"serviceAccountName":%q,"volumes":[{"configMap":{"name":%q}},{"secret":{"secretName":%q}}],
			"containers":[{"envFrom":[{"configMapRef":{"name":%q}},{"configMapRef":{"name":%q}}]}],"initContainers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":%q}}}]}]}}`,
			r.name(), r.name(), r.name(), r.name(), r.IntN(3), r.name(), r.name(), r.name(), r.name(), r.name(), r.name(), r.name()),
		"replicasets.apps":            `{}`,
		"services":                    r.pick(`{"spec":{}}`, fmt.Sprintf(`{"spec":{"selector":{"app":%q}}}`, r.name()), fmt.Sprintf(`{"spec":{"selector":{"app":%q,"tier":%q}}}`, r.name(), r.name())),
		"ingresses.networking.k8s.io": fmt.Sprintf(`{"spec":{"rules":[{"http":{"paths":[{"backend":{"service":{"name":%q}}},{"backend":{"service":{"name":%q}}}]}}]}}`, r.name(), r.name()),
		"persistentvolumeclaims":      fmt.Sprintf(`{"spec":{"volumeName":%q}}`, r.name()),
		"serviceaccounts":             fmt.Sprintf(`{"imagePullSecrets":[{"name":%q}]}`, r.name()),
		"namespaces":                  fmt.Sprintf(`{"metadata":{"labels":{"team":%q}}}`, r.name()),
		policies: fmt.Sprintf(`{"spec":{"podSelector":%s,"ingress":[{"from":[%s,%s]},{"from":[%s]}],"egress":[{"to":[%s]}]}}`,
			r.labels("app"), r.peer(), r.peer(), r.peer(), r.peer()),
	}[resource]
	o = object{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
	}
	id = r.id()
	if slices.Contains(clusterScoped, resource) {
		id = r.name()
	}
	if resource == "namespaces" {
		id = r.pick("x", "y")
	}
	if resource == "replicasets.apps" {
		// Of the owners that pods name, in the one namespace the name is found.
		name := r.name()
		id = "x/" + name
		o["metadata"] = map[string]any{"uid": fmt.Sprintf("rs-%s-%d", name, r.IntN(3))}
	}
	return id, o
}

var modelled = []string{"pods", "pods", "pods", "replicasets.apps", "services", "ingresses.networking.k8s.io", "persistentvolumeclaims",
	"serviceaccounts", "configmaps", "secrets", "nodes", "persistentvolumes", "namespaces", policies}

// TestModel: after any events the Graph that followed them equals one made anew,
// and both equal the model.
func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 1))}
			w, m := newWorld(t), model{}
			for round := range 30 {
				for range 1 + r.IntN(20) {
					w.step(r, m)
				}
				w.compare(m, round)
			}
		})
	}
}

// step changes one object, or now and then relists a resource.
func (w *world) step(r random, m model) {
	resource := r.pick(modelled...)
	if m[resource] == nil {
		m[resource] = map[string]object{}
	}
	switch id, o := r.object(resource); {
	case r.IntN(40) == 0:
		w.relist(resource, m)
	case r.IntN(3) == 0:
		if _, ok := m[resource][id]; ok {
			w.Apply(cache.Deleted, resource, id, m[resource][id])
			delete(m[resource], id)
		}
	default:
		if resource == "pods" { // an owner is of the pod's namespace, or it is none
			owner := o["metadata"].(map[string]any)["ownerReferences"].([]any)[0].(map[string]any)
			owner["name"] = strings.Split(owner["uid"].(string), "-")[1]
			if !strings.HasPrefix(id, "x/") {
				owner["uid"] = "nobody"
			}
		}
		w.Apply(cache.Modified, resource, id, o)
		m[resource][id] = o
	}
}

// relist makes a store equal the model less a few objects at once.
func (w *world) relist(resource string, m model) {
	r := w.Resource(resource)
	for _, id := range slices.Sorted(maps.Keys(m[resource]))[:len(m[resource])/3] {
		delete(m[resource], id)
	}
	var objects []*cache.Object
	for _, o := range m[resource] {
		raw, err := json.Marshal(o)
		if err != nil {
			w.TB.Fatal(err)
		}
		decoded, err := r.Store().Decode(raw, "", "")
		if err != nil {
			w.TB.Fatal(err)
		}
		objects = append(objects, decoded)
	}
	r.Store().Replace("", objects, w.NextVersion())
}

func (w *world) compare(m model, round int) {
	w.TB.Helper()
	want := m.edges()
	followed := w.graph
	w.compareTo(m, everything, fmt.Sprintf("round %d: the graph that followed", round))
	w.graph = w.newGraph()
	equal(w.TB, fmt.Sprintf("round %d: the graph made anew", round), w.allEdges(m, everything), want)
	anew := w.graph.Stats()
	w.graph.Close()
	w.graph = followed
	if s := followed.Stats(); s != anew {
		w.TB.Errorf("round %d: the graph that followed holds %+v, one made anew %+v", round, s, anew)
	}
	if w.TB.Failed() {
		w.TB.FailNow()
	}
}

// compareTo compares what the graph shows to a sight with a model of what it sees.
func (w *world) compareTo(m model, sight cache.Sight, what string) {
	w.TB.Helper()
	equal(w.TB, what, w.allEdges(m, sight), m.edgesTo(sight))
	a, err := w.graph.Dangling(w.TB.Context(), DanglingQuery{Sight: sight})
	if err != nil {
		w.TB.Fatal(err)
	}
	got := a.text()
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " by ")
	}
	equal(w.TB, what+": what dangles", got, m.dangling(sight))
}

// allEdges walks one step from every object of the model.
func (w *world) allEdges(m model, sight cache.Sight) []string {
	var all []string
	for resource, objects := range m {
		for id := range objects {
			all = append(all, w.walk(resource, id, func(q *Query) { q.Sight = sight }).text()...)
		}
	}
	all = slices.DeleteFunc(all, func(edge string) bool { return strings.Contains(edge, "-contains->") })
	slices.Sort(all)
	return slices.Compact(all)
}
