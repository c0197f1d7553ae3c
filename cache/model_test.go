package cache

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// model is a Store made of a map.
type model map[Key]thing

func (m model) selectKeys(q Query, definitions map[string]string) []string {
	keys := []string{}
	for _, k := range slices.SortedFunc(maps.Keys(m), Key.Compare) {
		if m[k].matches(q, definitions) {
			keys = append(keys, k.String()+"@"+m[k].Metadata.ResourceVersion)
		}
	}
	return keys
}

func (m model) indexValues(index string, definitions map[string]string) []IndexValue {
	counts := map[string]int{}
	for _, t := range m {
		for _, v := range t.terms(index, definitions) {
			counts[v]++
		}
	}
	values := []IndexValue{}
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		values = append(values, IndexValue{v, counts[v]})
	}
	return values
}

func keysOf(objs []*Object) []string {
	keys := []string{}
	for _, o := range objs {
		keys = append(keys, o.Key().String()+"@"+o.ResourceVersion())
	}
	return keys
}

var indexDefinitions = []map[string]string{
	{},
	{"node": "spec.node"},
	{"node": "spec.node", "count": "spec.count", "part": "spec.parts[*].v"},
	{"node": "spec.count", "ready": "spec.ready", "text": "spec.text", "body": "spec"},
}

// modelRun holds a Store, what it must equal, and who follows it.
type modelRun struct {
	t       *testing.T
	r       *rand.Rand
	store   *Store
	model   model
	version int
	uids    int
	indexes map[string]string
	disk    *disk
	replica []*replica
	old     []*Object // earlier versions of objects, and what they were
	oldWas  []thing
}

// disk is what snapshots are committed to.
type disk struct {
	saved   Saved
	records map[Key]Record
}

func (d *disk) commit(b Batch) {
	dictionaries := d.saved.Dictionaries
	if b.Reset || d.records == nil {
		d.records, dictionaries = map[Key]Record{}, map[uint32][]byte{}
	}
	d.saved = b.Saved
	d.saved.Dictionaries = dictionaries
	maps.Copy(dictionaries, b.Saved.Dictionaries)
	for _, id := range b.Retired {
		delete(dictionaries, id)
	}
	for r := range b.Records() {
		d.records[r.Key] = r
	}
	for _, k := range b.Delete {
		delete(d.records, k)
	}
}

func (d *disk) sorted() []Record {
	var out []Record
	for _, k := range slices.SortedFunc(maps.Keys(d.records), Key.Compare) {
		out = append(out, d.records[k])
	}
	return out
}

// replica rebuilds the Store's state from its events.
type replica struct {
	sub    *Subscription
	state  map[Key]string // resourceVersions
	resume string
}

func newModelRun(t *testing.T, seed uint64) *modelRun {
	run := &modelRun{t: t, r: rand.New(rand.NewPCG(seed, 1)), model: model{}, version: 100, disk: &disk{}, indexes: thingSpec.Indexes}
	run.store = newStore(t, thingSpec)
	run.store.Replace("", nil, "100")
	return run
}

func newStore(t testing.TB, spec Spec) *Store {
	t.Helper()
	s, err := NewStore(spec, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (run *modelRun) next() int {
	run.version += 1 + run.r.IntN(2)
	return run.version
}

func (run *modelRun) decode(t thing) *Object { return run.decodeIn(run.store, t) }

func (run *modelRun) decodeIn(s *Store, t thing) *Object {
	o, err := s.Decode(t.json(), "example.com/v1", "Thing")
	if err != nil {
		run.t.Fatal(err)
	}
	if len(run.old) < 200 {
		run.old, run.oldWas = append(run.old, o), append(run.oldWas, t)
	} else {
		i := run.r.IntN(len(run.old))
		run.old[i], run.oldWas[i] = o, t
	}
	return o
}

func (run *modelRun) key() Key {
	return Key{pick(run.r, "a", "b", "ab", "c"), "k" + strconv.Itoa(run.r.IntN(12))}
}

func (run *modelRun) newUID() string {
	run.uids++
	return "uid-" + strconv.Itoa(run.uids)
}

// change draws a new state of key: of the same object, or of one that replaces
// it.
func (run *modelRun) change(key Key) thing {
	uid := run.newUID()
	if held, ok := run.model[key]; ok && run.r.IntN(5) > 0 {
		uid = held.Metadata.UID
	}
	return randomThing(run.r, key, uid, run.next())
}

func (run *modelRun) step() {
	switch n := run.r.IntN(100); {
	case n < 45:
		t := run.change(run.key())
		kind := Modified
		if _, ok := run.model[t.key()]; !ok || run.r.IntN(4) == 0 {
			kind = Added
		}
		run.model[t.key()] = t
		run.store.Apply("", kind, run.decode(t))
	case n < 60:
		run.delete(run.key())
	case n < 68:
		run.stale(run.key())
	case n < 73:
		run.store.Bookmark("", strconv.Itoa(run.next()))
	case n < 80:
		run.replace()
	case n < 84:
		definitions := pick(run.r, indexDefinitions...)
		old := run.decode(randomThing(run.r, run.key(), run.newUID(), run.next()))
		if err := run.store.SetIndexes(definitions); err != nil {
			run.t.Fatal(err)
		}
		run.indexes = definitions
		// It was decoded before, and arrives after.
		run.model[old.Key()] = run.oldWas[slices.Index(run.old, old)]
		run.store.Apply("", Modified, old)
	case n < 92:
		run.save()
	case n < 94:
		run.restart()
	default:
		run.follow()
	}
	for _, rep := range run.replica {
		if run.r.IntN(3) == 0 {
			run.read(rep)
		}
	}
}

func (run *modelRun) delete(key Key) {
	held, ok := run.model[key]
	if !ok {
		held = randomThing(run.r, key, "unknown", 0)
	}
	held.Metadata.ResourceVersion = strconv.Itoa(run.next())
	delete(run.model, key)
	run.store.Apply("", Deleted, run.decode(held))
}

// stale applies what has been seen, or is older than what has been.
func (run *modelRun) stale(key Key) {
	held, ok := run.model[key]
	if !ok {
		return
	}
	if version, _ := strconv.Atoi(held.Metadata.ResourceVersion); run.r.IntN(2) == 0 {
		held.Metadata.ResourceVersion = strconv.Itoa(version - 1)
		held.Spec, held.doc = thingBody{}, new(map[string]any)
	}
	run.store.Apply("", pick(run.r, Added, Modified), run.decode(held))
}

func (run *modelRun) replace() {
	next := model{}
	for k, t := range run.model {
		switch run.r.IntN(6) {
		case 0:
		case 1:
			next[k] = run.change(k)
		default:
			next[k] = t
		}
	}
	for range run.r.IntN(4) {
		k := run.key()
		next[k] = run.change(k)
	}
	var want ReplaceStats
	for k, t := range run.model {
		n, ok := next[k]
		switch {
		case !ok:
			want.Deleted++
		case n.Metadata.ResourceVersion != t.Metadata.ResourceVersion:
			want.Modified++
		}
	}
	want.Added = len(next) - (len(run.model) - want.Deleted)
	run.model = next
	if run.r.IntN(3) == 0 {
		run.takeOver(next, want)
		return
	}
	var objs []*Object
	for _, t := range next {
		objs = append(objs, run.decode(t))
	}
	if got := run.store.Replace("", objs, strconv.Itoa(run.next())); got != want {
		run.t.Errorf("Replace() = %+v, want %+v", got, want)
	}
}

// takeOver has a Successor list next, as of another definition of the resource, and sometimes other
// indexes.
func (run *modelRun) takeOver(next model, want ReplaceStats) {
	spec := run.store.specLocked()
	spec.CRDGeneration++
	if run.r.IntN(3) == 0 {
		spec.Indexes = pick(run.r, indexDefinitions...)
	}
	from, err := run.store.Successor(spec, StoreOptions{})
	if err != nil {
		run.t.Fatal(err)
	}
	var listed, told []*Object
	for _, t := range next {
		if o := run.decodeIn(from, t); run.r.IntN(4) > 0 {
			listed = append(listed, o)
		} else {
			told = append(told, o)
		}
	}
	from.Replace("", listed, run.store.Version())
	for _, o := range told {
		from.Apply("", Added, o)
	}
	from.Bookmark("", strconv.Itoa(run.next()))
	if got, err := run.store.TakeOver(from); err != nil || got != want {
		run.t.Errorf("TakeOver() = %+v, %v, want %+v", got, err, want)
	}
	run.indexes = spec.Indexes
}

// save commits what changed, unless the disk fails, and then changes more
// before giving back what was not saved.
func (run *modelRun) save() {
	b, ok := run.store.TakeChanges()
	if !ok {
		return
	}
	if run.r.IntN(3) == 0 {
		if run.r.IntN(2) == 0 {
			run.delete(run.key())
		}
		run.store.GiveBack(b)
		return
	}
	run.disk.commit(b)
	got := map[Key]string{}
	for k, r := range run.disk.records {
		got[k] = r.ResourceVersion
	}
	if diff := cmp.Diff(run.versions(), got); diff != "" {
		run.t.Fatalf("disk differs from the model:\n%s", diff)
	}
	if got, want := run.disk.saved.ResourceVersions[""], run.store.Version(); got != want {
		run.t.Fatalf("saved resourceVersion %s, want %s", got, want)
	}
}

func (run *modelRun) versions() map[Key]string {
	out := map[Key]string{}
	for k, t := range run.model {
		out[k] = t.Metadata.ResourceVersion
	}
	return out
}

// restart goes on with a new Store that has read the disk.
func (run *modelRun) restart() {
	b, ok := run.store.TakeChanges()
	if ok {
		run.disk.commit(b)
	}
	if run.disk.records == nil {
		return
	}
	version := run.store.Version()
	spec := thingSpec
	spec.Indexes = pick(run.r, run.indexes, indexDefinitions[2])
	run.indexes = spec.Indexes
	run.store.Close()
	run.store = newStore(run.t, spec)
	if err := run.store.Restore(run.disk.saved, run.disk.sorted()); err != nil {
		run.t.Fatal(err)
	}
	if got := run.store.Version(); got != version {
		run.t.Fatalf("restored Version() = %s, want %s", got, version)
	}
	again, ok := run.store.TakeChanges()
	if ok != !maps.Equal(run.disk.saved.Spec.Indexes, spec.Indexes) {
		run.t.Fatalf("TakeChanges() after Restore = %v", ok)
	}
	if ok {
		run.disk.commit(again)
	}
	run.replica, run.old, run.oldWas = nil, nil, nil
}

// follow starts a replica from a list.
func (run *modelRun) follow() {
	if len(run.replica) > 4 {
		run.replica = run.replica[1:]
	}
	list, err := run.store.Select(context.Background(), Query{})
	if err != nil {
		run.t.Fatal(err)
	}
	sub, err := run.store.Watch(list.Version)
	if err != nil {
		run.t.Fatal(err)
	}
	rep := &replica{sub: sub, state: map[Key]string{}, resume: list.Version}
	for _, o := range list.Objects {
		rep.state[o.Key()] = o.ResourceVersion()
	}
	run.replica = append(run.replica, rep)
}

// read lets rep read some events, and perhaps lose its connection.
func (run *modelRun) read(rep *replica) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// A cancelled context never waits; read directly what is there.
	if _, err := rep.sub.Next(ctx); !errors.Is(err, context.Canceled) {
		run.t.Fatalf("Next() of a cancelled context = %v", err)
	}
	events, _, err := rep.sub.read()
	if err != nil {
		run.t.Fatalf("read: %v", err)
	}
	stop := len(events)
	if stop > 0 && run.r.IntN(4) == 0 {
		stop = run.r.IntN(stop) + 1 // the connection breaks after some of them
	}
	for _, e := range events[:stop] {
		rep.apply(run.t, e)
	}
	if stop < len(events) || run.r.IntN(4) == 0 {
		rep.sub.Close()
		if rep.sub, err = run.store.Watch(rep.resume); errors.Is(err, ErrExpired) {
			run.replica = slices.DeleteFunc(run.replica, func(r *replica) bool { return r == rep })
			return
		}
		if err != nil {
			run.t.Fatal(err)
		}
	}
	if stop == len(events) && rep.sub.next == run.store.ring.next {
		if diff := cmp.Diff(run.versions(), rep.state); diff != "" {
			run.t.Fatalf("replica differs from the model:\n%s", diff)
		}
	}
}

func (rep *replica) apply(t *testing.T, e Event) {
	switch e.Type {
	case Deleted:
		delete(rep.state, e.Object.Key())
	default:
		rep.state[e.Object.Key()] = e.Object.ResourceVersion()
	}
	if (e.Old == nil) != (e.Type == Added) {
		t.Fatalf("%s event with Old = %v", e.Type, e.Old)
	}
	rep.resume = e.Resume
}

func (run *modelRun) check() {
	ctx := context.Background()
	q := randomQuery(run.t, run.r, run.indexes)
	got, err := run.store.Select(ctx, q)
	if err != nil {
		run.t.Fatal(err)
	}
	want := run.model.selectKeys(q, run.indexes)
	if diff := cmp.Diff(want, keysOf(got.Objects)); diff != "" {
		run.t.Fatalf("Select(%v %v %v %v) with indexes %v:\n%s", q.Namespaces, q.Labels, q.Fields, q.Terms, run.indexes, diff)
	}
	if got.Version != strconv.Itoa(run.version) {
		run.t.Fatalf("Version = %s, want %d", got.Version, run.version)
	}
	m, err := run.store.Matcher(q)
	if err != nil {
		run.t.Fatal(err)
	}
	for range min(len(run.old), 20) {
		i := run.r.IntN(len(run.old))
		o := run.old[i]
		if ok, err := m.Match(context.Background(), o); err != nil || ok != run.oldWas[i].matches(q, run.indexes) {
			run.t.Fatalf("Match(%s) = %v, %v for (%v %v %v %v), JSON %s, generation %d of %d, terms %v", o.Key(), ok, err, q.Namespaces, q.Labels, q.Fields, q.Terms, run.oldWas[i].json(), o.generation, m.extraction.generation, o.Terms())
		}
	}
	key := run.key()
	o, ok := run.store.Get(key)
	if want, held := run.model[key]; ok != held || ok && o.ResourceVersion() != want.Metadata.ResourceVersion {
		run.t.Fatalf("Get(%s) = %v, want %v", key, o, want)
	}
	if ok {
		run.checkJSON(o)
	}
	for _, info := range run.store.Indexes() {
		values, _, err := run.store.IndexValues(info.Name, "", 0)
		if err != nil {
			run.t.Fatal(err)
		}
		want := run.model.indexValues(info.Name, run.indexes)
		if diff := cmp.Diff(want, values); diff != "" {
			run.t.Fatalf("IndexValues(%s):\n%s", info.Name, diff)
		}
		if info.Values != len(want) {
			run.t.Fatalf("Indexes(): %s has %d values, want %d", info.Name, info.Values, len(want))
		}
	}
	checkContents(run.t, run.store)
}

func (run *modelRun) checkJSON(o *Object) {
	plain, err := o.JSON()
	if err != nil {
		run.t.Fatal(err)
	}
	var got thing
	if err := json.Unmarshal(plain, &got); err != nil {
		run.t.Fatal(err)
	}
	want := run.model[o.Key()]
	if string(got.json()) != string(want.json()) {
		run.t.Fatalf("JSON of %s = %s, want %s", o.Key(), plain, want.json())
	}
	if o.Size() != len(plain) {
		run.t.Fatalf("Size() = %d of %d bytes", o.Size(), len(plain))
	}
}

// TestModel compares a Store with a plain map under random operations.
func TestModel(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			run := newModelRun(t, seed)
			for range 200 {
				run.step()
				run.check()
			}
		})
	}
}
