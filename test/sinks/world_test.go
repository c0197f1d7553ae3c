package sinks

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/persist"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/handlers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var things = cache.Spec{
	Resource: cache.Resource{Cluster: "c", GVR: schema.GroupVersionResource{Group: "x", Version: "v1", Resource: "things"}},
	Kind:     "Thing", Namespaced: true, Watch: true,
}

// world is a copy that changes, and handlers of it whose ledger is on disk.
type world struct {
	t     *testing.T
	path  string
	store *cache.Store

	mu      sync.Mutex        // guards version and truth
	version int               // of the last change
	truth   map[string]string // colors by name

	db      *persist.DB
	manager *handlers.Manager
	stop    func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := cache.NewStore(things, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store.Replace("", nil, "1")
	w := &world{t: t, path: filepath.Join(t.TempDir(), "ledger.db"), store: store, version: 1, truth: map[string]string{}}
	t.Cleanup(func() {
		w.end()
		store.Close()
	})
	return w
}

// put makes an object have a color; "" deletes it.
func (w *world) put(name, color string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, there := w.truth[name]
	typ := cache.Modified
	switch {
	case color == "" && !there:
		return
	case color == "":
		typ = cache.Deleted
		delete(w.truth, name)
	case !there:
		typ = cache.Added
	}
	if color != "" {
		w.truth[name] = color
	}
	w.version++
	text := fmt.Sprintf(`{"apiVersion":"x/v1","kind":"Thing","metadata":{"namespace":"ns","name":%q,"uid":"uid-%s","resourceVersion":"%d"},"spec":{"color":%q}}`,
		name, name, w.version, color)
	o, err := w.store.Decode([]byte(text), "x/v1", "Thing")
	if err != nil {
		w.t.Error(err)
		return
	}
	w.store.Apply("", typ, o)
}

// begin runs a handler with a sink, from what the ledger has.
func (w *world) begin(kind string, sink handlers.Sink) {
	w.t.Helper()
	db, err := persist.Open(persist.Options{Path: w.path, NoSync: true})
	if err != nil {
		w.t.Fatal(err)
	}
	var m *handlers.Manager
	m = handlers.NewManager(handlers.Options{Caches: w, Ledgers: db, SaveNow: func() error { return save(m, db) }})
	err = m.Apply([]handlers.Handler{{
		Name: "h", Resources: []string{"things.x"}, On: handlers.Transitions, From: handlers.FromBeginning,
		Retry: handlers.Retry{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond, Attempts: 3},
		Sink:  sink, SinkKind: kind, Concurrency: 4, As: access.Everyone(), Digest: "1", SinkDigest: "1",
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.Run(ctx)
	}()
	w.db, w.manager, w.stop = db, m, func() { cancel(); <-ended }
}

// end stops the handler as informerd does: the last save has what was delivered last.
func (w *world) end() {
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	if err := save(w.manager, w.db); err != nil {
		w.t.Error(err)
	}
	if err := w.db.Close(); err != nil {
		w.t.Error(err)
	}
}

func save(m *handlers.Manager, db *persist.DB) error {
	return m.Save(func(changes []cache.LedgerChange) error { return db.Commit(nil, changes) })
}

func (w *world) status() handlers.Status {
	w.t.Helper()
	s, err := w.manager.Handler("h")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// until waits for the handler to be as ok wants it.
func (w *world) until(what string, ok func(handlers.Status) bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s := w.status()
		if ok(s) {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("not within two minutes: %s; %+v", what, s)
		}
	}
}

// idle waits until every change is considered and delivered.
func (w *world) idle() {
	w.t.Helper()
	w.until("idle", func(s handlers.Status) bool {
		w.mu.Lock()
		version := strconv.Itoa(w.version)
		w.mu.Unlock()
		return s.State == "active" && s.Pending == 0 && len(s.Lines) == 1 && s.Lines[0].ResourceVersion == version
	})
}

// What follows makes a world the Caches of a Manager.

func (w *world) Match(_, _ []string) []cache.Resource { return []cache.Resource{things.Resource} }

func (w *world) Names([]string, []string, string, schema.GroupResource) bool { return true }

func (w *world) Resource(string, schema.GroupResource) (handlers.Resource, bool) { return w, true }

func (w *world) Lacks(string, schema.GroupResource) bool { return false }

func (w *world) View() *cache.View {
	v := &cache.View{Spec: things, State: cache.Live}
	v.Hold(w.store)
	return v
}

// told is what is said of an object in a message.
type told struct {
	ID   string
	Data struct {
		Transition, Name string

		Object struct{ Spec struct{ Color string } }
	}
}

// lasts are the colors that the last message of each object says, without those that left,
// and how many messages have an id that another had.
func lasts(t *testing.T, messages [][]byte) (colors map[string]string, repeated int) {
	t.Helper()
	colors = map[string]string{}
	seen := map[string]bool{}
	for _, text := range messages {
		var m told
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if seen[m.ID] {
			repeated++
		}
		seen[m.ID] = true
		if m.Data.Transition == "leaves" {
			delete(colors, m.Data.Name)
		} else {
			colors[m.Data.Name] = m.Data.Object.Spec.Color
		}
	}
	return colors, repeated
}
