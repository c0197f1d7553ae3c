package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var fakeSpec = Spec{
	Resource: Resource{Cluster: "c", GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
	Kind:     "Pod", Singular: "pod", ShortNames: []string{"po"}, Namespaced: true, Watch: true,
	Drop: []string{"metadata.managedFields"},
}

// memory is Snapshots in memory, which can be made to fail.
type memory struct {
	mu      sync.Mutex
	saved   map[Resource]Saved
	records map[Resource]map[Key]Record
	fail    error
	commits int
	// dropping is called before a snapshot is dropped, if it is set.
	dropping func(Resource)
}

func newMemory() *memory {
	return &memory{saved: map[Resource]Saved{}, records: map[Resource]map[Key]Record{}}
}

func (m *memory) Saved() (out []Saved, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.saved)), nil
}

func (m *memory) Load(r Resource, yield func(Record) error) (Saved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved, ok := m.saved[r]
	if !ok {
		return Saved{}, ErrNoSnapshot
	}
	for _, k := range slices.SortedFunc(maps.Keys(m.records[r]), Key.Compare) {
		if err := yield(m.records[r][k]); err != nil {
			return Saved{}, err
		}
	}
	return saved, nil
}

func (m *memory) Commit(batches []Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.commits++
	for _, b := range batches {
		r := b.Saved.Spec.Resource
		dictionaries := maps.Clone(m.saved[r].Dictionaries)
		if !b.Reset && m.records[r] == nil {
			return ErrNoSnapshot
		}
		if b.Reset {
			m.records[r], dictionaries = map[Key]Record{}, nil
		}
		if dictionaries == nil {
			dictionaries = map[uint32][]byte{}
		}
		maps.Copy(dictionaries, b.Saved.Dictionaries)
		for _, id := range b.Retired {
			delete(dictionaries, id)
		}
		for _, rec := range b.Put {
			m.records[r][rec.Key] = rec
		}
		for _, k := range b.Delete {
			delete(m.records[r], k)
		}
		saved := b.Saved
		saved.Dictionaries, saved.Objects = dictionaries, len(m.records[r])
		m.saved[r] = saved
	}
	return nil
}

func (m *memory) Drop(r Resource) error {
	if m.dropping != nil {
		m.dropping(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.saved, r)
	delete(m.records, r)
	return nil
}

// rig is a running factory on a fake API server.
type rig struct {
	*Factory
	api  *fakeAPI
	stop func() error
}

func startRig(t *testing.T, api *fakeAPI, options Options, specs ...Spec) *rig {
	t.Helper()
	if options.SaveInterval == 0 {
		options.SaveInterval = 20 * time.Millisecond
	}
	if options.Log == nil {
		options.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	options.verifyGrace = 200 * time.Millisecond
	options.retry = retry{first: time.Millisecond, last: 50 * time.Millisecond}
	f := NewFactory(options)
	if len(specs) == 0 {
		specs = []Spec{fakeSpec}
	}
	if err := f.Apply("c", specs); err != nil {
		t.Fatal(err)
	}
	if err := f.Connect("c", api.config()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	r := &rig{Factory: f, api: api, stop: sync.OnceValue(func() error { cancel(); return <-done })}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func (r *rig) pods() *Informer {
	i, err := r.Informer(fakeSpec.Resource)
	if err != nil {
		panic(err)
	}
	return i
}

func held(s *Store) map[string]string {
	out := map[string]string{}
	for _, o := range s.objectsOf("") {
		out[o.Key().String()] = describe(o)
	}
	return out
}

// describe is what the truth of the fake API server says of an object.
func describe(o *Object) string {
	var body struct{ Spec struct{ Value string } }
	raw, err := o.JSON()
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s@%s=%s", o.UID(), o.ResourceVersion(), body.Spec.Value)
}

// eventually waits for a condition with a deadline no machine misses.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *rig) becomes(t *testing.T, state State) {
	t.Helper()
	eventually(t, "state "+string(state), func() bool { return r.pods().Status().State == state })
}

// equal waits until the store holds what the server does.
func (r *rig) equal(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		diff := cmp.Diff(r.api.truth(), held(r.pods().Store()))
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the copy differs (-server +copy):\n%s\n%+v", diff, r.pods().Status())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// follow rebuilds the state from a subscription until the store closes.
func follow(t *testing.T, s *Store) (replica func() map[string]string, events func() []Event) {
	t.Helper()
	sub, err := s.Watch("")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	state := held(s)
	var seen []Event
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		defer sub.Close()
		for {
			batch, err := sub.Next(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			for _, e := range batch {
				seen = append(seen, e)
				if e.Type == Deleted {
					delete(state, e.Object.Key().String())
					continue
				}
				var body struct{ Spec struct{ Value string } }
				raw, _ := e.Object.JSON()
				_ = json.Unmarshal(raw, &body)
				state[e.Object.Key().String()] = fmt.Sprintf("%s@%s=%s", e.Object.UID(), e.Object.ResourceVersion(), body.Spec.Value)
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() map[string]string { mu.Lock(); defer mu.Unlock(); return maps.Clone(state) },
		func() []Event { mu.Lock(); defer mu.Unlock(); return slices.Clone(seen) }
}

func churn(api *fakeAPI, rng *rand.Rand, n int) {
	for range n {
		key := Key{[]string{"team-a", "team-b"}[rng.IntN(2)], fmt.Sprintf("p%d", rng.IntN(30))}
		switch rng.IntN(5) {
		case 0:
			api.delete(key)
		case 1:
			api.delete(key)
			api.put(key, "recreated")
		default:
			api.put(key, fmt.Sprint(rng.Uint32()))
		}
	}
}

// TestFollowsThroughFaults holds the promise of resumeWatch: whatever the
// connection does, nothing is lost, and only an expired version costs a relist.
func TestFollowsThroughFaults(t *testing.T) {
	for name, c := range map[string]struct{ server, list string }{
		"after a plain list":     {"v1.36.3", "list"},
		"after a streaming list": {"v1.32.0", "watchlist"},
	} {
		t.Run(name, func(t *testing.T) { followThroughFaults(t, c.server, c.list) })
	}
}

func followThroughFaults(t *testing.T, server, list string) {
	api := newFakeAPI(t)
	api.gitVersion = server
	rng := rand.New(rand.NewPCG(1, 2))
	churn(api, rng, 100)
	r := startRig(t, api, Options{})
	r.becomes(t, Live)
	replica, _ := follow(t, r.pods().Store())
	faults := []func(w http.ResponseWriter) bool{
		func(w http.ResponseWriter) bool { status(w, 503, "ServiceUnavailable"); return true },
		func(w http.ResponseWriter) bool { status(w, 401, "Unauthorized"); return true },
		func(w http.ResponseWriter) bool { status(w, 500, "InternalError"); return true },
		func(w http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter) bool { return true }, // an empty stream that ends at once
		func(w http.ResponseWriter) bool {
			fmt.Fprintf(w, `{"type":"ERROR","object":%s}`+"\n", statusJSON(500, "InternalError"))
			return true
		},
		func(w http.ResponseWriter) bool {
			fmt.Fprint(w, `{"type":"ADDED","object":{"metadata":{"na`)
			return true
		},
	}
	for round := range 30 {
		fault := faults[round%len(faults)]
		left := 1 + rng.IntN(2)
		api.set(func(f *fakeAPI) {
			f.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
				f.mu.Lock()
				left--
				now := left >= 0
				f.mu.Unlock()
				if !now {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				return fault(w)
			}
		})
		churn(api, rng, 20)
		api.cutAll()
		churn(api, rng, 20)
		eventually(t, "the fault to be met", func() bool { api.mu.Lock(); defer api.mu.Unlock(); return left <= 0 })
	}
	api.set(func(f *fakeAPI) { f.fault = nil })
	r.equal(t)
	r.becomes(t, Live)
	eventually(t, "the subscriber to be equal", func() bool { return maps.Equal(replica(), api.truth()) })
	if all, first := api.count("list")+api.count("watchlist"), api.count(list); all != 1 || first != 1 {
		t.Errorf("%d lists, %d of the kind %s; want the first one only", all, first, list)
	}
}

func TestExpiredRelistsWithDiff(t *testing.T) {
	api := newFakeAPI(t)
	for n := range 20 {
		api.put(Key{"team-a", fmt.Sprintf("p%02d", n)}, "v1")
	}
	r := startRig(t, api, Options{})
	r.becomes(t, Live)
	replica, events := follow(t, r.pods().Store())

	// While the watch is down, three objects change, and history is compacted.
	api.set(func(f *fakeAPI) {
		f.fault = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			status(w, 503, "ServiceUnavailable")
			return true
		}
	})
	api.cutAll()
	r.becomes(t, Stale)
	api.put(Key{"team-a", "p03"}, "v2")
	api.delete(Key{"team-a", "p04"})
	api.delete(Key{"team-a", "p05"})
	api.put(Key{"team-a", "p05"}, "recreated")
	api.compact()
	api.set(func(f *fakeAPI) { f.fault = nil })

	r.equal(t)
	r.becomes(t, Live)
	eventually(t, "the subscriber to be equal", func() bool { return maps.Equal(replica(), api.truth()) })
	var got []string
	for _, e := range events() {
		got = append(got, fmt.Sprintf("%s %s", e.Type, e.Object.Key()))
	}
	slices.Sort(got)
	want := []string{"ADDED team-a/p05", "DELETED team-a/p04", "DELETED team-a/p05", "MODIFIED team-a/p03"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subscribers saw more or less than what changed (-want +got):\n%s", diff)
	}
	if s := r.pods().Status(); s.Expired != 1 || s.Relists != 2 {
		t.Errorf("expired %d, relists %d; want 1 and 2", s.Expired, s.Relists)
	}
}

func TestWarmStartListsNothing(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	rng := rand.New(rand.NewPCG(3, 4))
	churn(api, rng, 200)
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, Live)
	first.equal(t)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	churn(api, rng, 50) // missed while informerd is away
	api.set(func(f *fakeAPI) { f.requests = nil })

	second := startRig(t, api, Options{Snapshots: db})
	second.becomes(t, Live)
	second.equal(t)
	if lists := api.count("list") + api.count("watchlist"); lists != 0 {
		t.Errorf("%d lists after a warm start, want none: %v", lists, api.requests)
	}
	if s := second.pods().Status(); s.Relists != 0 || s.SnapshotDrops != 0 {
		t.Errorf("relists %d, drops %d (%s); want none", s.Relists, s.SnapshotDrops, s.SnapshotReason)
	}
}

// TestWarmWithoutServer: with the API server down, the snapshot answers.
func TestWarmWithoutServer(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	api.put(Key{"team-a", "p"}, "v1")
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	down := func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		status(w, 503, "ServiceUnavailable")
		return true
	}
	api.set(func(f *fakeAPI) { f.fault = down })
	second := startRig(t, api, Options{Snapshots: db})
	second.becomes(t, Warm)
	second.equal(t)
	if c := second.Clusters()[0]; c.Err == "" {
		eventually(t, "the cluster to be reported", func() bool { return second.Clusters()[0].Err != "" })
	}
	api.set(func(f *fakeAPI) { f.fault = nil })
	second.becomes(t, Live)
}

// TestSnapshotOfAnotherHistory: each way in which a snapshot may not be the past
// of this server leads to a cold start, and to the server's truth.
func TestSnapshotOfAnotherHistory(t *testing.T) {
	for name, change := range map[string]func(*fakeAPI){
		"other cluster":  func(f *fakeAPI) { f.uid = "cluster-2" },
		"other version":  func(f *fakeAPI) { f.gitVersion = "v1.37.0" },
		"rolled back":    func(f *fakeAPI) { f.version = 50; f.log = nil; f.objects = map[Key]*fakeObject{} },
		"get forbidden":  func(f *fakeAPI) { f.deny = func(verb, _ string) bool { return verb == "get" } },
		"older and past": func(f *fakeAPI) { f.version += 1000; f.log = nil; f.objects[Key{"team-a", "p2"}].version = 90 },
	} {
		t.Run(name, func(t *testing.T) {
			api, db := newFakeAPI(t), newMemory()
			for n := range 3 {
				api.put(Key{"team-a", fmt.Sprintf("p%d", n)}, "v1")
			}
			first := startRig(t, api, Options{Snapshots: db})
			first.becomes(t, Live)
			if err := first.stop(); err != nil {
				t.Fatal(err)
			}
			api.set(change)
			second := startRig(t, api, Options{Snapshots: db})
			eventually(t, "the snapshot to be dropped", func() bool { return second.pods().Status().SnapshotDrops == 1 })
			second.becomes(t, Live)
			second.equal(t)
		})
	}
}

// TestIdentityRefusedAtFirst: an API server that refuses everybody while it
// starts is not taken for another cluster.
func TestIdentityRefusedAtFirst(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(19, 20)), 50)
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	refusals := 3
	api.set(func(f *fakeAPI) {
		f.requests = nil
		f.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
			f.mu.Lock()
			refusals--
			refused := refusals >= 0
			f.mu.Unlock()
			if refused {
				status(w, http.StatusForbidden, "Forbidden")
			}
			return refused
		}
	})
	second := startRig(t, api, Options{Snapshots: db})
	second.becomes(t, Live)
	second.equal(t)
	if s := second.pods().Status(); s.SnapshotDrops != 0 || api.count("list")+api.count("watchlist") != 0 {
		t.Errorf("drops %d (%s), requests %v; want no drop and no list", s.SnapshotDrops, s.SnapshotReason, api.requests)
	}
}

func TestScopeChangeStartsCold(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	api.put(Key{"team-a", "p"}, "v1")
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	spec := fakeSpec
	spec.Drop = append(slices.Clone(spec.Drop), "spec.value")
	second := startRig(t, api, Options{Snapshots: db}, spec)
	second.becomes(t, Live)
	o, _ := second.pods().Store().Get(Key{"team-a", "p"})
	raw, err := o.JSON()
	if err != nil || string(raw) == "" || json.Valid(raw) == false || cmp.Diff(second.pods().Status().SnapshotDrops, uint64(1)) != "" {
		t.Fatalf("%s, %v, drops %d", raw, err, second.pods().Status().SnapshotDrops)
	}
	if got := held(second.pods().Store())["team-a/p"]; got != "uid-101@101=" {
		t.Errorf("held %q, want the value cut", got)
	}
}

func TestNoStreamingLists(t *testing.T) {
	api := newFakeAPI(t)
	api.gitVersion, api.noStreaming = "v1.30.0", true
	rng := rand.New(rand.NewPCG(5, 6))
	churn(api, rng, 100)
	r := startRig(t, api, Options{})
	r.becomes(t, Live)
	churn(api, rng, 100)
	r.equal(t)
	if api.count("list") != 1 || api.count("watchlist") != 1 {
		t.Errorf("requests: %v, want one streaming list refused and one list", api.requests)
	}
}

func TestForbiddenFallsBackToNamespaces(t *testing.T) {
	api := newFakeAPI(t)
	rng := rand.New(rand.NewPCG(7, 8))
	churn(api, rng, 100)
	api.deny = func(_, namespace string) bool { return namespace != "team-a" }
	spec := fakeSpec
	spec.Namespaces = []string{"team-*"}
	r := startRig(t, api, Options{}, spec)
	r.becomes(t, Forbidden) // no namespace is known by name
	config := api.config()
	config.Namespaces = []string{"team-a", "other"}
	f := NewFactory(Options{})
	if err := f.Apply("c", []Spec{spec}); err != nil {
		t.Fatal(err)
	}
	if err := f.Connect("c", config); err != nil {
		t.Fatal(err)
	}
	running(t, f)
	i, err := f.Informer(spec.Resource)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "live in one namespace", func() bool { return i.Status().State == Live })
	churn(api, rng, 100)
	want := api.truth()
	maps.DeleteFunc(want, func(k, _ string) bool { return k[:6] != "team-a" })
	eventually(t, "that namespace's objects", func() bool { return maps.Equal(held(i.Store()), want) })
}

// TestForbiddenNamespace: one of several namespaces that may not be read is
// named, and holds up nobody who waits for a version.
func TestForbiddenNamespace(t *testing.T) {
	for name, revoked := range map[string]bool{"from the start": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			deny := func(verb, namespace string) bool { return namespace != "team-a" && verb != "get" }
			if !revoked {
				api.set(func(f *fakeAPI) { f.deny = deny })
			}
			api.put(Key{"team-a", "p"}, "v1")
			api.put(Key{"team-b", "p"}, "v1")
			spec := fakeSpec
			spec.Namespaces = []string{"team-a", "team-b"}
			r := startRig(t, api, Options{}, spec)
			r.becomes(t, Live)
			store := r.pods().Store()
			if revoked {
				if missing := r.pods().Status().Missing; len(missing) != 0 || !store.Covers("team-b") {
					t.Errorf("missing are %v while all may be read", missing)
				}
				api.set(func(f *fakeAPI) { f.deny = deny })
				api.cutAll()
			}
			eventually(t, "team-b is missing", func() bool {
				missing := r.pods().Status().Missing
				return len(missing) == 1 && missing[0].Namespace == "team-b" && missing[0].State == Forbidden && missing[0].Reason != ""
			})
			if store.Covers("team-b") || !store.Covers("team-a") {
				t.Errorf("Covers() = %v for the refused namespace, %v for the other", store.Covers("team-b"), store.Covers("team-a"))
			}
			if _, ok := store.Get(Key{"team-b", "p"}); ok != revoked {
				t.Errorf("an object of the refused namespace is held: %v, want what was last seen", ok)
			}
			api.put(Key{"team-a", "p"}, "v2")
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var version string
			api.set(func(f *fakeAPI) { version = strconv.Itoa(f.version) })
			if err := store.WaitVersion(ctx, version); err != nil {
				t.Errorf("WaitVersion(%s) = %v", version, err)
			}
			if err := store.WaitVersionIn(ctx, "team-a", version); err != nil {
				t.Errorf("WaitVersionIn(team-a, %s) = %v", version, err)
			}
			cancel()
			if err := store.WaitVersionIn(ctx, "team-b", "1"); !errors.Is(err, ErrTooNew) {
				t.Errorf("WaitVersionIn(team-b) = %v, want ErrTooNew: nothing is known of it", err)
			}
			api.set(func(f *fakeAPI) { f.deny = nil })
			eventually(t, "team-b is here again", func() bool {
				return len(r.pods().Status().Missing) == 0 && store.Covers("team-b")
			})
		})
	}
}

func TestForbiddenAsksRarely(t *testing.T) {
	api := newFakeAPI(t)
	api.deny = func(string, string) bool { return true }
	r := startRig(t, api, Options{})
	r.becomes(t, Forbidden)
	before := api.count("")
	time.Sleep(300 * time.Millisecond) // long enough for many attempts, if there were any
	if n := api.count("") - before; n > 1 {
		t.Errorf("%d requests while forbidden", n)
	}
}

func TestApply(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(9, 10)), 50)
	r := startRig(t, api, Options{Snapshots: db})
	r.becomes(t, Live)
	eventually(t, "a commit", func() bool { db.mu.Lock(); defer db.mu.Unlock(); return db.commits > 0 })
	store := r.pods().Store()
	replica, _ := follow(t, store)

	indexed := fakeSpec
	indexed.Indexes = map[string]string{"value": "spec.value"}
	if err := r.Apply("c", []Spec{indexed}); err != nil {
		t.Fatal(err)
	}
	if r.pods().Store() != store {
		t.Fatal("a new index replaced the store")
	}
	if _, _, err := store.IndexValues("value", "", 0); err != nil {
		t.Errorf("the new index is not there: %v", err)
	}
	if n := api.count("watch"); n != 1 {
		t.Errorf("%d watches, want the first one undisturbed", n)
	}
	bad := indexed
	bad.Indexes = map[string]string{"value": "spec["}
	if err := r.Apply("c", []Spec{bad}); err == nil {
		t.Error("a bad path was accepted")
	}

	if _, err := r.Lookup("", "po"); err != nil {
		t.Errorf("short name: %v", err)
	}
	if _, err := r.Lookup("", "pds"); !errors.Is(err, ErrUnknownResource) {
		t.Errorf("unknown name: %v", err)
	}
	if err := r.Apply("c", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "subscribers to see every object deleted", func() bool { return len(replica()) == 0 })
	if _, err := r.Lookup("", "pods"); !errors.Is(err, ErrUnknownResource) {
		t.Errorf("a resource that is gone: %v", err)
	}
	if saved, _ := db.Saved(); len(saved) != 0 {
		t.Errorf("its snapshot is still there")
	}
	unwatched := fakeSpec
	unwatched.Watch = false
	if err := r.Apply("c", []Spec{unwatched}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lookup("", "pods"); !errors.Is(err, ErrNotWatched) {
		t.Errorf("an unwatched resource: %v", err)
	}
	if err := r.Apply("c", []Spec{fakeSpec}); err != nil {
		t.Fatal(err)
	}
	r.becomes(t, Live)
	r.equal(t)
}

// TestCommitFails: what could not be saved is saved later.
func TestCommitFails(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	db.fail = errors.New("disk full")
	rng := rand.New(rand.NewPCG(11, 12))
	churn(api, rng, 50)
	r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	r.becomes(t, Live)
	eventually(t, "a failed commit", func() bool { return r.SnapshotStatus().Failures > 0 })
	churn(api, rng, 50)
	r.equal(t)
	db.mu.Lock()
	db.fail = nil
	db.mu.Unlock()
	eventually(t, "a commit", func() bool { return r.SnapshotStatus().Commits > 0 && r.SnapshotStatus().Err == "" })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	api.set(func(f *fakeAPI) { f.requests = nil })
	again := startRig(t, api, Options{Snapshots: db})
	again.becomes(t, Live)
	again.equal(t)
	if n := api.count("list") + api.count("watchlist"); n != 0 {
		t.Errorf("%d lists, want none", n)
	}
}

// TestSnapshotLost: when the file was replaced under a running informerd, all is
// saved anew.
func TestSnapshotLost(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	rng := rand.New(rand.NewPCG(17, 18))
	churn(api, rng, 50)
	r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Millisecond})
	r.becomes(t, Live)
	eventually(t, "a commit", func() bool { return r.SnapshotStatus().Commits > 0 })
	if err := db.Drop(fakeSpec.Resource); err != nil {
		t.Fatal(err)
	}
	churn(api, rng, 50)
	r.equal(t)
	eventually(t, "everything to be saved", func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return len(db.records[fakeSpec.Resource]) == len(api.truth())
	})
}

// TestSnapshotReplaced: when the file was replaced by an empty one, what does not
// change is saved anew, too.
func TestSnapshotReplaced(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(17, 18)), 50)
	r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
	r.becomes(t, Live)
	if err := r.save(); err != nil {
		t.Fatal(err)
	}
	db.saved, db.records = newMemory().saved, newMemory().records
	db.fail = fmt.Errorf("commit: %w", ErrReplaced)
	api.put(Key{"team-a", "one"}, "v1")
	r.equal(t)
	if err := r.save(); !errors.Is(err, ErrReplaced) {
		t.Fatalf("save() = %v, want ErrReplaced", err)
	}
	db.fail = nil
	if err := r.save(); err != nil {
		t.Fatal(err)
	}
	if got, want := len(db.records[fakeSpec.Resource]), len(api.truth()); got != want {
		t.Errorf("%d records are saved, want %d", got, want)
	}
}

// TestSavedUnderItsIndexes: terms are saved under the definitions they were taken
// with, although the informer has not adopted them yet.
func TestSavedUnderItsIndexes(t *testing.T) {
	api := newFakeAPI(t)
	api.put(Key{"team-a", "a"}, "v1")
	r := startRig(t, api, Options{Snapshots: newMemory(), SaveInterval: time.Hour})
	r.becomes(t, Live)
	indexes := map[string]string{"value": "spec.value"}
	if err := r.pods().Store().SetIndexes(indexes); err != nil {
		t.Fatal(err)
	}
	taken, ok := r.pods().takeBatch()
	if got := taken.batch.Saved.Spec; !ok || !maps.Equal(got.Indexes, indexes) || got.Kind != "Pod" {
		t.Errorf("saved under %+v (%v), want the indexes %v", got, ok, indexes)
	}
}

// TestAdoptHoldsNobodyUp: while indexes are built, the informer answers; a store
// that takes the place of the one they are built in gets them, too.
func TestAdoptHoldsNobodyUp(t *testing.T) {
	i := newInformer(NewFactory(Options{}), nil, fakeSpec)
	first := i.Store()
	first.writing.Lock() // building waits for it
	adopted := make(chan error, 1)
	spec := fakeSpec
	spec.Indexes = map[string]string{"value": "spec.value"}
	go func() {
		_, err := i.adopt(spec)
		adopted <- err
	}()
	eventually(t, "indexes being built", func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return slices.ContainsFunc(strings.Split(string(stacks), "\n\n"), func(stack string) bool {
			return strings.Contains(stack, "SetIndexes") && strings.Contains(stack, ".adopt(")
		})
	})
	if !i.mu.TryLock() {
		first.writing.Unlock()
		t.Fatal("the informer is locked while indexes are built")
	}
	second := newStore(t, i.spec)
	i.store = second
	i.mu.Unlock()
	first.writing.Unlock()
	if err := <-adopted; err != nil {
		t.Fatal(err)
	}
	if got := second.extraction.Load().definitions; !maps.Equal(got, spec.Indexes) || !maps.Equal(i.Spec().Indexes, spec.Indexes) {
		t.Errorf("indexes %v of the spec %v, want %v", got, i.Spec().Indexes, spec.Indexes)
	}
}

// TestNothingSavedOfDropped: a save that waits while a snapshot is dropped finds
// nothing of its resource to add to it.
func TestNothingSavedOfDropped(t *testing.T) {
	for name, drop := range map[string]func(*rig) error{
		"gone":          func(r *rig) error { return r.Apply("c", nil) },
		"other history": func(r *rig) error { r.pods().startOver("it is a test"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			api, db := newFakeAPI(t), newMemory()
			api.put(Key{"team-a", "saved"}, "v1")
			r := startRig(t, api, Options{Snapshots: db, SaveInterval: time.Hour})
			r.becomes(t, Live)
			if err := r.save(); err != nil {
				t.Fatal(err)
			}
			api.put(Key{"team-a", "changed since"}, "v1")
			r.equal(t)
			dropped := 0
			pods := r.pods()
			db.dropping = func(Resource) {
				dropped++
				if left, ok := pods.takeBatch(); ok {
					t.Errorf("something to save, %d records", len(left.batch.Put))
				}
			}
			if err := drop(r); err != nil {
				t.Fatal(err)
			}
			if dropped != 1 {
				t.Errorf("dropped %d times", dropped)
			}
		})
	}
}

// TestVerifyMends: a server that swallows an event is found out.
func TestVerifyMends(t *testing.T) {
	api := newFakeAPI(t)
	churn(api, rand.New(rand.NewPCG(13, 14)), 50)
	r := startRig(t, api, Options{})
	r.becomes(t, Live)
	r.equal(t)
	api.set(func(f *fakeAPI) { f.mute = 1 })
	api.put(Key{"team-a", "swallowed"}, "v1")
	eventually(t, "the event to be swallowed", func() bool { api.mu.Lock(); defer api.mu.Unlock(); return api.mute == 0 })
	api.put(Key{"team-a", "seen"}, "v1")
	eventually(t, "the next event", func() bool { return held(r.pods().Store())["team-a/seen"] != "" })
	if cmp.Diff(api.truth(), held(r.pods().Store())) == "" {
		t.Fatal("nothing was swallowed")
	}
	if err := r.pods().verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.equal(t)
	if s := r.pods().Status(); s.Mended != 1 || !s.Verified.IsZero() {
		t.Errorf("mended %d, verified %v; want 1 and not yet", s.Mended, s.Verified)
	}
	r.becomes(t, Live)
	if err := r.pods().verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.pods().Status().Verified.IsZero() {
		t.Error("not verified although it was found equal")
	}
	if n := r.pods().Status().Mended; n != 1 {
		t.Errorf("mended %d after a second look, want still 1", n)
	}
}

// TestUndecodable: one object that cannot be read is counted and stops nothing.
func TestUndecodable(t *testing.T) {
	api := newFakeAPI(t)
	api.put(Key{"team-a", "good"}, "v1")
	r := startRig(t, api, Options{})
	r.becomes(t, Live)
	api.set(func(f *fakeAPI) {
		f.version++
		f.recordLocked(fakeEvent{Added, fakeObject{key: Key{"team-a", "bad"}, version: f.version, broken: true}, f.version})
	})
	api.put(Key{"team-a", "after"}, "v1")
	eventually(t, "the next event", func() bool { return held(r.pods().Store())["team-a/after"] != "" })
	if n := r.pods().Status().Undecoded; n != 1 {
		t.Errorf("undecoded %d, want 1", n)
	}
}

// TestAggregatedIsRelisted: an aggregated API server may accept any version, so
// its watch is never resumed.
func TestAggregatedIsRelisted(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	churn(api, rand.New(rand.NewPCG(15, 16)), 50)
	spec := fakeSpec
	spec.Aggregated = true
	r := startRig(t, api, Options{Snapshots: db}, spec)
	r.becomes(t, Live)
	lists := api.count("list")
	api.set(func(f *fakeAPI) { f.log = nil }) // it forgets, and says nothing
	api.delete(Key{"team-a", "p1"})
	eventually(t, "a relist", func() bool {
		api.cutAll() // again, since the watch may not have been open yet
		return api.count("list") > lists
	})
	r.equal(t)
	if saved, _ := db.Saved(); len(saved) != 0 {
		t.Error("an aggregated resource was saved")
	}
}
