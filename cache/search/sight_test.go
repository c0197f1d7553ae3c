package search

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/filter"
)

// seen is the model without what a sight does not see.
func (m model) seen(sight cache.Sight) model {
	out := model{}
	for resource, things := range m {
		out[resource] = maps.Clone(things)
		maps.DeleteFunc(out[resource], func(id string, _ thing) bool { return !sees(sight, resource, id) })
	}
	return out
}

func sees(sight cache.Sight, resource, id string) bool {
	namespace, name, _ := strings.Cut(id, "/")
	return sight.Sees(schema.ParseGroupResource(resource), cache.Key{Namespace: namespace, Name: name})
}

// sight sees some of the objects that there are or could be.
func (r random) sight() cache.Sight {
	scopes := map[schema.GroupResource]cache.Scope{}
	for _, resource := range []string{"pods", "configmaps", "secrets"} {
		var scope cache.Scope
		switch r.IntN(5) {
		case 0:
		case 1:
			scope = cache.WholeScope()
		case 2:
			scope = cache.NewScope([]string{r.pick("a", "web")}, nil)
		case 3:
			scope = cache.NewScope(nil, map[string][]string{"a": {r.name(), r.word()}, "": {r.word()}})
		default:
			scope = cache.NewScope([]string{"a", "b-shop"}, map[string][]string{"web": {r.word(), r.word()}})
		}
		scopes[schema.GroupResource{Resource: resource}] = scope
	}
	return cache.NewSight(scopes)
}

// TestModelSeen: what somebody finds is what a look at every object that is seen
// would.
func TestModelSeen(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 5))}
			w, m := newWorld(t, Options{}), model{"pods": {}, "configmaps": {}}
			for range 20 {
				for range 1 + r.IntN(15) {
					w.step(r, m)
				}
				for range 12 {
					sight := r.sight()
					w.compareAs(sight, r.question(), m.seen(sight))
				}
				w.compareAs(cache.Sight{}, r.question(), model{})
			}
		})
	}
}

// withins restrict a search; the filters have no value for some objects.
func withins(t *testing.T) (all []*cache.Query) {
	for _, text := range []string{"object.metadata.annotations.Note != ''", "object.spec.containers[1].image.startsWith('reg')", "object.metadata.labels.tier < 'n'"} {
		f, err := filter.Compile(text, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &cache.Query{Filter: f}, &cache.Query{Filter: f, Namespaces: []string{"a", "w*"}})
	}
	return append(all, nil, nil, &cache.Query{Namespaces: []string{"web"}})
}

// TestSeenAlone: an answer is the same with all that its asker does not see, and
// without, whatever happens there meanwhile.
func TestSeenAlone(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 6))}
			w, m := newWorld(t, Options{}), model{"pods": {}, "configmaps": {}}
			within := withins(t)
			for range 15 {
				for range 1 + r.IntN(30) {
					w.step(r, m)
				}
				w.Resource("secrets").State = cache.State(r.pick(string(cache.Live), string(cache.Forbidden)))
				sight := r.sight()
				bare := w.without(m, sight)
				for range 10 {
					question := r.question()
					change := func(q *Query) { q.Within, q.Limit = within[r.IntN(len(within))], 1+r.IntN(9) }
					var asked Query
					note := func(q *Query) { change(q); asked = *q }
					again := func(q *Query) { *q = asked }
					want := bare.told(sight, question, note)
					if got := w.told(sight, question, again); !reflect.DeepEqual(got, want) {
						t.Fatalf("%s: with what is not seen\n got %+v\nwant %+v", question, got, want)
					}
					for range r.IntN(20) {
						w.stepHidden(r, m, sight)
					}
					if got := w.told(sight, question, again); !reflect.DeepEqual(got, want) {
						t.Fatalf("%s: after changes of what is not seen\n got %+v\nwant %+v", question, got, want)
					}
				}
				bare.search.Close()
			}
		})
	}
}

// told is all that an answer says, with those unanswered by name.
func (w *world) told(sight cache.Sight, question string, change func(*Query)) *Answer {
	w.TB.Helper()
	_, a := w.findAs(sight, question, change)
	for i := range a.Unanswered {
		a.Unanswered[i] = cache.View{Spec: cache.Spec{Resource: a.Unanswered[i].Spec.Resource}, State: a.Unanswered[i].State}
	}
	return a
}

// without is a world of its own with what a sight sees alone, in the same states.
func (w *world) without(m model, sight cache.Sight) *world {
	bare := newWorld(w.TB, Options{})
	for resource, things := range m.seen(sight) {
		for id, o := range things {
			bare.put(resource, id, o)
		}
	}
	for i, r := range w.Resources {
		bare.Resources[i].State = r.State
	}
	return bare
}

// stepHidden changes an object that is not seen, if it happens upon one.
func (w *world) stepHidden(r random, m model, sight cache.Sight) {
	resource, id := r.pick("pods", "configmaps"), r.pick("a", "web", "b-shop")+"/"+r.name()
	if sees(sight, resource, id) {
		return
	}
	if _, ok := m[resource][id]; ok && r.IntN(2) == 0 {
		delete(m[resource], id)
		w.Delete(resource, id)
		return
	}
	m[resource][id] = r.thing()
	w.put(resource, id, m[resource][id])
}

// TestRankingTellsNothingHidden: neither order nor points, counts, cuts or texts of
// an answer change with objects that are not seen, however many have its words and
// however well they fit.
func TestRankingTellsNothingHidden(t *testing.T) {
	w := shop(t)
	w.Put("configmaps", "pay/web-notes", `{"data":{"note":"web"}}`)
	scopes := map[schema.GroupResource]cache.Scope{}
	for _, resource := range []string{"pods", "configmaps", "deployments.apps", "services"} {
		scopes[schema.ParseGroupResource(resource)] = cache.NewScope([]string{"shop", "pay"}, nil)
	}
	sight := cache.NewSight(scopes)
	three := func(q *Query) { q.Limit = 3 }
	questions := []string{"web", "we", "web ns:*", "frontend", "kind:deploy", "shop", "team-x", "w"}
	var want []*Answer
	for _, q := range questions {
		want = append(want, w.told(sight, q, three))
	}
	if hits, a := w.findAs(sight, "web", three); a.Total != 6 || !slices.Equal(hits, []string{"deployments.apps shop/web", "pods shop/web-1-x", "configmaps pay/web-notes"}) {
		t.Errorf("found %v of %d", hits, a.Total)
	}
	for i := range 500 { // better, shorter and more frequent
		w.Put("deployments.apps", fmt.Sprintf("team-%d/web", i), `{"metadata":{"labels":{"app":"web","frontend":"web"}}}`)
		w.Put("secrets", fmt.Sprintf("shop/web%d", i), `{"metadata":{"labels":{"app":"web"}}}`)
		w.Put("namespaces", fmt.Sprintf("web-%d", i), "")
	}
	w.Put("configmaps", "team-x/web", "")
	for i, q := range questions {
		if got := w.told(sight, q, three); !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%s:\n got %+v\nwant %+v", q, got, want[i])
		}
	}
	for id := range 500 {
		w.Delete("deployments.apps", fmt.Sprintf("team-%d/web", id))
	}
	for i, q := range questions {
		if got := w.told(sight, q, three); !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%s, after deletions:\n got %+v\nwant %+v", q, got, want[i])
		}
	}
}

// TestSeenFaults: of a filter's faults those count that are of what is seen, and the
// first is one of these.
func TestSeenFaults(t *testing.T) {
	w := newWorld(t, Options{})
	for _, ns := range []string{"a", "b", "c"} {
		w.Put("pods", ns+"/web", "")
	}
	f, err := filter.Compile("object.spec.nodeName == 'n'", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	sight := cache.NewSight(map[schema.GroupResource]cache.Scope{{Resource: "pods"}: cache.NewScope([]string{"b"}, map[string][]string{"c": {"web"}})})
	_, a := w.findAs(sight, "web", func(q *Query) { q.Within = &cache.Query{Filter: f} })
	if a.Total != 0 || a.Faults.Count != 2 || a.Faults.Key != (cache.Key{Namespace: "b", Name: "web"}) {
		t.Errorf("found %d, faults %+v", a.Total, a.Faults)
	}
}

// TestSeenUnanswered: what cannot be read is told to those who may read of it, and
// who sees nothing finds nothing.
func TestSeenUnanswered(t *testing.T) {
	w := shop(t)
	w.Resource("secrets").State, w.Resource("configmaps").State = cache.Forbidden, cache.Forbidden
	sight := cache.NewSight(map[schema.GroupResource]cache.Scope{{Resource: "secrets"}: cache.NewScope([]string{"b"}, nil)})
	if _, a := w.findAs(sight, "web"); a.Total != 0 || len(a.Unanswered) != 1 || a.Unanswered[0].Spec.Name() != "secrets" {
		t.Errorf("found %d, unanswered %+v", a.Total, a.Unanswered)
	}
	if _, a := w.findAs(cache.Sight{}, "web"); a.Total != 0 || len(a.Unanswered) != 0 || len(a.Kinds) != 0 || len(a.Namespaces) != 0 {
		t.Errorf("who sees nothing finds %+v", a)
	}
}
