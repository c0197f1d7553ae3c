package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// drift is a plain model of a store whose objects change their shape over time.
type drift struct {
	rng     *rand.Rand
	version int
	objects map[Key][]byte // JSON by key
}

// change makes n changes of objects of a shape, in the model and in the store.
func (d *drift) change(t *testing.T, s *Store, shape, n int) {
	t.Helper()
	for range n {
		d.version++
		key := Key{Name: fmt.Sprintf("x%03d", d.rng.IntN(600))}
		kind := Modified
		if _, ok := d.objects[key]; ok && d.rng.IntN(10) == 0 {
			kind = Deleted
		}
		raw := shaped(d.rng, shape, key.Name, d.version)
		o, err := s.Decode(raw, "", "")
		if err != nil {
			t.Fatal(err)
		}
		s.Apply("", kind, o)
		if d.objects[key] = raw; kind == Deleted {
			delete(d.objects, key)
		}
	}
}

// shaped is an object whose field names and phrases those of its shape have in
// common, and those of other shapes do not. It names its own checksum.
func shaped(rng *rand.Rand, shape int, name string, version int) []byte {
	words := rand.New(rand.NewPCG(uint64(shape), 1))
	var body bytes.Buffer
	for n := range 40 {
		fmt.Fprintf(&body, `"field-%x":"%x-%d",`, words.Uint64(), words.Uint64(), rng.IntN(5))
		if n%10 == 0 {
			fmt.Fprintf(&body, `"id-%d":"%x",`, n, rng.Uint32())
		}
	}
	sum := fnv.New64a()
	sum.Write(body.Bytes())
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"T","metadata":{"name":%q,"uid":%q,"resourceVersion":"%d"},"spec":{%s"sum":"%x"}}`,
		name, "uid-"+name, version, body.Bytes(), sum.Sum64())
}

// intact checks the checksum of an object made by shaped.
func intact(plain []byte) error {
	_, rest, _ := bytes.Cut(plain, []byte(`"spec":{`))
	body, sum, ok := bytes.Cut(rest, []byte(`"sum":"`))
	want := fnv.New64a()
	want.Write(body)
	if !ok || string(sum) != fmt.Sprintf(`%x"}}`, want.Sum64()) {
		return errors.New("checksum differs")
	}
	return nil
}

func (d *drift) check(t *testing.T, s *Store) {
	t.Helper()
	checkContents(t, s)
	objs := s.objectsOf("")
	if len(objs) != len(d.objects) {
		t.Fatalf("%d objects, want %d", len(objs), len(d.objects))
	}
	for _, o := range objs {
		if plain, err := o.JSON(); err != nil || !bytes.Equal(plain, d.objects[o.Key()]) {
			t.Fatalf("%s = %s, want %s (%v)", o.Key(), plain, d.objects[o.Key()], err)
		}
	}
}

// TestRepackUnderDrift: objects change, are read, saved and compressed anew all at
// once, and their shape drifts. Neither readers nor the snapshot ever meet an
// object without its dictionary, events are those of changes only, and what is
// not referred to any more is gone.
func TestRepackUnderDrift(t *testing.T) {
	d := &drift{rng: rand.New(rand.NewPCG(31, 32)), version: 1, objects: map[Key][]byte{}}
	db := &disk{}
	s := newStore(t, thingSpec)
	s.Replace("", nil, "1")
	var trainings, repacked uint64
	for shape := range 3 {
		events := s.Stats().Events
		before := d.version
		stop := disturb(t, s, db)
		d.change(t, s, shape, 800)
		stop()
		d.change(t, s, shape, 700)
		s.Repack(t.Context())
		d.check(t, s)
		stats := s.Stats()
		if n := stats.Events - events; n > uint64(d.version-before) {
			t.Errorf("%d events for %d changes", n, d.version-before)
		}
		if stats.Dictionaries != 1 || stats.Bytes*2 > stats.RawBytes {
			t.Errorf("shape %d: %d dictionaries, %d bytes for %d of JSON", shape, stats.Dictionaries, stats.Bytes, stats.RawBytes)
		}
		trainings, repacked = trainings+stats.Trainings, repacked+stats.Repacked
		s = restart(t, s, db)
		d.check(t, s)
	}
	if trainings < 3 || repacked < 600 {
		t.Errorf("%d dictionaries trained and %d objects repacked over three shapes", trainings, repacked)
	}
}

// disturb reads, saves and repacks a store until stop.
func disturb(t *testing.T, s *Store, db *disk) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	loop := func(f func(n int)) {
		running.Go(func() {
			for n := 0; sleep(ctx, time.Millisecond); n++ {
				f(n)
			}
		})
	}
	loop(func(int) { s.Repack(ctx) })
	loop(func(int) {
		for _, o := range s.objectsOf("") {
			plain, err := o.JSON()
			if err == nil {
				err = intact(plain)
			}
			if err != nil {
				t.Errorf("%s: %v", o.Key(), err)
				cancel()
				return
			}
		}
	})
	loop(func(n int) {
		if b, ok := s.TakeChanges(); ok && n%3 == 0 {
			s.GiveBack(b) // the disk was full
		} else if ok {
			save(t, db, b)
		}
	})
	return func() { cancel(); running.Wait() }
}

// save commits a batch and checks that no record lacks its dictionary.
func save(t *testing.T, db *disk, b Batch) {
	t.Helper()
	db.commit(b)
	for _, rec := range db.records {
		if _, ok := db.saved.Dictionaries[rec.Dictionary]; !ok && rec.Dictionary != 0 {
			t.Errorf("%s is saved without dictionary %d", rec.Key, rec.Dictionary)
		}
	}
}

// restart returns a store that was filled with what s saved.
func restart(t *testing.T, s *Store, db *disk) *Store {
	t.Helper()
	if b, ok := s.TakeChanges(); ok {
		save(t, db, b)
	}
	if n := len(db.saved.Dictionaries); n != 1 {
		t.Errorf("%d dictionaries are saved, want one", n)
	}
	next := newStore(t, thingSpec)
	if err := next.Restore(db.saved, db.sorted()); err != nil {
		t.Fatal(err)
	}
	return next
}

// TestRepackKeepsWhatFits: as long as objects are alike, there is nothing to do,
// however many they are.
func TestRepackKeepsWhatFits(t *testing.T) {
	d := &drift{rng: rand.New(rand.NewPCG(33, 34)), version: 1, objects: map[Key][]byte{}}
	s := newStore(t, thingSpec)
	s.Replace("", nil, "1")
	d.change(t, s, 1, 800)
	s.Repack(t.Context())
	dict := s.packing.dict.Load()
	if dict == nil {
		t.Fatal("no dictionary")
	}
	for round := range 4 {
		d.change(t, s, 1, 800)
		s.TakeChanges()
		s.Repack(t.Context())
		if s.packing.dict.Load() != dict {
			t.Fatalf("round %d: another dictionary", round)
		}
		if b, ok := s.TakeChanges(); ok {
			t.Fatalf("round %d: %d records to save after nothing", round, b.Len())
		}
	}
}

// TestRepackHopeless: objects that nothing compresses are not tried for ever.
func TestRepackHopeless(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	d := &drift{rng: rng, version: 1, objects: map[Key][]byte{}}
	s := newStore(t, thingSpec)
	s.Replace("", nil, "1")
	d.change(t, s, 1, 800)
	s.Repack(t.Context())
	trained := s.Stats().Trainings
	for range 6 {
		for n := range 700 {
			d.version++
			noise := make([]byte, 300)
			for i := range noise {
				noise[i] = byte(rng.IntN(256))
			}
			o, err := s.Decode(fmt.Appendf(nil, `{"metadata":{"name":"x%03d","resourceVersion":"%d"},"data":"%x"}`, n, d.version, noise), "", "")
			if err != nil {
				t.Fatal(err)
			}
			s.Apply("", Modified, o)
		}
		s.Repack(t.Context())
	}
	if n := s.Stats().Trainings - trained; n > 2 {
		t.Errorf("%d more dictionaries for noise", n)
	}
	if o, ok := s.Get(Key{Name: "x" + strconv.Itoa(100)}); !ok {
		t.Error("no x100")
	} else if _, err := o.JSON(); err != nil {
		t.Error(err)
	}
}
