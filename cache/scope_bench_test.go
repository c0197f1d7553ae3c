package cache_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/informerd/informerd/cache"
)

const (
	benchSpaces = 5_000
	benchSeen   = 1_000 // of the namespaces
)

// benchThings are few where it is only tried that the benchmarks run.
func benchThings() int {
	if testing.Short() {
		return 10_000
	}
	return 100_000
}

// scopedStore holds 100,000 objects in 5,000 namespaces, with an index of few objects a
// value, "w", and one of many, "v".
func scopedStore(tb testing.TB) *cache.Store {
	tb.Helper()
	s, err := cache.NewStore(oddSpec(), cache.StoreOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	objects := make([]*cache.Object, benchThings())
	for i := range objects {
		raw := fmt.Appendf(nil, `{"metadata":{"namespace":"project-%04d","name":"t-%d","uid":"u%d","resourceVersion":"%d","creationTimestamp":"2026-01-02T%02d:%02d:05Z"},"spec":{"w":"w%d","v":"v%d","n":%d}}`,
			i%benchSpaces, i, i, i+1, i/60%24, i%60, i%499, i%19, i)
		if objects[i], err = s.Decode(raw, "example.com/v1", "Thing"); err != nil {
			tb.Fatal(err)
		}
	}
	s.Replace("", objects, strconv.Itoa(benchThings()))
	return s
}

// someSpaces is the Scope of 1,000 of the 5,000 namespaces. It is made anew, as one is
// whenever the rights of somebody change.
func someSpaces() cache.Scope {
	namespaces := make([]string, benchSeen)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("project-%04d", i*benchSpaces/benchSeen)
	}
	return cache.NewScope(namespaces, nil)
}

// BenchmarkScoped asks as somebody who sees all, and as somebody who sees a part: for the
// first time since they may see it, and again.
func BenchmarkScoped(b *testing.B) {
	s := scopedStore(b)
	order, err := cache.ParseOrder("-metadata.creationTimestamp")
	if err != nil {
		b.Fatal(err)
	}
	list := func(q cache.Query) func(*cache.Reader) error {
		return func(r *cache.Reader) error {
			_, err := r.Page(b.Context(), q, 100, "")
			return err
		}
	}
	for _, question := range []struct {
		name string
		ask  func(*cache.Reader) error
	}{
		{"few", list(cache.Query{Terms: []cache.Term{{Index: "w", Value: "w7"}}})},
		{"many", list(cache.Query{Terms: []cache.Term{{Index: "v", Value: "v7"}}})},
		{"none", list(cache.Query{Terms: []cache.Term{{Index: "w", Value: "nothing"}}})},
		{"namespace", list(cache.Query{Namespaces: []string{"project-0005"}})},
		{"page", list(cache.Query{})},
		{"newest", list(cache.Query{Sort: order})},
		{"filter", list(cache.Query{Filter: mustFilter(b, `object.spec.w == "w7" && object.spec.n > 1000`)})},
		{"scan", list(cache.Query{Filter: mustFilter(b, `object.spec.n > 99000`)})},
		{"count", func(r *cache.Reader) error { r.Len(); return nil }},
		{"tag", func(r *cache.Reader) error { r.Revision(); return nil }},
		{"values", func(r *cache.Reader) error { _, _, err := r.IndexValues("w", "", 0); return err }},
	} {
		b.Run(question.name+"/all", func(b *testing.B) {
			r := reader(s, cache.WholeScope())
			for b.Loop() {
				if err := question.ask(r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(question.name+"/first", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				cache.ForgetScopes(s)
				r := reader(s, someSpaces())
				b.StartTimer()
				if err := question.ask(r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(question.name+"/again", func(b *testing.B) {
			r := reader(s, someSpaces())
			for b.Loop() {
				if err := question.ask(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNewScope is what it takes to make a Scope, which is done when rights change.
func BenchmarkNewScope(b *testing.B) {
	for b.Loop() {
		someSpaces()
	}
}
