package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

// sightOf sees what lines say: a resource, and what of it is seen: * for all, a
// namespace with a slash (/ for cluster scope), or namespace/name or name.
func sightOf(lines ...string) cache.Sight {
	scopes := map[schema.GroupResource]cache.Scope{}
	for _, line := range lines {
		f := strings.Fields(line)
		var namespaces []string
		names := map[string][]string{}
		for _, what := range f[1:] {
			namespace, name, _ := strings.Cut(what, "/")
			switch {
			case !strings.Contains(what, "/"):
				names[""] = append(names[""], what)
			case name == "":
				namespaces = append(namespaces, namespace)
			default:
				names[namespace] = append(names[namespace], name)
			}
		}
		scope := cache.NewScope(namespaces, names)
		if slices.Contains(f, "*") {
			scope = cache.WholeScope()
		}
		scopes[schema.ParseGroupResource(f[0])] = scope
	}
	return cache.NewSight(scopes)
}

func keyOf(id string) cache.Key {
	namespace, name, ok := strings.Cut(id, "/")
	if !ok {
		return cache.Key{Name: id}
	}
	return cache.Key{Namespace: namespace, Name: name}
}

// as is a query by who has a sight.
func as(sight cache.Sight) func(*Query) { return func(q *Query) { q.Sight = sight } }

// seen is the model without what a sight does not see.
func (m model) seen(sight cache.Sight) model {
	out := model{}
	for resource, objects := range m {
		out[resource] = maps.Clone(objects)
		maps.DeleteFunc(out[resource], func(id string, _ object) bool {
			return !sight.Sees(schema.ParseGroupResource(resource), keyOf(id))
		})
	}
	return out
}

var missingEnd = regexp.MustCompile(`(\S+) (\S+) \(missing\)`)

// edgesTo are the edges of a model of what a sight sees. What it does not see it
// does not know to be missing.
func (m model) edgesTo(sight cache.Sight) []string {
	all := m.edges()
	for i := range all {
		all[i] = missingEnd.ReplaceAllStringFunc(all[i], func(end string) string {
			f := strings.Fields(end)
			if sight.Sees(schema.ParseGroupResource(f[0]), keyOf(f[1])) {
				return end
			}
			return f[0] + " " + f[1] + " (unknown)"
		})
	}
	return all
}

// sure reports whether a sight sees all that a peer might select.
func (p peer) sure(sight cache.Sight) bool {
	if p.across && !sight.Of(namespaceResource).Namespace("") {
		return false
	}
	for namespace := range p.in {
		if p.ofPods && !sight.Of(podResource).Namespace(namespace) {
			return false
		}
	}
	return true
}

// odd is an object that the model does not know the relations of.
func (r random) odd() (resource, id, body string) {
	uid := func(resource, id string) string {
		return r.pick(followtest.UID(resource, id), followtest.UID(resource, id), "another")
	}
	switch r.IntN(5) {
	case 0:
		target := r.pick(`"apiVersion":"apps/v1","kind":"Deployment"`, `"apiVersion":"argoproj.io/v1","kind":"Rollout"`,
			`"apiVersion":"v1","kind":"Namespace"`, `"apiVersion":"v1","kind":"ConfigMap"`, `"kind":"foo","apiVersion":"example.org/v1"`)
		return "horizontalpodautoscalers.autoscaling", r.id(), fmt.Sprintf(`{"spec":{"scaleTargetRef":{%s,"name":%q}}}`, target, r.pick(r.name(), "x", "y"))
	case 1:
		return crds, r.pick("widgets.example.com", "foos.example.org"), `{}`
	case 2:
		id, owner := r.id(), r.name()
		namespace, _, _ := strings.Cut(id, "/")
		return "widgets.example.com", id, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q}]},"spec":{"foo":%q,"map":%q}}`,
			owner, uid("configmaps", namespace+"/"+owner), r.name(), r.name())
	case 3:
		claim := r.id()
		namespace, name, _ := strings.Cut(claim, "/")
		return "persistentvolumes", r.name(), fmt.Sprintf(`{"spec":{"claimRef":{"namespace":%q,"name":%q,"uid":%q}}}`, namespace, name, uid("persistentvolumeclaims", claim))
	default:
		return "deployments.apps", r.id(), fmt.Sprintf(`{"spec":{"template":{"spec":{"serviceAccountName":%q,"volumes":[{"configMap":{"name":%q}}]}}}}`, r.name(), r.name())
	}
}

// odds are references to what the cluster may not know.
var odds = []Rule{
	{Edge: "foos", From: "widgets.example.com", Path: "spec.foo", To: "foo.example.org"},
	{Edge: "maps", From: "widgets.example.com", Path: "spec.map", To: "configmaps"},
}

var oddResources = []string{"horizontalpodautoscalers.autoscaling", crds, "widgets.example.com", "deployments.apps"}

// sight sees some of the objects that there are or could be.
func (r random) sight() cache.Sight {
	var lines []string
	for _, resource := range slices.Concat(modelled, oddResources, []string{"foo.example.org"}) {
		switch r.IntN(6) {
		case 0:
		case 1:
			lines = append(lines, resource+" *")
		case 2:
			lines = append(lines, resource+" x/")
		case 3:
			lines = append(lines, resource+" y/ / x/"+r.name())
		case 4:
			lines = append(lines, resource+" x/"+r.name()+" "+r.name()+" "+r.pick("x", "y"))
		default:
			lines = append(lines, resource+" x/ y/ /")
		}
	}
	return sightOf(lines...)
}

// TestModelSeen: what somebody is shown is what there is to see, and what that says
// of others, by a model that has nothing else.
func TestModelSeen(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 3))}
			w, m := newWorld(t), model{}
			for round := range 20 {
				for range 1 + r.IntN(20) {
					w.step(r, m)
				}
				for range 4 {
					sight := r.sight()
					w.compareTo(m.seen(sight), sight, fmt.Sprintf("round %d", round))
				}
				w.compareTo(model{}, cache.Sight{}, "who sees nothing")
				if t.Failed() {
					t.FailNow()
				}
			}
		})
	}
}

// TestSeenAlone: an answer is the same with all that its asker does not see, and
// without, whatever happens there meanwhile.
func TestSeenAlone(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 4))}
			w, m := newWorld(t, odds...), model{}
			for round := range 12 {
				for range 5 + r.IntN(40) {
					w.stepOdd(r, m)
				}
				w.Resource("secrets").State = cache.State(r.pick(string(cache.Live), string(cache.Forbidden)))
				sight := r.sight()
				bare := w.without(m, sight)
				questions := r.questions(sight)
				want := bare.answers(questions)
				w.sameAnswers(questions, want, fmt.Sprintf("round %d: with what is not seen", round))
				for range 1 + r.IntN(30) {
					w.stepHidden(r, m, sight)
				}
				w.sameAnswers(questions, want, fmt.Sprintf("round %d: after changes of what is not seen", round))
				bare.graph.Close()
			}
		})
	}
}

func (w *world) stepOdd(r random, m model) {
	if r.IntN(2) == 0 {
		w.step(r, m)
		return
	}
	resource, id, body := r.odd()
	if m[resource] == nil {
		m[resource] = map[string]object{}
	}
	if held, ok := m[resource][id]; ok && r.IntN(3) == 0 {
		w.Apply(cache.Deleted, resource, id, held)
		delete(m[resource], id)
		return
	}
	o := object{}
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		w.TB.Fatal(err)
	}
	w.Apply(cache.Modified, resource, id, o)
	m[resource][id] = o
}

// stepHidden changes an object that is not seen, if it happens upon one.
func (w *world) stepHidden(r random, m model, sight cache.Sight) {
	resource := r.pick(modelled...)
	id, o := r.object(resource)
	if r.IntN(2) == 0 {
		var body string
		resource, id, body = r.odd()
		if o = (object{}); json.Unmarshal([]byte(body), &o) != nil {
			w.TB.Fatal(body)
		}
	}
	if sight.Sees(schema.ParseGroupResource(resource), keyOf(id)) {
		return
	}
	if m[resource] == nil {
		m[resource] = map[string]object{}
	}
	if held, ok := m[resource][id]; ok && r.IntN(2) == 0 {
		w.Apply(cache.Deleted, resource, id, held)
		delete(m[resource], id)
		return
	}
	w.Apply(cache.Modified, resource, id, o)
	m[resource][id] = o
}

// without is a world of its own with what a sight sees alone, in the same states.
func (w *world) without(m model, sight cache.Sight) *world {
	bare := newWorld(w.TB, odds...)
	for resource, objects := range m.seen(sight) {
		for id, o := range objects {
			own := maps.Clone(o) // it gets a version of this world
			own["metadata"] = maps.Clone(o["metadata"].(map[string]any))
			bare.Apply(cache.Modified, resource, id, own)
		}
	}
	for i, r := range w.Resources {
		bare.Resources[i].State = r.State
	}
	return bare
}

// questions are walks from all that there could be, and for all that dangles.
func (r random) questions(sight cache.Sight) (all []any) {
	resources := slices.Concat(modelled[2:], oddResources, []string{"foo.example.org", "nothing.example.com"})
	some := func(from ...string) (out []schema.GroupResource) {
		for range r.IntN(3) {
			out = append(out, schema.ParseGroupResource(r.pick(from...)))
		}
		return out
	}
	for _, resource := range resources {
		ids := []string{"x", "y", "widgets.example.com", "a", "b", "c", "d"}
		if !slices.Contains(clusterScoped, resource) && resource != crds {
			ids = []string{"x/a", "x/b", "x/c", "x/d", "y/a", "y/b", "y/c", "y/d"}
		}
		for _, id := range ids {
			all = append(all, query(resource, id, as(sight), func(q *Query) {
				q.Depth, q.Direction, q.Limit = 1+r.IntN(4), Direction(r.IntN(3)), r.pick2(1000, 1+r.IntN(8))
				if r.IntN(4) == 0 {
					q.Edges = []string{r.pick("contains", "owns", "mounts"), r.pick("contains", "allowsFrom", "defines")}
				}
				if r.IntN(4) == 0 {
					q.Kinds = some(resources...)
				}
				q.Through = some("namespaces", "nodes", crds)
			}))
		}
	}
	all = append(all, DanglingQuery{Sight: sight})
	return append(all, DanglingQuery{Sight: sight, Kinds: some(resources...), Limit: 1 + r.IntN(3)})
}

func (r random) pick2(a, b int) int {
	if r.IntN(2) == 0 {
		return a
	}
	return b
}

// told is all that an answer says, but for the version of the copy.
type told struct {
	nodes      []Node
	edges      []Edge
	dangling   []string
	truncated  bool
	unanswered []string
	view       string
	err        error
}

func (w *world) answers(questions []any) (all []told) {
	w.TB.Helper()
	for _, q := range questions {
		var out told
		var unanswered []cache.View
		switch q := q.(type) {
		case Query:
			var a *Answer
			if a, out.err = w.graph.Walk(w.TB.Context(), q); a != nil {
				out.nodes, out.edges, out.truncated, unanswered = a.Nodes, a.Edges, a.Truncated, a.Unanswered
				out.view = fmt.Sprintf("%s is %q", a.View.Spec.Name(), a.View.State)
			}
		case DanglingQuery:
			a, err := w.graph.Dangling(w.TB.Context(), q)
			if err != nil {
				w.TB.Fatal(err)
			}
			for _, d := range a.Items {
				text := fmt.Sprintf("%+v %s %s %q %q", d.From, d.Edge, d.Why, d.Selector, d.NamespaceSelector)
				if d.To != nil {
					text += fmt.Sprintf(" %+v", *d.To)
				}
				out.dangling = append(out.dangling, text)
			}
			out.truncated, unanswered = a.Truncated, a.Unanswered
		}
		for _, v := range unanswered {
			out.unanswered = append(out.unanswered, v.Spec.Name())
		}
		all = append(all, out)
	}
	return all
}

func (w *world) sameAnswers(questions []any, want []told, what string) {
	w.TB.Helper()
	for i, got := range w.answers(questions) {
		if !reflect.DeepEqual(got, want[i]) {
			w.TB.Fatalf("%s: %+v\n got %+v\nwant %+v", what, questions[i], got, want[i])
		}
	}
}

// TestHiddenIsNeverMissing: what is named and not seen is unknown, whether it is
// there or not, and nothing is said of it but what its name says.
func TestHiddenIsNeverMissing(t *testing.T) {
	w := newWorld(t)
	w.Put("pods", "a/p", `{"metadata":{"labels":{"app":"p"},"ownerReferences":[
			{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"there","uid":"`+followtest.UID("replicasets.apps", "a/there")+`"},
			{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"gone","uid":"u1"},
			{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"renewed","uid":"u2"}]},
		"spec":{"nodeName":"n","volumes":[{"secret":{"secretName":"there"}},{"secret":{"secretName":"gone"}},{"configMap":{"name":"seen"}}]}}`)
	w.Put("replicasets.apps", "a/there", "")
	w.Put("replicasets.apps", "a/renewed", "")
	w.Put("secrets", "a/there", "")
	w.Put("nodes", "n", "")
	w.Put("namespaces", "b", `{"metadata":{"labels":{"team":"b"}}}`)
	w.Put("services", "a/of-others", `{"spec":{"selector":{"app":"hidden"}}}`)
	w.Put("services", "b/of-others", `{"spec":{"selector":{"app":"hidden"}}}`)
	w.Put("networkpolicies.networking.k8s.io", "a/n", `{"spec":{"podSelector":{"matchLabels":{"app":"p"}},"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"b"}}}]}]}}`)
	w.Put("pods", "b/hidden", `{"metadata":{"labels":{"app":"hidden"}},"spec":{"volumes":[{"configMap":{"name":"nothing"}}]}}`)
	sight := sightOf("pods a/", "configmaps *", "secrets b/", "services *", "networkpolicies.networking.k8s.io *")

	a := w.walk("pods", "a/p", as(sight), func(q *Query) { q.Depth = 3 })
	equal(t, "around the pod", a.text(), []string{
		"replicasets.apps a/there (unknown) -owns-> pods a/p", "replicasets.apps a/gone (unknown) -owns-> pods a/p", "replicasets.apps a/renewed (unknown) -owns-> pods a/p",
		"pods a/p -runsOn-> nodes n (unknown)", "pods a/p -mounts-> secrets a/there (unknown)", "pods a/p -mounts-> secrets a/gone (unknown)",
		"pods a/p -mounts-> configmaps a/seen (missing)", "networkpolicies.networking.k8s.io a/n -selects-> pods a/p"})
	for _, n := range a.Nodes {
		owner := n.Resource == "replicasets.apps"
		if n.Unknown && (n.State != "" || n.Hub || n.UID != "" && !owner) {
			t.Errorf("of %s there is %+v", n.text(), n)
		}
	}

	d, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: sight})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "what dangles", d.text(), []string{"pods a/p -mounts-> configmaps a/seen (missing)", "services a/of-others selects nothing by app=hidden"})

	for _, q := range []Query{
		query("secrets", "a/there", as(sight)), query("secrets", "a/gone", as(sight)), query("secrets", "a/other", as(sight)),
		query("pods", "b/hidden", as(sight)), query("configmaps", "b/nothing", as(sight)), // named by what is not seen alone
	} {
		if a, err := w.graph.Walk(t.Context(), q); !errors.Is(err, cache.ErrNotFound) || a == nil || a.View.State != cache.Live || len(a.Nodes) > 0 {
			t.Errorf("from %s %s: %+v, %v, want not found", q.Resource, q.Key, a, err)
		}
	}
}

// TestSeenFromOneEnd: a relation that only its hidden end tells of is not there.
func TestSeenFromOneEnd(t *testing.T) {
	w := shop(t)
	w.Put(crds, "widgets.example.com", "")
	w.Put("widgets.example.com", "shop/w", "")
	for what, tt := range map[string]struct {
		from, id string
		sight    []string
		change   func(*Query)
		want     []string
	}{
		"pods of a ReplicaSet": {"replicasets.apps", "shop/web-1", []string{"replicasets.apps *", "deployments.apps *", "pods shop/web-1-a"}, nil, []string{
			"replicasets.apps shop/web-1 -owns-> pods shop/web-1-a", "deployments.apps shop/web -owns-> replicasets.apps shop/web-1"}},
		"who mounts a ConfigMap": {"configmaps", "shop/web", []string{"configmaps *", "pods other/ shop/other"}, nil, []string{
			"pods shop/other -mounts-> configmaps shop/web"}},
		"through a ConfigMap that is not seen": {"pods", "shop/other", []string{"pods *"}, func(q *Query) { q.Depth, q.Edges = 3, []string{"mounts"} }, []string{
			"pods shop/other -mounts-> configmaps shop/web (unknown)"}},
		"what a Service selects": {"services", "shop/web", []string{"services *", "pods shop/web-1-b"}, nil, []string{
			"services shop/web -selects-> pods shop/web-1-b"}},
		"what selects a pod": {"pods", "shop/web-1-a", []string{"pods *", "services other/", "poddisruptionbudgets.policy shop/"}, func(q *Query) { q.Edges = []string{"selects"} }, []string{
			"poddisruptionbudgets.policy shop/web -selects-> pods shop/web-1-a"}},
		"what a Namespace contains": {"namespaces", "shop", []string{"namespaces shop", "configmaps shop/", "secrets *", "pods shop/other"}, nil, []string{
			"namespaces shop -contains-> configmaps shop/web", "namespaces shop -contains-> pods shop/other"}},
		"a Namespace that is not seen": {"configmaps", "shop/web", []string{"namespaces other", "configmaps *"}, func(q *Query) { q.Edges = []string{"contains"} }, nil},
		"a definition":                 {"widgets.example.com", "shop/w", []string{"widgets.example.com *"}, nil, nil},
		"objects of a definition":      {crds, "widgets.example.com", []string{crds + " *", "widgets.example.com other/"}, nil, nil},
	} {
		t.Run(what, func(t *testing.T) {
			change := tt.change
			if change == nil {
				change = func(*Query) {}
			}
			equal(t, what, w.walk(tt.from, tt.id, as(sightOf(tt.sight...)), change).text(), tt.want)
		})
	}
}

// TestSeenPeers: labels of namespaces that are not seen select nothing.
func TestSeenPeers(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"web", "ops"} {
		w.Put("namespaces", name, `{"metadata":{"labels":{"team":"friend"}}}`)
		w.Put("pods", name+"/p", "")
	}
	w.Put("networkpolicies.networking.k8s.io", "shop/n", `{"spec":{"podSelector":{"matchLabels":{"app":"x"}},
		"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"friend"}},"podSelector":{}},{"namespaceSelector":{"matchLabels":{"team":"friend"}}}]}]}}`)
	const policy = "networkpolicies.networking.k8s.io"
	sight := as(sightOf("pods *", policy+" *", "namespaces web"))
	equal(t, "from the policy", w.walk(policy, "shop/n", sight).text(), []string{
		policy + " shop/n -allowsFrom-> pods web/p", policy + " shop/n -allowsFrom-> namespaces web"})
	equal(t, "from a pod in a namespace that is seen", w.walk("pods", "web/p", sight).text(), []string{policy + " shop/n -allowsFrom-> pods web/p"})
	equal(t, "from a pod in one that is not", w.walk("pods", "ops/p", sight).text(), nil)
	equal(t, "without the policy", w.walk("pods", "web/p", as(sightOf("pods *", policy+" web/", "namespaces *"))).text(), nil)
}

// TestSeenCrowd: those that are not seen make nothing a hub, and count for no limit.
func TestSeenCrowd(t *testing.T) {
	w := newWorld(t)
	w.Put("namespaces", "a", `{"metadata":{"labels":{"name":"a"}}}`)
	w.Put("pods", "a/dns", `{"metadata":{"labels":{"app":"dns"}}}`)
	for i := range 2 * crowd {
		w.Put("pods", fmt.Sprintf("a/p%d", i), `{"spec":{"serviceAccountName":"s"}}`)
		w.Put("networkpolicies.networking.k8s.io", fmt.Sprintf("n%d/n", i), `{"spec":{"podSelector":{},"egress":[{"to":[
			{"namespaceSelector":{"matchLabels":{"name":"a"}},"podSelector":{"matchLabels":{"app":"dns"}}}]}]}}`)
	}
	w.Put("serviceaccounts", "a/s", "")
	const policy = "networkpolicies.networking.k8s.io"
	few := sightOf("pods a/p1 a/p2 a/p3 a/dns", "serviceaccounts *", policy+" n1/ n2/", "namespaces *")
	for what, tt := range map[string]struct {
		from, id, edge string
		edges          int
	}{
		"an account": {"pods", "a/p1", "runsAs", 3}, "a pod that policies allow": {policy, "n1/n", "allowsTo", 2},
	} {
		a := w.walk(tt.from, tt.id, as(few), func(q *Query) { q.Depth, q.Edges, q.Limit = 2, []string{tt.edge}, tt.edges+1 })
		if len(a.Edges) != tt.edges || a.Nodes[1].Hub || a.Truncated {
			t.Errorf("%s: %v, hub %v, truncated %v, want %d edges", what, a.text(), a.Nodes[1].Hub, a.Truncated, tt.edges)
		}
	}
}

// TestSeenUnanswered: what cannot be read is told to those who may read of it.
func TestSeenUnanswered(t *testing.T) {
	w := shop(t)
	w.Resource("secrets").State, w.Resource("nodes").State = cache.Forbidden, cache.Forbidden
	sight := sightOf("pods *", "secrets other/")
	a := w.walk("pods", "shop/other", as(sight))
	d, err := w.graph.Dangling(t.Context(), DanglingQuery{Sight: sight})
	if err != nil {
		t.Fatal(err)
	}
	for _, unanswered := range [][]cache.View{a.Unanswered, d.Unanswered} {
		if len(unanswered) != 1 || unanswered[0].Spec.Name() != "secrets" {
			t.Errorf("unanswered = %+v, want secrets", unanswered)
		}
	}
}

// TestSightless: a question without a Sight finds nothing.
func TestSightless(t *testing.T) {
	w := shop(t)
	if _, err := w.graph.Walk(t.Context(), query("pods", "shop/other", as(cache.Sight{}))); !errors.Is(err, cache.ErrNotFound) {
		t.Errorf("Walk() = %v, want ErrNotFound", err)
	}
	if a, err := w.graph.Dangling(t.Context(), DanglingQuery{}); err != nil || len(a.Items) > 0 {
		t.Errorf("Dangling() = %+v, %v", a, err)
	}
}
