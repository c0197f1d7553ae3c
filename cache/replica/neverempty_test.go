package replica

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
	"github.com/informerd/informerd/server"
)

// served shows a factory to a server.
type served struct{ *Factory }

func (f served) Lookup(cluster, name string) (server.Resource, error) {
	i, err := f.Factory.Lookup(cluster, name)
	if i == nil {
		return nil, err // not a nil *Informer
	}
	return i, err
}

func (f served) Resource(r cache.Resource) (server.Resource, bool) {
	i, err := f.Informer(r)
	return i, err == nil
}

func (f served) Resources() (all []server.Resource) {
	for _, i := range f.Informers() {
		all = append(all, i)
	}
	return all
}

// serve makes a server over a factory that is asked without a network.
func serve(t *testing.T, f *Factory) http.Handler {
	t.Helper()
	s, err := server.New(server.Options{Addr: "127.0.0.1:0", Caches: served{f}})
	if err != nil {
		t.Fatal(err)
	}
	return s.Handler()
}

// ask returns the code and the body of an answer, with one header of it.
func ask(h http.Handler, target string) (code int, body []byte, state string) {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "localhost:8080"
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Code, rec.Body.Bytes(), rec.Header().Get(cache.StateHeader)
}

// hungry reads a resource that always has objects, and complains of every readable
// answer without any.
type hungry struct {
	t       *testing.T
	reading atomic.Pointer[deceived] // nil between two processes
	handler atomic.Pointer[http.Handler]
	looks   atomic.Int64
	once    sync.Once

	compareLeast int
}

func (h *hungry) errorf(format string, args ...any) {
	h.once.Do(func() { h.t.Errorf(format, args...) })
}

// read looks all the time until the test ends. Several do, so that some look while
// another copy takes the place of one.
func (h *hungry) read(look func(*deceived)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, 200*time.Millisecond) {
			for range 3 {
				if d := h.reading.Load(); d != nil {
					look(d)
				}
			}
		}
	}()
	h.t.Cleanup(func() { cancel(); <-done })
}

func (h *hungry) view(d *deceived) {
	i, err := d.Informer(specOf("pods").Resource)
	if err != nil {
		h.errorf("the resource is not known: %v", err)
		return
	}
	v := i.View()
	if v.State.Readable() != v.Readable() {
		h.errorf("%s, and with a store: %v", v.State, v.Readable())
	}
	if !v.Readable() {
		return
	}
	h.looks.Add(1)
	got, err := v.Store(inside.Cache).Select(context.Background(), cache.Query{})
	switch {
	case errors.Is(err, cache.ErrStopped): // replaced since
	case err != nil:
		h.errorf("%s, and cannot be asked: %v", v.State, err)
	case len(got.Objects) == 0:
		h.errorf("readable and empty: %s at %q, %q", v.State, got.Version, v.Reason)
	}
	if s := i.Status(); s.State.Readable() && s.Objects == 0 {
		h.errorf("%s with a count of no objects, %q", s.State, s.Reason)
	}
}

func (h *hungry) http(*deceived) {
	handler := *h.handler.Load()
	for _, target := range []string{"/api/v1/pods", "/v1/resources/pods/objects"} {
		var list struct{ Items []json.RawMessage }
		code, body, state := ask(handler, target)
		if code == http.StatusServiceUnavailable {
			continue
		}
		h.looks.Add(1)
		if err := json.Unmarshal(body, &list); err != nil || code != http.StatusOK || len(list.Items) == 0 {
			h.errorf("GET %s = %d, %s, without an object: %s", target, code, state, body)
		}
	}
	var one struct{ Objects int }
	if _, body, state := ask(handler, "/v1/resources/pods"); cache.State(state).Readable() {
		if err := json.Unmarshal(body, &one); err != nil || one.Objects == 0 {
			h.errorf("the resource is %s and has no objects: %s", state, body)
		}
	}
}

// begin starts a process on what the one before has saved.
func (h *hungry) begin(l *liar, db *memory) *deceived {
	h.compareLeast = 1 + 1000 - h.compareLeast // compares, and lists in full, by turns
	d := deceive(h.t, l, Options{Snapshots: db, compareLeast: h.compareLeast}, specOf("pods"), specOf("r1"))
	handler := serve(h.t, d.Factory)
	h.handler.Store(&handler)
	h.reading.Store(d)
	return d
}

// TestReadableIsNeverEmpty: who reads a resource that has objects gets some of them or
// a refusal, whatever happens to the copy meanwhile. An empty list would make a
// client behind it drop everything.
func TestReadableIsNeverEmpty(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, db, h := newLiar(2), newMemory(), &hungry{t: t}
		for _, name := range numbered("p", 12) {
			l.put(name, "1")
		}
		l.each(func(m *member) { m.listing = 3 * time.Second })
		d := h.begin(l, db)
		for range 2 {
			h.read(h.view)
			h.read(h.http)
		}
		settled := func() {
			t.Helper()
			d.equal(2 * time.Minute)
			d.becomes(2*time.Minute, cache.Live)
			time.Sleep(5 * time.Second) // what changed is saved
		}
		replaced := func(change func()) {
			before := d.pods().store()
			change()
			within(t, time.Minute, "another store", func() bool { return d.pods().store() != before })
		}
		restart := func() {
			h.reading.Store(nil)
			time.Sleep(time.Second) // nobody asks the one that ends
			d.stop()
			d = h.begin(l, db)
		}
		settled()
		expire := func() { // no watch can go on from where it was
			l.do(func() { l.refusing = true })
			l.hangUp()
			l.put("p0", time.Now().String())
			l.compact()
			l.do(func() { l.refusing = false })
		}
		for _, relist := range []func(){
			expire,
			func() { d.pods().feedNow().sources[0].demandRelist("a test wants it") },
			func() { // etcd is restored
				backup := l.backup()
				l.put("p0", "lost")
				time.Sleep(10 * time.Second)
				replaced(func() { l.restore(backup); l.restart() })
			},
			func() { replaced(func() { l.do(func() { l.uid += "'" }); l.restart() }) }, // another cluster
		} {
			relist()
			settled()
			restart()
			settled()
		}
		for _, hollow := range []string{" ", "{}", "null", `{"kind":"Status","status":"Success"}`,
			`{"kind":"PodList","apiVersion":"v1","metadata":{}}`, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}`,
			`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"0"},"items":[]}`,
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100000"},"items":[`,
		} {
			for range 2 {
				asked := l.count("pods", "list", "metadata")
				l.each(func(m *member) { m.hollow = hollow })
				expire()
				within(t, 2*time.Minute, "a list", func() bool { return l.count("pods", "list", "metadata") > asked })
				time.Sleep(10 * time.Second)
				l.each(func(m *member) { m.hollow = "" })
				settled()
				restart() // lists plainly again
				settled()
			}
		}
		for _, change := range []func(*cache.Spec){
			func(s *cache.Spec) { s.Drop = []string{"spec.value"} },
			func(s *cache.Spec) { s.Drop = nil; s.Redact = []string{"spec.value"} },
			func(s *cache.Spec) { s.Redact, s.FieldSelector = nil, "metadata.name!=p3" },
			func(s *cache.Spec) { s.FieldSelector = ""; s.Namespaces = []string{"team-a", "team-b"} },
			func(s *cache.Spec) { s.Namespaces = nil; s.Indexes = map[string]string{"value": "spec.value"} },
		} {
			spec := specOf("pods")
			change(&spec)
			if err := d.Apply("c", []cache.Spec{spec, specOf("r1")}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			restart() // whose rule is the one before
			settled()
		}
		if n := h.looks.Load(); n < 5_000 {
			t.Errorf("only %d answers", n)
		}
	})
}
