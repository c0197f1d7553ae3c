package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var things = cache.Spec{
	Resource: cache.Resource{Cluster: "c", GVR: schema.GroupVersionResource{Group: "x", Version: "v1", Resource: "things"}},
	Kind:     "Thing", Namespaced: true, Watch: true,
}

// object is one of the truth.
type object struct {
	Name, Color string
	UID         int
	Version     int
	Created     time.Time
}

func (o object) json() []byte {
	b, _ := json.Marshal(map[string]any{
		"apiVersion": "x/v1", "kind": "Thing",
		"metadata": map[string]any{
			"namespace": "ns", "name": o.Name, "uid": fmt.Sprint("uid-", o.UID),
			"resourceVersion": strconv.Itoa(o.Version), "creationTimestamp": o.Created.UTC().Format(time.RFC3339),
			"labels": map[string]string{"color": o.Color},
		},
		"spec": map[string]any{"color": o.Color},
	})
	return b
}

// change is one event of the truth.
type change struct {
	typ    cache.EventType
	object object
}

// truth is an API server: objects, and every change there ever was.
type truth struct {
	version int
	uids    int
	objects map[string]object
	history []change
}

func (w *truth) put(name, color string) object {
	w.version++
	o, there := w.objects[name]
	typ := cache.Modified
	if !there {
		typ = cache.Added
		w.uids++
		o = object{Name: name, UID: w.uids, Created: time.Now()}
	}
	o.Color, o.Version = color, w.version
	w.objects[name] = o
	w.history = append(w.history, change{typ, o})
	return o
}

func (w *truth) remove(name string) {
	o, there := w.objects[name]
	if !there {
		return
	}
	w.version++
	o.Version = w.version
	delete(w.objects, name)
	w.history = append(w.history, change{cache.Deleted, o})
}

// world is a truth with a copy of it, handlers, and a disk that outlives both.
type world struct {
	t     testing.TB
	truth truth

	mu      sync.Mutex // guards all below
	store   *cache.Store
	seen    int // changes of the truth that the copy has
	state   cache.State
	hidden  bool // the cluster does not have the resource
	silent  bool // the cluster has not told what it has
	redact  []string
	disk    disk
	broken  error // of every commit
	away    error // of every look at a ledger
	commits int

	manager *Manager
	stop    context.CancelFunc
	ended   chan struct{}
}

// disk is what a crash leaves.
type disk struct {
	seen    int // changes that the snapshot has; -1: there is none
	saved   cache.Saved
	records map[cache.Key]cache.Record
	ledgers map[string]map[string][]byte
	erased  bool // a change said that what it replaces must not be kept
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, truth: truth{version: 100, objects: map[string]object{}}, state: cache.Live,
		disk: disk{seen: -1, records: map[cache.Key]cache.Record{}, ledgers: map[string]map[string][]byte{}}}
	w.restore()
	t.Cleanup(func() {
		w.crash()
		w.store.Close()
	})
	return w
}

// restore makes the copy that a start finds: that of the snapshot, or a list of now.
func (w *world) restore() {
	store, err := cache.NewStore(things, cache.StoreOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.store != nil {
		w.store.Close()
	}
	at := len(w.truth.history)
	if w.disk.seen >= 0 {
		at = w.disk.seen
		err = store.Restore(w.disk.saved, slices.Collect(maps.Values(w.disk.records)))
		if err != nil {
			w.t.Fatal(err)
		}
	} else {
		w.list(store)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store, w.seen = store, at
	if w.state == cache.Live && w.disk.seen >= 0 {
		w.state = cache.Warm
	}
}

// list is a first list of what is true now.
func (w *world) list(store *cache.Store) {
	var all []*cache.Object
	for _, o := range w.truth.objects {
		all = append(all, w.decode(store, o))
	}
	store.Replace("", all, strconv.Itoa(w.truth.version))
}

func (w *world) decode(s *cache.Store, o object) *cache.Object {
	obj, err := s.Decode(o.json(), "x/v1", "Thing")
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// catchUp tells the copy of n more changes of the truth.
func (w *world) catchUp(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; n > 0 && w.seen < len(w.truth.history); n-- {
		c := w.truth.history[w.seen]
		w.store.Apply("", c.typ, w.decode(w.store, c.object))
		w.seen++
	}
	if w.state == cache.Warm && w.seen == len(w.truth.history) {
		w.state = cache.Live
	}
}

func (w *world) all() { w.catchUp(1 << 30) }

// start runs handlers over what the disk has.
func (w *world) start(specs ...Handler) {
	w.t.Helper()
	w.manager = NewManager(Options{Caches: w, Ledgers: w, SaveNow: func() error { return w.save(false) }})
	if err := w.manager.Apply(specs); err != nil {
		w.t.Fatal(err)
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	w.ended = make(chan struct{})
	m, ended := w.manager, w.ended
	go func() {
		defer close(ended)
		_ = m.Run(ctx)
	}()
}

// crash ends the process: what is not on disk is gone. Nothing is saved any more before
// what runs has ended.
func (w *world) crash() {
	if w.stop == nil {
		return
	}
	w.mu.Lock()
	w.broken = fmt.Errorf("crashed")
	w.mu.Unlock()
	w.stop()
	<-w.ended
	w.stop = nil
	w.mu.Lock()
	w.broken = nil
	w.mu.Unlock()
}

// save commits what handlers know, with a snapshot of the copy or without.
func (w *world) save(snapshot bool) error {
	w.mu.Lock()
	seen, store := w.seen, w.store
	w.mu.Unlock()
	var batch cache.Batch
	if snapshot {
		batch, snapshot = store.TakeChanges()
	}
	err := w.manager.Save(func(changes []cache.LedgerChange) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.broken != nil {
			return w.broken
		}
		w.commits++
		if snapshot {
			w.disk.seen = seen
			w.disk.add(batch)
		}
		for _, c := range changes {
			w.disk.apply(c)
		}
		return nil
	})
	if err != nil && snapshot {
		store.GiveBack(batch)
	}
	return err
}

func (d *disk) add(b cache.Batch) {
	dictionaries := d.saved.Dictionaries
	if b.Reset || dictionaries == nil {
		dictionaries = map[uint32][]byte{}
	}
	maps.Copy(dictionaries, b.Saved.Dictionaries)
	d.saved = b.Saved
	d.saved.Dictionaries = dictionaries
	if b.Reset {
		clear(d.records)
	}
	for _, k := range b.Delete {
		delete(d.records, k)
	}
	for r := range b.Records() {
		d.records[r.Key] = r
	}
}

func (d *disk) apply(c cache.LedgerChange) {
	d.erased = d.erased || c.Erase
	if c.Reset {
		delete(d.ledgers, c.Name)
	}
	if d.ledgers[c.Name] == nil && len(c.Put) > 0 {
		d.ledgers[c.Name] = map[string][]byte{}
	}
	for _, k := range c.Delete {
		delete(d.ledgers[c.Name], string(k))
	}
	for _, e := range c.Put {
		d.ledgers[c.Name][string(e.Key)] = slices.Clone(e.Value)
	}
}

// What follows makes a world the Caches and the Ledgers of a Manager.

func (w *world) Match(clusters, names []string) []cache.Resource {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hidden || !w.Names(clusters, names, things.Cluster, things.GVR.GroupResource()) {
		return nil
	}
	return []cache.Resource{things.Resource}
}

func (w *world) Names(_, names []string, cluster string, r schema.GroupResource) bool {
	return cluster == things.Cluster && slices.Contains(names, r.String())
}

func (w *world) Resource(string, schema.GroupResource) (Resource, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w, !w.hidden
}

func (w *world) Lacks(string, schema.GroupResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.silent
}

func (w *world) View() *cache.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := &cache.View{Spec: things, State: w.state}
	v.Spec.Redact = w.redact
	if w.state.Readable() {
		v.Hold(w.store)
	}
	return v
}

func (w *world) Ledgers() ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away != nil {
		return nil, w.away
	}
	return slices.Sorted(maps.Keys(w.disk.ledgers)), nil
}

func (w *world) Ledger(name string, yield func(cache.LedgerEntry) error) error {
	w.mu.Lock()
	saved, away := maps.Clone(w.disk.ledgers[name]), w.away
	w.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(saved)) {
		if err := yield(cache.LedgerEntry{Key: []byte(k), Value: saved[k]}); err != nil {
			return err
		}
	}
	return away // which is noticed at the end
}

// sink records deliveries.
type sink struct {
	mu   sync.Mutex // guards all below
	got  []Delivery
	last map[string]string // by name: the color, or "" for an end
	// answer is what a delivery is answered; nil takes it.
	answer func(Delivery) error
	closed bool
}

func (s *sink) Deliver(ctx context.Context, d *Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		if err := s.answer(*d); err != nil {
			return err
		}
	}
	s.got = append(s.got, *d)
	if s.last == nil {
		s.last = map[string]string{}
	}
	s.last[d.Name] = colorOf(d)
	return nil
}

func (s *sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *sink) deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// colorOf is the color of what was delivered, "" of an end.
func colorOf(d *Delivery) string {
	if d.Transition == Leaves {
		return ""
	}
	var o struct {
		Spec struct {
			Color string `json:"color"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(d.Object, &o)
	return o.Spec.Color
}

func handler(s Sink) Handler {
	return Handler{
		Name: "h", Resources: []string{"things.x"}, On: Transitions, From: FromBeginning,
		Retry: Retry{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond, Attempts: 3},
		Sink:  s, SinkKind: "test", Concurrency: 4, MaxLease: time.Minute, As: access.Everyone(), Digest: "1", SinkDigest: "1",
	}
}

// until waits for ok.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// idle waits until every change is considered and nothing is pending any more.
func (w *world) idle() {
	w.t.Helper()
	w.all()
	until(w.t, "idle", func() bool {
		version := w.store.Version()
		for _, s := range w.manager.Handlers() {
			s, _ = w.manager.Handler(s.Name)
			if s.Pending > 0 || len(s.Lines) == 0 || s.State != stateActive {
				return false
			}
			for _, l := range s.Lines {
				if l.ResourceVersion != version {
					return false
				}
			}
		}
		return true
	})
}

func names(all []Delivery) []string {
	var out []string
	for _, d := range all {
		out = append(out, fmt.Sprintf("%s %s %s", d.Name, d.Transition, colorOf(&d)))
	}
	slices.Sort(out)
	return out
}

// endPending has a handler with s, of which the end of a, which had a color, is pending and
// saved. If s is told nothing else, it refuses ends.
func (w *world) endPending(s *sink, color string) Handler {
	w.t.Helper()
	if s.answer == nil {
		s.answer = func(d Delivery) error {
			if d.Transition == Leaves {
				return &RejectedError{Reason: "not yet"}
			}
			return nil
		}
	}
	h := handler(s)
	h.Retry.Attempts = 1000
	w.start(h)
	w.truth.put("a", color)
	w.idle()
	w.truth.remove("a")
	w.all()
	until(w.t, "the end is tried", func() bool { st, _ := w.manager.Handler("h"); return st.Retrying > 0 })
	if err := w.save(true); err != nil {
		w.t.Fatal(err)
	}
	return h
}
