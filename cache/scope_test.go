package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// TestScopesTogether: And sees what both see, In what is seen of one namespace, and
// Digest tells scopes apart by that alone.
func TestScopesTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	spaces, names := []string{"a", "b", "c"}, []string{"x", "y"}
	some := func(all []string) (picked []string) {
		for _, s := range all {
			if r.IntN(2) == 0 {
				picked = append(picked, s)
			}
		}
		return picked
	}
	draw := func() Scope {
		if r.IntN(8) == 0 {
			return WholeScope()
		}
		byNamespace := map[string][]string{}
		for _, ns := range some(append([]string{""}, spaces...)) {
			byNamespace[ns] = some(names)
		}
		return NewScope(some(spaces), byNamespace)
	}
	for range 3000 {
		a, b := draw(), draw()
		both := a.And(b)
		for _, ns := range spaces {
			for _, name := range append([]string{"z"}, names...) {
				k := Key{ns, name}
				if got, want := both.Sees(k), a.Sees(k) && b.Sees(k); got != want {
					t.Fatalf("%+v and %+v see %s: %v", a, b, k, got)
				}
				for _, in := range spaces {
					if got, want := a.In(in).Sees(k), a.Sees(k) && ns == in; got != want {
						t.Fatalf("%+v in %s sees %s: %v", a, in, k, got)
					}
				}
			}
			if got, want := both.Namespace(ns), a.Namespace(ns) && b.Namespace(ns); got != want {
				t.Fatalf("%+v and %+v see namespace %s: %v", a, b, ns, got)
			}
		}
		if both.Digest() != b.And(a).Digest() {
			t.Fatalf("%+v and %+v are another scope the other way round", a, b)
		}
	}
	if (Scope{}).Digest() != NewScope(nil, nil).Digest() || WholeScope().Digest() == (Scope{}).Digest() {
		t.Error("what sees nothing has another digest than what sees nothing, or the same as what sees all")
	}
}

// TestDigestOfOddNames: names that look like the end of one and the beginning of the next
// have a digest of their own: what is kept for a scope is found by it.
func TestDigestOfOddNames(t *testing.T) {
	scopes := []Scope{
		NewScope(nil, map[string][]string{"mine": {"a\x00oprod/db"}}),
		NewScope(nil, map[string][]string{"mine": {"a"}, "prod": {"db"}}),
		NewScope(nil, map[string][]string{"mine": {"a", "db"}}),
		NewScope(nil, map[string][]string{"mine": {"a1:o2:db"}}),
		NewScope([]string{"a", "b"}, nil), NewScope([]string{"a1:b"}, nil), NewScope([]string{"a\x00nb"}, nil),
		NewScope(nil, nil), WholeScope(),
	}
	known := map[string]int{}
	for n, s := range scopes {
		if other, taken := known[s.Digest()]; taken {
			t.Errorf("scopes %d and %d have one digest", other, n)
		}
		known[s.Digest()] = n
	}
}

// TestEqualScopesAreOne: scopes that see the same share their memory, and leave none behind
// when nobody has them.
func TestEqualScopesAreOne(t *testing.T) {
	var digests []string
	func() {
		namespaces := []string{"equal-1", "equal-2"}
		held := []Scope{NewScope(namespaces, nil), NewScope([]string{"equal-2", "equal-1"}, nil), WholeScope().And(NewScope(namespaces, nil))}
		for _, s := range held[1:] {
			if s.part != held[0].part {
				t.Error("equal scopes have each their own memory")
			}
		}
		for i := range 1000 {
			held = append(held, NewScope([]string{fmt.Sprint("equal-", i)}, nil))
		}
		for _, s := range held {
			digests = append(digests, s.Digest())
		}
		if n := parts.count(digests); n != len(held) {
			t.Errorf("%d of %d are shared", n, len(held))
		}
		runtime.KeepAlive(held)
	}()
	for began := time.Now(); parts.count(digests) > 0; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d are left", parts.count(digests))
		}
	}
	if again := NewScope([]string{"equal-1"}, nil); !again.Namespace("equal-1") || again.Digest() != digests[4] {
		t.Error("a scope that comes again is another one")
	}
}

// count is how many of digests are known.
func (s *sharedParts) count(digests []string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		if _, known := s.byDigest[d]; known {
			n++
		}
	}
	return n
}
