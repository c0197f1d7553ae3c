package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// succeeding is a Store of pods that another one takes the place of, and a twin of it that another
// one takes the place of which shares nothing.
type succeeding struct {
	*testing.T
	rng         *rand.Rand
	store, twin *Store
	versions    map[int]int // of pods, by number
	version     int
}

func newSucceeding(t *testing.T, pods int, seed uint64) *succeeding {
	run := &succeeding{T: t, rng: rand.New(rand.NewPCG(seed, 9)), store: newStore(t, podSpec()), twin: newStore(t, podSpec()), versions: map[int]int{}, version: pods}
	for i := range pods {
		run.versions[i] = i + 1
	}
	for _, s := range []*Store{run.store, run.twin} {
		s.Replace("", run.list(s), strconv.Itoa(pods))
	}
	return run
}

// raw is pod i as the API server has it. One in four has what the other rule drops.
func (run *succeeding) raw(i int) []byte {
	raw := realPod(i, run.versions[i])
	if i%4 > 0 {
		raw = bytes.Replace(raw, []byte(`"hostIPs":[{"ip":"192.168.1.7"}],`), nil, 1)
	}
	return raw
}

func (run *succeeding) list(s *Store) (objs []*Object) {
	run.Helper()
	for i := range 1000 {
		if run.versions[i] == 0 {
			continue
		}
		o, err := s.Decode(run.raw(i), "", "")
		if err != nil {
			run.Fatal(err)
		}
		objs = append(objs, o)
	}
	return objs
}

// otherRule drops what one pod in four has, or drops what it does not and has other indexes.
func otherRule(round int) Spec {
	spec := podSpec()
	switch round % 3 {
	case 0:
		spec.Drop = append(spec.Drop, "status.hostIPs")
	case 1:
		spec.Indexes = map[string]string{"phase": "status.phase"}
	}
	return spec
}

// change has some pods come, go and change, few or most of them.
func (run *succeeding) change() {
	most := 1 + run.rng.IntN(2)*20
	for i := range 450 {
		if run.rng.IntN(40) >= most {
			continue
		}
		run.version++
		switch {
		case run.versions[i] == 0:
			run.versions[i] = run.version
		case run.rng.IntN(3) == 0:
			delete(run.versions, i)
		default:
			run.versions[i] = run.version
		}
	}
	run.version++
}

// TestSuccessorRandom: a Store that shares with its Successor is what another one is that does not,
// and tells the same.
func TestSuccessorRandom(t *testing.T) {
	defer func(most int) { graftMost = most }(graftMost)
	for seed := range uint64(4) {
		if seed == 3 {
			graftMost = 20
		}
		run := newSucceeding(t, 400, seed)
		disk := &disk{}
		for round := range 8 {
			sub, twinSub := watch(t, run.store, ""), watch(t, run.twin, "")
			run.change()
			spec := otherRule(round + int(seed))
			from, err := run.store.Successor(spec, StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			run.repack(run.store) // while the other one is filled
			plain := newStore(t, spec)
			from.Replace("", run.list(from), strconv.Itoa(run.version))
			plain.Replace("", run.list(plain), strconv.Itoa(run.version))
			stats, err := run.store.TakeOver(from)
			want, twinErr := run.twin.TakeOver(plain)
			if err != nil || twinErr != nil || stats != want {
				t.Fatalf("TakeOver() = %+v, %v, want %+v, %v", stats, err, want, twinErr)
			}
			if got, want := readAll(t, sub), readAll(t, twinSub); got != want {
				t.Fatalf("told\n%s, want\n%s", got, want)
			}
			run.compare()
			if slices.Contains(spec.Drop, "status.hostIPs") {
				run.gone("hostIPs")
			}
			b, _ := run.store.TakeChanges()
			disk.commit(b)
			restored := newStore(t, spec)
			if err := restored.Restore(disk.saved, disk.sorted()); err != nil {
				t.Fatal(err)
			}
			run.same(restored, run.twin)
		}
	}
}

// gone: what is dropped is in nothing that the snapshot gets, whole or in part.
func (run *succeeding) gone(text string) {
	run.Helper()
	for d := range run.store.contents.needed() {
		plain := d.raw
		if d.template != nil {
			var err error
			if plain, err = d.template.appendPlain(nil); err != nil {
				run.Fatal(err)
			}
		}
		if bytes.Contains(plain, []byte(text)) {
			run.Fatalf("dictionary %d, template %t, has %s", d.id, d.template != nil, text)
		}
	}
}

// repack has a Store train another dictionary and pack all with it.
func (run *succeeding) repack(s *Store) {
	run.Helper()
	if run.rng.IntN(2) == 0 {
		return
	}
	s.packing.mu.Lock()
	s.packing.dict.Store(nil)
	s.packing.mu.Unlock()
	s.packing.train(s.trainingSamples())
	s.Repack(run.Context())
}

func (run *succeeding) compare() {
	run.Helper()
	checkContents(run, run.store)
	run.same(run.store, run.twin)
	ids := map[uint32]*dictionary{}
	for d := range run.store.contents.needed() {
		if other := ids[d.id]; other != nil && other != d {
			run.Fatalf("two dictionaries have the id %d", d.id)
		}
		ids[d.id] = d
	}
}

// same compares what two Stores hold and find.
func (run *succeeding) same(got, want *Store) {
	run.Helper()
	questions := []Query{{}, {Terms: []Term{{"phase", "Pending"}}}, {Terms: []Term{{LabelIndex, "tier=tier-3"}}}, {Terms: []Term{{NamespaceIndex, "team-07"}}}}
	for _, q := range questions {
		a, err := got.Select(context.Background(), q)
		if err != nil {
			run.Fatal(err)
		}
		b, err := want.Select(context.Background(), q)
		if err != nil || len(a.Objects) != len(b.Objects) || a.Version != b.Version {
			run.Fatalf("%v: %d objects at %s, want %d at %s, %v", q.Terms, len(a.Objects), a.Version, len(b.Objects), b.Version, err)
		}
		for i := range a.Objects {
			if !sameJSON(a.Objects[i], b.Objects[i]) {
				run.Fatalf("%v: %s differs", q.Terms, a.Objects[i].Key())
			}
		}
	}
}

// TestSuccessorShares: what is the same of an object is in one piece of memory, and indexes are
// those of before. Packed JSON is shared where nothing is taken away.
func TestSuccessorShares(t *testing.T) {
	defined, dropped := podSpec(), otherRule(0)
	defined.CRDGeneration++
	t.Run("defined anew", func(t *testing.T) { testShares(t, defined, 399) })
	t.Run("dropped", func(t *testing.T) { testShares(t, dropped, 0) })
}

func testShares(t *testing.T, spec Spec, packed int) {
	run := newSucceeding(t, 400, 1)
	from, err := run.store.Successor(spec, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, labels := map[Key]*Object{}, run.store.contents.indexes[LabelIndex]
	for _, o := range run.store.objectsOf("") {
		before[o.Key()] = o
	}
	run.versions[7] = 1000
	from.Replace("", run.list(from), "1000")
	if _, err := run.store.TakeOver(from); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, o := range run.store.objectsOf("") {
		was := before[o.Key()]
		if o.ResourceVersion() == "1000" {
			continue
		}
		if unsafe.StringData(o.text) != unsafe.StringData(was.text) || o.common != was.common || o.own != was.own {
			t.Fatalf("%s has its identity or terms anew", o.Key())
		}
		if sharesData(o, was) {
			whole++
		}
	}
	if whole != packed { // one has changed
		t.Errorf("%d share their JSON, want %d", whole, packed)
	}
	if run.store.contents.indexes[LabelIndex] != labels {
		t.Error("the index of labels was made anew")
	}
	checkContents(t, run.store)
}

// TestListedShares: what a list has in other bytes at the version that is held, as after an upgrade of
// the API server, shares the rest.
func TestListedShares(t *testing.T) {
	run := newSucceeding(t, 400, 1)
	for i := range 400 {
		raw := run.raw(i)
		held, err := run.store.Decode(raw, "", "")
		if err != nil {
			t.Fatal(err)
		}
		held, _ = run.store.Get(held.Key())
		same, err := run.store.DecodeListed(raw, "", "")
		if err != nil || same != held {
			t.Fatalf("pod %d is not held itself: %v", i, err)
		}
		raw = bytes.Replace(raw, []byte(`"dnsPolicy":"ClusterFirst"`), []byte(`"dnsPolicy":"ClusterLast"`), 1)
		other, err := run.store.DecodeListed(raw, "", "")
		if err != nil || other == held || sameJSON(other, held) {
			t.Fatalf("pod %d in other bytes: %v", i, err)
		}
		if unsafe.StringData(other.text) != unsafe.StringData(held.text) || other.common != held.common || other.own != held.own {
			t.Fatalf("pod %d has its identity or terms anew", i)
		}
	}
}

// TestSuccessorIsNotAsked: it has no indexes to answer from, unless it takes the place of the other
// one in another history.
func TestSuccessorIsNotAsked(t *testing.T) {
	run := newSucceeding(t, 400, 2)
	from, err := run.store.Successor(podSpec(), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	from.Replace("", run.list(from), "1000")
	q := Query{Terms: []Term{{LabelIndex, "tier=tier-3"}}}
	_, asked := from.Select(t.Context(), q)
	_, watched := from.Watch("")
	_, _, listed := from.IndexValues("phase", "", 0)
	if !errors.Is(asked, ErrNotSynced) || !errors.Is(watched, ErrNotSynced) || !errors.Is(listed, ErrNotSynced) {
		t.Errorf("Select() = %v, Watch() = %v, IndexValues() = %v", asked, watched, listed)
	}
	for _, info := range from.Indexes() {
		if info.Values != 0 {
			t.Errorf("index %s has %d values", info.Name, info.Values)
		}
	}
	if _, err := run.twin.TakeOver(from); err == nil {
		t.Error("it took the place of a Store that it shares nothing with")
	}
	from.Abandon(run.store)
	checkContents(t, from)
	run.same(from, run.store2(1000))
}

// store2 is the Store as if it were at a version.
func (run *succeeding) store2(version int) *Store {
	run.store.Bookmark("", strconv.Itoa(version))
	return run.store
}

// TestManyEventsAtOneVersion: who has the version that a rule left as it is may have it from before.
func TestManyEventsAtOneVersion(t *testing.T) {
	s := newStore(t, thingSpec)
	var objs []*Object
	for i := range ringMax + 1 {
		objs = append(objs, secret(t, s, "k"+strconv.Itoa(i), "u", i+1, "word"))
	}
	s.Replace("", objs, "100000")
	spec := thingSpec
	spec.Redact = []string{"spec.word"}
	from, err := s.Successor(spec, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objs = objs[:0]
	for i := range ringMax + 1 {
		objs = append(objs, secret(t, from, "k"+strconv.Itoa(i), "u", i+1, "word"))
	}
	from.Replace("", objs, "100000")
	if stats, err := s.TakeOver(from); err != nil || stats.Rewritten != ringMax+1 {
		t.Fatalf("%+v, %v", stats, err)
	}
	if _, err := s.Watch("100000"); !errors.Is(err, ErrExpired) {
		t.Errorf("Watch(100000) = %v, want ErrExpired", err)
	}
	s.Bookmark("", "100001")
	if _, err := s.Watch("100001"); err != nil {
		t.Errorf("Watch(100001) = %v", err)
	}
}

// TestSuccessorUnderReaders: who asks while objects are put into the rows of before has an answer of
// the one rule or the other.
func TestSuccessorUnderReaders(t *testing.T) {
	run := newSucceeding(t, 400, 5)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				q := []Query{{Terms: []Term{{LabelIndex, "tier=tier-3"}}}, {Terms: []Term{{"phase", "Running"}}}, {}}[n%3]
				found, err := run.store.Select(context.Background(), q)
				if err != nil {
					t.Error(err)
					return
				}
				for _, o := range found.Objects {
					if o.generation != found.Objects[0].generation {
						t.Error("an answer is of two rules")
						return
					}
				}
				run.store.Indexes()
			}
		})
	}
	for round := range 12 {
		run.change()
		spec := podSpec()
		if round%2 == 0 {
			spec.Drop = append(spec.Drop, "status.hostIPs")
		}
		from, err := run.store.Successor(spec, StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		from.Replace("", run.list(from), strconv.Itoa(run.version))
		if _, err := run.store.TakeOver(from); err != nil {
			t.Fatal(err)
		}
		if err := run.store.SetIndexes(otherRule(round).Indexes); err != nil {
			t.Fatal(err)
		}
		if err := run.store.SetIndexes(podSpec().Indexes); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
	checkContents(t, run.store)
}

// TestManyEvents: of more changes at once than are remembered none are, and whoever was there before
// has to list.
func TestManyEvents(t *testing.T) {
	const n = ringMax + 1
	list := func(s *Store, version, objects int) (objs []*Object) {
		for i := range objects {
			raw := fmt.Sprintf(`{"metadata":{"namespace":"a","name":"k%05d","uid":"u%d","resourceVersion":"%d"},"spec":{"word":"w%d"}}`, i, i, version, version)
			o, err := s.Decode([]byte(raw), "example.com/v1", "Thing")
			if err != nil {
				t.Fatal(err)
			}
			objs = append(objs, o)
		}
		return objs
	}
	ways := map[string]func(s *Store){
		"Replace": func(s *Store) { s.Replace("", list(s, 200, n), "300") },
		"fewer":   func(s *Store) { s.Replace("", nil, "300") },
		"TakeOver": func(s *Store) {
			from, err := s.Successor(thingSpec, StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			from.Replace("", list(from, 200, n), "300")
			if _, err := s.TakeOver(from); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, thingSpec)
			s.Replace("", list(s, 100, n), "100")
			s.Apply("", Modified, list(s, 110, 1)[0])
			behind, counted := watch(t, s, ""), s.Stats().Events
			change(s)
			if got := s.Stats(); got.Events != counted+n || got.RingEvents != 0 {
				t.Errorf("%d events more, %d remembered", got.Events-counted, got.RingEvents)
			}
			if events, err := behind.Poll(); !errors.Is(err, ErrExpired) {
				t.Errorf("who followed is told %d events, %v, want ErrExpired", len(events), err)
			}
			if _, err := s.Watch("110"); !errors.Is(err, ErrExpired) {
				t.Errorf("Watch(110) = %v, want ErrExpired", err)
			}
			if _, err := s.PageAt(t.Context(), Query{}, 1, "110"); !errors.Is(err, ErrExpired) {
				t.Errorf("PageAt(110) = %v, want ErrExpired", err)
			}
			from := watch(t, s, "300")
			next := list(s, 310, 1)[0]
			s.Apply("", Added, next)
			if got := readAll(t, from); !strings.HasSuffix(got, "a/k00000@310") {
				t.Errorf("who listed is told %q", got)
			}
			checkContents(t, s)
		})
	}
}
