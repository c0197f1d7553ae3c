package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNewest: those found are those that a sort of all by resourceVersion begins with, however
// long the numbers are.
func TestNewest(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := newStore(t, thingSpec)
		s.Replace("", nil, "0")
		var versions []int
		for _, n := range r.Perm(r.IntN(200)) {
			versions = append(versions, 1+n*n)
		}
		for i, v := range versions {
			o, err := s.Decode(fmt.Appendf(nil, `{"metadata":{"name":"thing-%d","uid":"u","resourceVersion":"%d"}}`, i, v), "example.com/v1", "Thing")
			if err != nil {
				t.Fatal(err)
			}
			s.Apply("", Added, o)
		}
		slices.Sort(versions)
		slices.Reverse(versions)
		var got []string
		for _, o := range s.Holdings("").Newest(5) {
			got = append(got, o.ResourceVersion())
		}
		var want []string
		for _, v := range versions[:min(5, len(versions))] {
			want = append(want, fmt.Sprint(v))
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// TestNoNewer: of numbers it is what Newer is not.
func TestNoNewer(t *testing.T) {
	numbers := []string{"1", "9", "10", "11", "99", "100", "101", "18446744073709551616", "18446744073709551617"}
	for _, a := range numbers {
		for _, b := range numbers {
			if noNewer(a, b) == Newer(a, b) {
				t.Errorf("%s and %s: newer and not newer", a, b)
			}
		}
	}
}
