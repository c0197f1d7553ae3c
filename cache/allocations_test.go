//go:build !race

// The race detector allocates as well, and empties pools at random.

package cache_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/informerd/informerd/cache"
)

// allocationPods is large enough for what is paid once, not for each object.
const allocationPods = 1000

// TestAllocations holds how often memory is allocated for what is done to every
// object. Limits leave room for pools that the garbage collector empties, not
// for an allocation that comes back with each object. One that is exceeded for
// a good reason is raised here, with that reason in the commit.
func TestAllocations(t *testing.T) {
	s := cache.FilledStore(t, allocationPods)
	pods := newerPods(t, s, 500)
	raw := cache.RealPod(7, 100_000)
	batch, _ := s.TakeChanges()
	records := slices.Collect(batch.Records())
	all := selected(t, s, cache.Query{})
	next, buf := 0, make([]byte, 0, 64<<10)

	for _, c := range []struct {
		what string
		each int     // objects of a run
		most float64 // allocations for each of them
		run  func() error
	}{
		{"decode", 1, 18, func() error {
			_, err := s.Decode(raw, "v1", "Pod")
			return err
		}},
		{"apply an update", 1, 4, func() error {
			s.Apply("", cache.Modified, pods[next])
			next++
			return nil
		}},
		{"encode", allocationPods, 0.1, func() (err error) {
			for _, o := range all {
				if buf, err = o.AppendJSON(buf[:0]); err != nil {
					return err
				}
			}
			return nil
		}},
		{"index lookup", 1, 20, func() error {
			return find(s, cache.Query{Terms: []cache.Term{{Index: "node", Value: "node-007"}}})
		}},
		{"scan of a field", allocationPods, 0.5, func() error {
			return find(s, cache.Query{Fields: fields(t, "status.containerStatuses[*].restartCount in (3)")})
		}},
		{"scan with CEL", allocationPods, 12, func() error {
			return find(s, cache.Query{Filter: mustFilter(t, `object.status.podIP.endsWith(".77")`)})
		}},
		{"restore", allocationPods, 13, func() error {
			s, err := cache.NewStore(cache.PodSpec(), cache.StoreOptions{})
			if err != nil {
				return err
			}
			return s.Restore(batch.Saved, records)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			var failed error
			n := testing.AllocsPerRun(max(10, 200/c.each), func() {
				if err := c.run(); err != nil {
					failed = err
				}
			}) / float64(c.each)
			if failed != nil {
				t.Fatal(failed)
			}
			t.Logf("%.2f allocations for each object, at most %v", n, c.most)
			if n > c.most {
				t.Errorf("%.2f allocations for each object, want at most %v", n, c.most)
			}
		})
	}
}

// newerPods are n updates of pods in s, one each.
func newerPods(t *testing.T, s *cache.Store, n int) []*cache.Object {
	t.Helper()
	var pods []*cache.Object
	for i := range n {
		o, err := s.Decode(cache.RealPod(i, allocationPods+i+1), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, o)
	}
	return pods
}

func selected(t *testing.T, s *cache.Store, q cache.Query) []*cache.Object {
	t.Helper()
	r, err := s.Select(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r.Objects
}

func find(s *cache.Store, q cache.Query) error {
	r, err := s.Select(context.Background(), q)
	if err == nil && len(r.Objects) == 0 {
		err = errors.New("nothing is found")
	}
	return err
}

func fields(t *testing.T, text string) cache.FieldSelector {
	t.Helper()
	f, err := cache.ParseFieldSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
