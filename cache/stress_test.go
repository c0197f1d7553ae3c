package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
)

// TestSnapshotIsolation: two objects always change together. No reader, of
// lists, pages, indexes or events, may see one without the other.
func TestSnapshotIsolation(t *testing.T) {
	s := newStore(t, thingSpec)
	pair := func(version int) []*Object {
		raw := func(name string) []byte {
			return fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":%q,"uid":%q,"resourceVersion":"%d","labels":{"round":"%d"}},"spec":{"node":"n%d"}}`, name, name, version, version, version%7)
		}
		var objs []*Object
		for _, name := range []string{"left", "right"} {
			o, err := s.Decode(raw(name), "", "")
			if err != nil {
				t.Fatal(err)
			}
			objs = append(objs, o)
		}
		return objs
	}
	s.Replace("", pair(1), "1")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	reader := func(read func(r *rand.Rand) error) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, 2))
			for ctx.Err() == nil {
				if err := read(r); err != nil && ctx.Err() == nil {
					t.Error(err)
					cancel()
				}
			}
		})
	}
	equal := func(objs []*Object, version string) error {
		for _, o := range objs {
			if o.ResourceVersion() != version {
				return fmt.Errorf("%s is at %s in a list of %s", o.Key(), o.ResourceVersion(), version)
			}
		}
		return nil
	}
	reader(func(r *rand.Rand) error {
		list, err := s.Select(ctx, Query{})
		if err != nil {
			return err
		}
		if len(list.Objects) != 2 {
			return fmt.Errorf("%d objects", len(list.Objects))
		}
		return equal(list.Objects, list.Version)
	})
	reader(func(r *rand.Rand) error {
		list, err := s.Select(ctx, Query{Fields: mustFields(t, fmt.Sprintf("spec.node=n%d", r.IntN(7)))})
		if err != nil {
			return err
		}
		if n := len(list.Objects); n != 0 && n != 2 {
			return fmt.Errorf("%d objects on one node", n)
		}
		return equal(list.Objects, list.Version)
	})
	reader(func(r *rand.Rand) error {
		values, version, err := s.IndexValues(LabelIndex, "round=", 0)
		if err != nil {
			return err
		}
		if len(values) != 1 || values[0] != (IndexValue{"round=" + version, 2}) {
			return fmt.Errorf("label values %v at version %s", values, version)
		}
		return nil
	})
	reader(func(r *rand.Rand) error { return followPair(ctx, s) })
	reader(func(r *rand.Rand) error {
		b, ok := s.TakeChanges()
		if !ok {
			return nil
		}
		for rec := range b.Records() {
			if rec.ResourceVersion != b.Saved.ResourceVersions[""] {
				return fmt.Errorf("a batch of version %s has %s at %s", b.Saved.ResourceVersions[""], rec.Key, rec.ResourceVersion)
			}
		}
		if r.IntN(3) == 0 {
			s.GiveBack(b)
		}
		return nil
	})
	for version := 2; version < 1500 && ctx.Err() == nil; version++ {
		objs := pair(version)
		if version%100 == 0 {
			if err := s.SetIndexes(map[string]string{"node": "spec.node", "extra" + strconv.Itoa(version): "spec.none"}); err != nil {
				t.Error(err)
			}
		}
		s.Replace("", objs, strconv.Itoa(version))
	}
	cancel()
	wg.Wait()
	checkContents(t, s)
}

// followPair reads events for a while. What came with Resume at a new version
// must be the whole pair.
func followPair(ctx context.Context, s *Store) error {
	sub, err := s.Watch("")
	if err != nil {
		return err
	}
	defer sub.Close()
	seen := map[string]int{}
	for range 20 {
		events, err := sub.Next(ctx)
		if errors.Is(err, ErrExpired) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			v := e.Object.ResourceVersion()
			seen[v]++
			if e.Resume == v && seen[v] != 2 {
				return fmt.Errorf("version %s is complete after %d events", v, seen[v])
			}
		}
	}
	return nil
}

// TestConcurrentWriters: namespaces with a source each, one writer each.
func TestConcurrentWriters(t *testing.T) {
	s := newStore(t, thingSpec)
	var names []string
	for i := range 4 {
		names = append(names, "ns"+strconv.Itoa(i))
	}
	s.SetSources(names)
	s.Replace(names[0], nil, "1")
	sub, err := s.Watch("")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var wg sync.WaitGroup
	for i, ns := range names {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			s.Replace(ns, nil, "1")
			for v := range 500 {
				o, err := s.Decode(simple(ns, "x"+strconv.Itoa(r.IntN(20)), "u", strconv.Itoa(2+v*4+i)), "", "")
				if err != nil {
					t.Error(err)
					return
				}
				s.Apply(ns, pick(r, Added, Modified, Modified, Deleted), o)
			}
		})
	}
	state := map[Key]string{}
	follow := func() {
		events, _, err := sub.read()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			state[e.Object.Key()] = e.Object.ResourceVersion()
			if e.Type == Deleted {
				delete(state, e.Object.Key())
			}
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		follow()
	}
	for sub.next < s.ring.next {
		follow()
	}
	checkContents(t, s)
	if len(state) != s.Len() {
		t.Errorf("the replica has %d objects, the store %d", len(state), s.Len())
	}
	for _, o := range s.objectsOf("") {
		if state[o.Key()] != o.ResourceVersion() {
			t.Errorf("the replica has %s at %s, the store at %s", o.Key(), state[o.Key()], o.ResourceVersion())
		}
	}
}
