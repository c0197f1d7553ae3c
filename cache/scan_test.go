package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
)

// fakeFilter matches what contains a text.
type fakeFilter struct {
	text string
	cost uint64
	err  error
}

func (f fakeFilter) String() string                 { return f.text }
func (f fakeFilter) Hints() Hints                   { return Hints{} }
func (f fakeFilter) Clock() bool                    { return false }
func (f fakeFilter) OfIdentity() bool               { return false }
func (f fakeFilter) Within() ([]rawjson.Path, bool) { return nil, false }
func (f fakeFilter) Match(_ context.Context, json []byte) (bool, uint64, error) {
	return bytes.Contains(json, []byte(f.text)), f.cost, f.err
}

func TestFilterCostOfAllObjects(t *testing.T) {
	s := filledStore(t, 100)
	if _, err := s.Select(context.Background(), Query{Filter: fakeFilter{cost: maxScanCost / 100}}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := s.Select(context.Background(), Query{Filter: fakeFilter{cost: maxScanCost/100 + 1}})
	if cost, ok := errors.AsType[*CostError](err); !ok || cost.Parameter != "filter" || !strings.Contains(cost.Message, "1000000000") {
		t.Errorf("over the limit: %v", err)
	}
}

func TestFilterFailure(t *testing.T) {
	broken := errors.New("broken")
	_, err := filledStore(t, 100).Select(context.Background(), Query{Filter: fakeFilter{err: broken}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "match team-") {
		t.Errorf("error %v", err)
	}
}

func TestFilterEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := filledStore(t, 200)
	var calls atomic.Int64
	var ended atomic.Bool
	ender := -1
	late := make([]int, Workers())
	err := Read(ctx, s.objectsOf(""), func(_ context.Context, worker, _ int, _ []byte) error {
		if ended.Load() {
			late[worker]++
		}
		if calls.Add(1) == 3 {
			cancel()
			ended.Store(true)
			ender = worker
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || ender < 0 {
		t.Fatalf("%v after %d calls", err, calls.Load())
	}
	for worker, n := range late {
		// The others may have looked at the context before it ended.
		if n > 1 || n > 0 && worker == ender {
			t.Errorf("worker %d called %d times after the context had ended", worker, n)
		}
	}
}

// Of a key that occurs twice the last one counts, which only aggregated API
// servers write.
func TestFilterSeesUniqueKeys(t *testing.T) {
	for _, aggregated := range []bool{false, true} {
		spec := podSpec()
		spec.Aggregated = aggregated
		s, err := NewStore(spec, StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Decode([]byte(`{"metadata":{"name":"a","namespace":"b","resourceVersion":"1"},"x":"first","x":"last"}`), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Matcher(Query{Filter: fakeFilter{text: "first"}})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := m.Match(context.Background(), o); err != nil || ok == aggregated {
			t.Errorf("aggregated %v: first is seen: %v, %v", aggregated, ok, err)
		}
	}
}

// identityFilter says that it needs no JSON.
type identityFilter struct{ fakeFilter }

func (identityFilter) OfIdentity() bool               { return true }
func (identityFilter) Within() ([]rawjson.Path, bool) { return nil, false }

// TestFilterOfIdentityReadsNothing: of aggregated resources, whose keys may occur twice, the
// JSON is read nevertheless, and so it is where a field selector needs it.
func TestFilterOfIdentityReadsNothing(t *testing.T) {
	node, err := ParseFieldSelector("spec.none!=x")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		aggregated bool
		query      Query
		reads      bool
	}{
		"plain":          {query: Query{}},
		"aggregated":     {aggregated: true, reads: true},
		"field selector": {query: Query{Fields: node}, reads: true},
	} {
		spec := podSpec()
		spec.Aggregated = c.aggregated
		s, err := NewStore(spec, StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Decode([]byte(`{"metadata":{"name":"a","namespace":"b","resourceVersion":"1"},"spec":{"text":"within"}}`), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		s.Replace("", []*Object{o}, "1")
		c.query.Filter = identityFilter{fakeFilter{text: "within"}}
		r, err := s.Select(t.Context(), c.query)
		if err != nil || len(r.Objects) > 0 != c.reads {
			t.Errorf("%s: found %d, %v", name, len(r.Objects), err)
		}
		s.Close()
	}
}

func TestQueryTokensDiffer(t *testing.T) {
	order, err := ParseOrder("a,-b")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for name, q := range map[string]Query{
		"all": {}, "filter": {Filter: fakeFilter{text: "a"}}, "other filter": {Filter: fakeFilter{text: "b"}},
		"sorted": {Sort: order}, "sorted by less": {Sort: order[:1]}, "term": {Terms: []Term{{"a", "b"}}},
	} {
		if other, twice := seen[q.Token()]; twice {
			t.Errorf("%s and %s have the same token", name, other)
		}
		seen[q.Token()] = name
	}
}

func TestParseOrder(t *testing.T) {
	order, err := ParseOrder(" spec.x , -metadata.annotations['a,b'] ")
	if err != nil || fmt.Sprint(order) != "spec.x,-metadata.annotations['a,b']" {
		t.Errorf("%v, %v", order, err)
	}
}

// TestSameJSONCostsOnce: what one evaluation cost, and it may be the time of a busy machine, is
// not counted for every object of which the same is read.
func TestSameJSONCostsOnce(t *testing.T) {
	objects := filledStore(t, 1).objectsOf("")
	visit := func(json func(i int) string) (err error) {
		sc := &scan{scanner: scanner{filter: fakeFilter{cost: maxScanCost / 10}}, items: itemsOf(objects, nil, nil), found: make([]outcome, 1), faults: make([]firstFault, 1), again: make([]Again[verdict], 1)}
		for i := range 100 {
			if err = sc.visit(t.Context(), 0, 0, []byte(json(i))); err != nil {
				break
			}
		}
		return err
	}
	if err := visit(func(int) string { return `{"a":1}` }); err != nil {
		t.Errorf("the same again and again: %v", err)
	}
	err := visit(func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) })
	if _, ok := errors.AsType[*CostError](err); !ok {
		t.Errorf("each another one: %v", err)
	}
}
