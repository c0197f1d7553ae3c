package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
)

// TestPageAt: whatever changes came, a page at a version is what Select gave
// when the Store was there.
func TestPageAt(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(7, 11))
	s := pagedStore(t, 20, StoreOptions{})
	q := Query{Namespaces: []string{"a"}}
	was := map[string][]*Object{}
	remember := func() {
		now, err := s.Select(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		was[now.Version] = now.Objects
	}
	remember()
	for version := 1001; version < 1300; version++ {
		o := decodeSimple(t, s, []string{"a", "b"}[r.IntN(2)], fmt.Sprintf("x%03d", r.IntN(30)), version)
		s.Apply("", []EventType{Added, Modified, Deleted}[r.IntN(3)], o)
		if r.IntN(10) == 0 {
			version += r.IntN(5)
			s.Bookmark("", strconv.Itoa(version))
		}
		remember()
	}
	for version, want := range was {
		page, err := s.PageAt(ctx, q, 0, version)
		if err != nil {
			t.Fatalf("at %s: %v", version, err)
		}
		if page.Version != version || !slices.Equal(page.Objects, want) {
			t.Errorf("at %s: %d objects at %s, want %d", version, len(page.Objects), page.Version, len(want))
		}
		first, err := s.PageAt(ctx, q, 3, version)
		if err != nil || len(first.Objects) != min(3, len(want)) || first.Remaining != len(want)-len(first.Objects) {
			t.Fatalf("first page at %s: %+v, %v", version, first, err)
		}
	}
	if _, err := s.PageAt(ctx, q, 0, "999"); !errors.Is(err, ErrExpired) {
		t.Errorf("before the first list: %v, want ErrExpired", err)
	}
	if _, err := s.PageAt(ctx, q, 0, "99999"); !errors.Is(err, ErrTooNew) {
		t.Errorf("in the future: %v, want ErrTooNew", err)
	}
	if s.Oldest() != "1000" || !s.Watches("") || !s.Watches("a") {
		t.Errorf("oldest %s, watches all: %v", s.Oldest(), s.Watches(""))
	}
}

// faulty is a Filter that has no value for two versions.
type faulty struct{}

func (faulty) String() string                 { return "test" }
func (faulty) Hints() Hints                   { return Hints{} }
func (faulty) Clock() bool                    { return false }
func (faulty) OfIdentity() bool               { return false }
func (faulty) Within() ([]rawjson.Path, bool) { return nil, false }

func (faulty) Match(_ context.Context, json []byte) (bool, uint64, error) {
	if bytes.Contains(json, []byte(`"v":"1001"`)) || bytes.Contains(json, []byte(`"v":"3"`)) {
		return false, 1, &EvalError{"odd"}
	}
	return true, 1, nil
}

// TestPageAtFaults: former states that a filter has no value for are counted, as
// present ones are.
func TestPageAtFaults(t *testing.T) {
	s := pagedStore(t, 5, StoreOptions{})
	s.Apply("", Modified, decodeSimple(t, s, "a", "x001", 1001))
	s.Apply("", Modified, decodeSimple(t, s, "a", "x001", 1002))
	s.Apply("", Modified, decodeSimple(t, s, "a", "x004", 1003))
	page, err := s.PageAt(t.Context(), Query{Filter: faulty{}}, 0, "1001")
	if err != nil {
		t.Fatal(err)
	}
	want := Faults{Count: 2, First: "odd", Key: Key{"a", "x001"}}
	if len(page.Objects) != 3 || page.Faults != want {
		t.Errorf("%d objects, faults %+v, want 3 and %+v", len(page.Objects), page.Faults, want)
	}
}

// TestWatches: a Store of some namespaces says which.
func TestWatches(t *testing.T) {
	spec := thingSpec
	spec.Namespaces = []string{"team-*"}
	s := newStore(t, spec)
	if s.Watches("") || !s.Watches("team-a") || s.Watches("shop") {
		t.Errorf("globs: watches %v %v %v", s.Watches(""), s.Watches("team-a"), s.Watches("shop"))
	}
	s = newStore(t, thingSpec)
	s.SetSources([]string{"a", "b"})
	if s.Watches("") || !s.Watches("a") || s.Watches("c") {
		t.Errorf("sources: watches %v %v %v", s.Watches(""), s.Watches("a"), s.Watches("c"))
	}
}
