package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/informerd/informerd/cache"
)

// wide is a Store of many namespaces, one of which is cluster scope.
type wide struct {
	t       *testing.T
	r       *rand.Rand
	store   *cache.Store
	spaces  int
	objects int
	version int
}

func newWide(t *testing.T, r *rand.Rand) *wide {
	s, err := cache.NewStore(oddSpec(), cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &wide{t: t, r: r, store: s, spaces: 1 + r.IntN(60), objects: 1 + r.IntN(500)}
	var objects []*cache.Object
	for i := range w.objects {
		if r.IntN(3) > 0 {
			objects = append(objects, w.object(i))
		}
	}
	s.Replace("", objects, strconv.Itoa(w.version))
	return w
}

func space(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint("ns-", n)
}

// object i has a name that others have in other namespaces.
func (w *wide) object(i int) *cache.Object {
	w.version++
	raw := fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":"t-%d","uid":"u%d","resourceVersion":"%d","labels":{"app":%q}},"spec":{"w":%q,"v":%s}}`,
		space(i%w.spaces), i/w.spaces, i, w.version, pick(w.r, "a", "b"), pick(w.r, "1", "2", "a"), pick(w.r, `"1"`, `"a"`, `"100m"`, `2`))
	o, err := w.store.Decode(raw, "example.com/v1", "Thing")
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *wide) change() {
	o := w.object(w.r.IntN(w.objects))
	w.store.Apply("", pick(w.r, cache.Added, cache.Modified, cache.Deleted), o)
}

// scope is of fewer or more namespaces than there are, some of which do not exist, and of
// names that are sooner found one by one, or by looking at every object.
func (w *wide) scope() cache.Scope {
	var namespaces []string
	for range w.r.IntN(pick(w.r, 2, 1+w.spaces/2, 4*w.spaces)) {
		namespaces = append(namespaces, space(1+w.r.IntN(2*w.spaces)))
	}
	if w.r.IntN(5) == 0 {
		namespaces = append(namespaces, "")
	}
	names := map[string][]string{}
	for range w.r.IntN(pick(w.r, 1, 4, 100)) {
		ns := pick(w.r, "", space(w.r.IntN(w.spaces)), space(w.r.IntN(w.spaces)))
		names[ns] = append(names[ns], fmt.Sprint("t-", w.r.IntN(2+w.objects/w.spaces)))
	}
	return cache.NewScope(namespaces, names)
}

func (w *wide) query() cache.Query {
	var q cache.Query
	if w.r.IntN(3) == 0 {
		q.Namespaces = pick(w.r, []string{"ns-1", "ns-2"}, []string{"ns-1*"}, []string{"*"})
	}
	if w.r.IntN(3) == 0 {
		q.Labels = mustLabels(w.t, pick(w.r, "app=a", "app!=a", "!app"))
	}
	if w.r.IntN(2) == 0 {
		q.Terms = []cache.Term{{Index: "w", Value: pick(w.r, "1", "2", "none")}}
	}
	if w.r.IntN(3) == 0 {
		q.Filter = mustFilter(w.t, rangeExpression(w.r))
	}
	return q
}

// compare has q answered as somebody who sees what scope does, and as who sees all.
func (w *wide) compare(scope cache.Scope, q cache.Query) {
	w.t.Helper()
	every, err := w.store.Select(w.t.Context(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	want := slices.DeleteFunc(every.Objects, func(o *cache.Object) bool { return !scope.Sees(o.Key()) })
	got, err := reader(w.store, scope).Select(w.t.Context(), q)
	if err != nil || !slices.Equal(got.Objects, want) {
		w.t.Fatalf("%+v of %v and %v: %v, want %v (%v)", q, scope.Namespaces(), scope.Names(), names(got.Objects), names(want), err)
	}
}

// TestFirstQuestions: of what is found for who sees all, somebody is answered with what
// they see, however it is found which rows that are; when they ask for the first time, and
// after changes.
func TestFirstQuestions(t *testing.T) {
	for seed := range uint64(40) {
		w := newWide(t, rand.New(rand.NewPCG(seed, 19)))
		for range 12 {
			scope := w.scope()
			w.compare(scope, w.query())
			w.compare(scope, cache.Query{})
			for range 10 {
				w.change()
			}
			w.compare(scope, w.query())
		}
		cache.CheckContents(t, w.store)
	}
}
