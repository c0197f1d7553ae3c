package cache_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// twoStores are a Store, and one that only ever held what a Scope sees of it, read by
// those who may see no more.
type twoStores struct {
	t          *testing.T
	r          *rand.Rand
	scope      cache.Scope
	full, part *cache.Store
	seen, same *cache.Reader // of full and part, by scope
	all        *cache.Reader // of part, by who sees all
	version    int
}

func reader(s *cache.Store, scope cache.Scope) *cache.Reader {
	return new(cache.View).Hold(s).Reader(scope)
}

func randomScope(r *rand.Rand) cache.Scope {
	some := func(all ...string) (picked []string) {
		for _, s := range all {
			if r.IntN(3) == 0 {
				picked = append(picked, s)
			}
		}
		return picked
	}
	var names []string
	for i := range 160 {
		names = append(names, "a-"+strconv.Itoa(i), "b-"+strconv.Itoa(i), "t-"+strconv.Itoa(i))
	}
	byNamespace := map[string][]string{}
	for _, ns := range some("", "x", "xy", "z", "none") {
		byNamespace[ns] = some(names...)
	}
	return cache.NewScope(some("x", "xy", "y", "z", "none"), byNamespace)
}

func newTwoStores(t *testing.T, r *rand.Rand) *twoStores {
	tt := &twoStores{t: t, r: r, scope: randomScope(r), version: 1000}
	tt.full, _ = oddStores(t, nil)
	tt.part, _ = oddStores(t, nil)
	tt.seen, tt.same = reader(tt.full, tt.scope), reader(tt.part, tt.scope)
	tt.all = reader(tt.part, cache.WholeScope())
	return tt
}

func (tt *twoStores) thing(i int) string {
	if i%2 == 0 {
		return oddThing(tt.r, i, tt.version)
	}
	return sortThing(tt.r, sortPools[pick(tt.r, slices.Sorted(maps.Keys(sortPools))...)], i, tt.version)
}

// replace lists objects anew; there may be none at first.
func (tt *twoStores) replace(n int) {
	tt.version++
	var all, seen []*cache.Object
	for i := range n {
		raw := []byte(tt.thing(i))
		all = append(all, tt.decode(tt.full, raw))
		if o := tt.decode(tt.part, raw); tt.scope.Sees(o.Key()) {
			seen = append(seen, o)
		}
	}
	tt.full.Replace("", all, strconv.Itoa(tt.version))
	tt.part.Replace("", seen, strconv.Itoa(tt.version))
}

func (tt *twoStores) decode(s *cache.Store, raw []byte) *cache.Object {
	o, err := s.Decode(raw, "example.com/v1", "Thing")
	if err != nil {
		tt.t.Fatal(err)
	}
	return o
}

// change is an event; one of what is not seen is no more than another version.
func (tt *twoStores) change() {
	tt.version++
	raw := []byte(tt.thing(tt.r.IntN(160)))
	kind := pick(tt.r, cache.Added, cache.Modified, cache.Deleted)
	o := tt.decode(tt.full, raw)
	tt.full.Apply("", kind, o)
	if tt.scope.Sees(o.Key()) {
		tt.part.Apply("", kind, tt.decode(tt.part, raw))
	} else {
		tt.part.Bookmark("", strconv.Itoa(tt.version))
	}
	// An event that changes nothing may leave the version alone.
	tt.full.Bookmark("", strconv.Itoa(tt.version))
	tt.part.Bookmark("", strconv.Itoa(tt.version))
}

func (tt *twoStores) query() cache.Query {
	var q cache.Query
	if tt.r.IntN(3) == 0 {
		q.Namespaces = pick(tt.r, []string{"x"}, []string{"x*"}, []string{"z", "none"}, []string{"*"}, []string{"?"})
	}
	if tt.r.IntN(4) == 0 {
		q.Fields = mustFieldSelector(tt.t, pick(tt.r, "spec.w=1", "spec.w!=1", "spec.none=1", "metadata.name=t-1,metadata.namespace=x", "metadata.name=a-2", "metadata.namespace=z"))
	}
	if tt.r.IntN(4) == 0 {
		q.Labels = mustLabels(tt.t, pick(tt.r, "app=a", "app!=a", "!app", "app in (a,b)"))
	}
	if tt.r.IntN(4) == 0 {
		q.Terms = []cache.Term{{Index: pick(tt.r, "w", "v"), Value: pick(tt.r, "1", "2", "a")}}
	}
	if tt.r.IntN(3) == 0 {
		q.Filter = mustFilter(tt.t, rangeExpression(tt.r))
	}
	if tt.r.IntN(2) == 0 {
		order, err := cache.ParseOrder(pick(tt.r, "", "-") + pick(tt.r, "spec.v", "spec.parts[*].v", "spec.w", "metadata.creationTimestamp", "spec.v,-spec.w", "metadata.name"))
		if err != nil {
			tt.t.Fatal(err)
		}
		q.Sort = order
	}
	return q
}

func (tt *twoStores) equal(what string, got, want any) {
	tt.t.Helper()
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		tt.t.Fatalf("%s:\n%s\nwithout what is not seen:\n%s", what, a, b)
	}
}

// versioned are names with versions.
func versioned(objects []*cache.Object) (all []string) {
	for _, o := range objects {
		all = append(all, o.Key().String()+"@"+o.ResourceVersion())
	}
	return all
}

// pages are all pages of a list, with what each says, and all their objects.
func (tt *twoStores) pages(from *cache.Reader, q cache.Query, limit int) (said []string, objects []string) {
	token := ""
	for {
		p, err := from.Page(context.Background(), q, limit, token)
		if err != nil {
			return append(said, err.Error()), objects
		}
		said = append(said, fmt.Sprintf("%s %v %d %+v %+v", p.Version, versioned(p.Objects), p.Remaining, p.Plan, p.Faults))
		objects = append(objects, versioned(p.Objects)...)
		if token = p.Continue; token == "" {
			return said, objects
		}
	}
}

func (tt *twoStores) compare() {
	q := tt.query()
	what := fmt.Sprintf("%+v by %s", q, q.Sort)
	answer := func(from *cache.Reader) (string, []string) {
		found, err := from.Select(context.Background(), q)
		if err != nil {
			return err.Error(), nil
		}
		return fmt.Sprintf("%s %+v %+v", found.Version, found.Plan, found.Faults), append(versioned(found.Objects), fmt.Sprint(found.Faults))
	}
	said, got := answer(tt.seen)
	saidToo, gotToo := answer(tt.same)
	_, want := answer(tt.all)
	tt.equal(what, said, saidToo)
	tt.equal(what, got, gotToo)
	tt.equal(what, got, want)

	limit := 1 + tt.r.IntN(10)
	pages, got := tt.pages(tt.seen, q, limit)
	pagesToo, _ := tt.pages(tt.same, q, limit)
	_, want = tt.pages(tt.all, q, limit)
	tt.equal("pages of "+what, strings.Join(pages, "\n"), strings.Join(pagesToo, "\n"))
	tt.equal("pages of "+what, got, want)
	tt.compareIndexes()
	tt.compareObjects()
}

func (tt *twoStores) compareIndexes() {
	for _, index := range []string{"v", "w", "part", "namespace", "label", "nothing"} {
		prefix, after, limit := pick(tt.r, "", "", "1", "a", "x"), pick(tt.r, "", "1", "x"), tt.r.IntN(4)
		values := func(from *cache.Reader) string {
			all, version, err := from.IndexValues(index, prefix, limit)
			later, _, _ := from.IndexValuesAfter(index, prefix, after, limit)
			return fmt.Sprint(all, version, err, later)
		}
		tt.equal("values of "+index, values(tt.seen), values(tt.all))
	}
	tt.equal("indexes", tt.seen.Indexes(), tt.all.Indexes())
	objects, _, raw := tt.seen.Size()
	objectsToo, _, rawToo := tt.all.Size()
	tt.equal("size", fmt.Sprint(objects, raw, tt.seen.Len()), fmt.Sprint(objectsToo, rawToo, tt.all.Len()))
}

func (tt *twoStores) compareObjects() {
	every, err := reader(tt.full, cache.WholeScope()).Select(context.Background(), cache.Query{})
	if err != nil {
		tt.t.Fatal(err)
	}
	matcher, err := tt.seen.Matcher(cache.Query{})
	if err != nil {
		tt.t.Fatal(err)
	}
	for _, o := range every.Objects {
		_, is := tt.all.Get(o.Key())
		_, got := tt.seen.Get(o.Key())
		_, version, _, at := tt.seen.GetAt(o.Key())
		matches, _ := matcher.Match(context.Background(), o)
		if got != is || at != is || matches != is || version != tt.all.Version() {
			tt.t.Fatalf("%s is seen %v, got %v and %v at %s, matches %v", o.Key(), is, got, at, version, matches)
		}
	}
	version, q := strconv.Itoa(tt.version-tt.r.IntN(20)), cache.Query{Filter: mustFilter(tt.t, rangeExpression(tt.r))}
	was := func(from *cache.Reader) string {
		p, err := from.PageAt(context.Background(), q, 3, version)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s %v %d %+v", p.Version, versioned(p.Objects), p.Remaining, p.Faults)
	}
	tt.equal("at "+version, was(tt.seen), was(tt.all))
}

// TestReaderKnowsNoOthers: whatever a Reader answers, it is what it would be if what its
// Scope does not see had never been.
func TestReaderKnowsNoOthers(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 77))
		tt := newTwoStores(t, r)
		tt.replace(120)
		events, err := tt.seen.Watch("")
		if err != nil {
			t.Fatal(err)
		}
		eventsToo, err := tt.all.Watch("")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 120 {
			tt.change()
			if i%6 == 0 {
				tt.compare()
			}
			if i == 60 {
				tt.replace(130)
			}
		}
		tt.equal("events", told(t, events), told(t, eventsToo))
	}
}

// told are all events there are.
func told(t *testing.T, sub *cache.Subscription) (all []string) {
	t.Helper()
	defer sub.Close()
	for {
		events, err := sub.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return append(all, sub.Version())
		}
		for _, e := range events {
			old := ""
			if e.Old != nil {
				old = e.Old.ResourceVersion()
			}
			all = append(all, fmt.Sprint(e.Type, e.Object.Key(), e.Object.ResourceVersion(), old))
		}
	}
}

// TestManyScopes: which rows a scope sees is kept for the scopes asked with last, and
// made anew for others.
func TestManyScopes(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	tt := newTwoStores(t, r)
	tt.replace(160)
	var scopes []cache.Scope
	for range 100 {
		scopes = append(scopes, randomScope(r))
	}
	for range 500 {
		tt.change()
		scope := pick(r, scopes...)
		every, err := tt.full.Select(t.Context(), cache.Query{})
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(every.Objects, func(o *cache.Object) bool { return !scope.Sees(o.Key()) })
		got, err := reader(tt.full, scope).Select(t.Context(), cache.Query{})
		if err != nil || !slices.Equal(got.Objects, want) {
			t.Fatalf("%v, want %v (%v)", names(got.Objects), names(want), err)
		}
	}
	cache.CheckContents(t, tt.full) // the rows of so many scopes and no more
}

// TestNothingIsSeen: the zero Scope, and a copy that cannot be read.
func TestNothingIsSeen(t *testing.T) {
	s, _ := oddStores(t, []string{oddThing(rand.New(rand.NewPCG(1, 1)), 1, 1)})
	none := reader(s, cache.Scope{})
	if found, err := none.Select(t.Context(), cache.Query{}); err != nil || len(found.Objects) != 0 || none.Len() != 0 {
		t.Errorf("the zero Scope sees %v (%v)", names(found.Objects), err)
	}
	if new(cache.View).Reader(cache.WholeScope()) != nil {
		t.Error("a View without a copy has a Reader")
	}
}

// TestPagesAreTheirReaders: who begins many lists ends nobody else's, and a token is
// good for no one else, nor by other rights.
func TestPagesAreTheirReaders(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	tt := newTwoStores(t, r)
	tt.replace(100)
	whole := reader(tt.full, cache.WholeScope())
	page := func(from *cache.Reader, token string) (string, error) {
		p, err := from.Page(t.Context(), cache.Query{}, 1, token)
		if err != nil {
			return "", err
		}
		return p.Continue, nil
	}
	jane, err := page(whole.For("jane"), "")
	if err != nil {
		t.Fatal(err)
	}
	for range 260 {
		if _, err := page(whole.For("mallory"), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := page(whole.For("jane"), jane); err != nil {
		t.Errorf("jane's list: %v", err)
	}
	for name, other := range map[string]*cache.Reader{"mallory": whole.For("mallory"), "jane with other rights": reader(tt.full, cache.NewScope([]string{"x", "z"}, nil)).For("jane")} {
		if _, err := page(other, jane); err == nil || !strings.Contains(err.Error(), cache.ErrExpired.Error()) {
			t.Errorf("jane's token is good for %s: %v", name, err)
		}
	}
}
