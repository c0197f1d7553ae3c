package discovery

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// running is a Discoverer at work on a fakeAPI.
type running struct {
	*Discoverer
	log logBuffer

	mu   sync.Mutex // guards sets
	sets []string   // reported, as names writes them
}

type logBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// run starts a Discoverer that polls often.
func run(t *testing.T, f *fakeAPI, change ...func(*Options)) *running {
	t.Helper()
	r := &running{}
	opts := Options{
		Config:       &rest.Config{Host: f.URL, UserAgent: "informerd-test", Timeout: time.Millisecond},
		PollInterval: 50 * time.Millisecond,
		Debounce:     5 * time.Millisecond,
		Log:          slog.New(slog.NewTextHandler(&r.log, nil)),
		OnChange: func(s Set) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sets = append(r.sets, names(s))
		},
	}
	for _, c := range change {
		c(&opts)
	}
	d, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	r.Discoverer = d
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
		d.client.http.CloseIdleConnections()
	})
	return r
}

func slowly(o *Options) { o.PollInterval = time.Hour }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// reports waits until the current Set is want, as names writes it, and OnChange
// was told of it: that is called after Current changed.
func (r *running) reports(t *testing.T, want string) {
	t.Helper()
	var got string
	defer func() {
		if t.Failed() {
			t.Logf("last Set: %s, log:\n%s", got, r.log.b.String())
		}
	}()
	eventually(t, want, func() bool {
		s, _ := r.Current()
		got = names(s)
		sets := r.reported()
		return got == want && len(sets) > 0 && sets[len(sets)-1] == want
	})
}

// looksMore waits until n more looks have ended.
func (r *running) looksMore(t *testing.T, n uint64) {
	t.Helper()
	before := r.Stats().Looks
	eventually(t, "more looks", func() bool { return r.Stats().Looks > before+n })
}

func (r *running) reported() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.sets...)
}

func TestDiscover(t *testing.T) {
	f := newFakeAPI(t, "v1: pods events bindings-", "events.k8s.io/v1: events", "g.io/v1: as")
	f.crds.setCRD("g.io", "as", "uid-1", 2, "v1")
	f.services.setService("g.io", "v1", false)
	r := run(t, f, slowly)
	r.reports(t, "events.v1 pods.v1 as.v1.g.io")
	s, ok := r.Current()
	if !ok || s.ServerVersion != "v1.36.3" {
		t.Errorf("Current() = %v, %v", s, ok)
	}
	got, _ := s.Get(schema.GroupResource{Group: "g.io", Resource: "as"})
	if got.CRDUID != "uid-1" || got.CRDGeneration != 2 || got.ListKind != "ListOfas" || len(got.SelectableFields) != 1 {
		t.Errorf("Get(as.g.io) = %+v", got)
	}
	if sets := r.reported(); len(sets) != 1 {
		t.Errorf("reported %d Sets, want 1: %q", len(sets), sets)
	}
	var headers http.Header
	f.edit(func(f *fakeAPI) { headers = f.headers["/apis"] })
	if got := headers.Get("User-Agent"); got != "informerd-test" {
		t.Errorf("User-Agent = %q", got)
	}
	if err := r.Run(context.Background()); !errors.Is(err, ErrRan) {
		t.Errorf("second Run() = %v, want ErrRan", err)
	}
}

// An idle poll is answered 304 twice and nothing else is asked or reported.
func TestIdlePollCostsNothing(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "apps/v1: deployments")
	r := run(t, f)
	r.reports(t, "pods.v1 deployments.v1.apps")
	r.looksMore(t, 5)
	for request, most := range map[string]int{"GET /api 200": 1, "GET /apis 200": 1, "GET /version": 1 + surveyed} {
		if n := f.count(request); n != most {
			t.Errorf("%s: %d times, want %d", request, n, most)
		}
	}
	s := r.Stats()
	if s.NotModified < 5 || s.Changes != 1 || s.Lists != 0 || s.Watches != 2 {
		t.Errorf("Stats() = %+v", s)
	}
}

func TestPollFindsChange(t *testing.T) {
	f := newFakeAPI(t, "v1: pods")
	r := run(t, f)
	r.reports(t, "pods.v1")
	f.says("v1: pods nodes")
	r.reports(t, "nodes.v1 pods.v1")
}

func TestTriggers(t *testing.T) {
	f := newFakeAPI(t, "v1: pods")
	f.services.setService("", "v1", false)
	r := run(t, f, slowly)
	r.reports(t, "pods.v1")

	f.says("v1: pods", "g.io/v1: as")
	f.services.setService("g.io", "v1", false)
	f.crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	r.reports(t, "pods.v1 as.v1.g.io")

	f.crds.setCRD("g.io", "as", "uid-1", 2, "v1")
	eventually(t, "generation 2", func() bool {
		s, _ := r.Current()
		got, _ := s.Get(schema.GroupResource{Group: "g.io", Resource: "as"})
		return got.CRDGeneration == 2
	})

	f.says("v1: pods")
	f.crds.delete("as.g.io")
	f.services.delete("v1.g.io")
	r.reports(t, "pods.v1")

	f.says("v1: pods", "m.io/v1: ms")
	f.services.setService("m.io", "v1", true)
	r.reports(t, "pods.v1 ms.v1.m.io@")

	f.says("v1: pods nodes")
	r.Trigger()
	r.reports(t, "nodes.v1 pods.v1 ms.v1.m.io~@ !m.io/v1")
}

// Discovery that lags behind a new CRD is asked again without a trigger.
func TestDiscoveryLags(t *testing.T) {
	f := newFakeAPI(t, "v1: pods")
	r := run(t, f, func(o *Options) { o.PollInterval = 2 * time.Second })
	r.reports(t, "pods.v1")
	f.crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	r.looksMore(t, 1)
	f.says("v1: pods", "g.io/v1: as")
	r.reports(t, "pods.v1 as.v1.g.io")
	if n := f.count("GET /apis 304"); n == 0 || n > 10 {
		t.Errorf("asked %d times in vain, want a few", n)
	}
}

func TestPins(t *testing.T) {
	f := newFakeAPI(t, "g/v2: as", "g/v1: as")
	gr := schema.GroupResource{Group: "g", Resource: "as"}
	r := run(t, f, slowly, func(o *Options) { o.Pins = map[schema.GroupResource]string{gr: "v1"} })
	r.reports(t, "as.v1.g@")
	r.SetPins(nil)
	r.reports(t, "as.v2.g@")
	r.SetPins(map[schema.GroupResource]string{gr: "v7"})
	eventually(t, "warning", func() bool { return r.log.count("pinned version is not served") == 1 })
	r.reports(t, "as.v2.g@")
}

// Whatever the server answers instead of discovery, nothing is lost, and the
// log tells it once.
func TestNothingDisappears(t *testing.T) {
	for name, break_ := range map[string]func(*fakeAPI){
		"500":               func(f *fakeAPI) { f.status["/apis"] = 500 },
		"503 on both":       func(f *fakeAPI) { f.status["/api"], f.status["/apis"] = 503, 503 },
		"401":               func(f *fakeAPI) { f.status["/api"] = 401 },
		"403":               func(f *fakeAPI) { f.status["/apis"] = 403 },
		"404":               func(f *fakeAPI) { f.status["/apis"] = 404 },
		"404 on both":       func(f *fakeAPI) { f.status["/api"], f.status["/apis"] = 404, 404 },
		"garbage":           func(f *fakeAPI) { f.body["/apis"] = "<html>" },
		"cut short":         func(f *fakeAPI) { f.body["/apis"] = `{"kind":"APIGroupDiscoveryList","items":[{"metadata"` },
		"empty":             func(f *fakeAPI) { f.body["/apis"] = "" },
		"another kind":      func(f *fakeAPI) { f.body["/apis"] = `{"kind":"Status"}` },
		"no groups":         func(f *fakeAPI) { f.body["/apis"] = `{"kind":"APIGroupDiscoveryList"}` },
		"connections reset": func(f *fakeAPI) { f.down = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t, "v1: pods", "apps/v1: deployments")
			r := run(t, f)
			r.reports(t, "pods.v1 deployments.v1.apps")
			f.edit(func(f *fakeAPI) {
				f.api = says("v1: pods", "apps/v1: deployments", "g.io/v1: as") // so that 304 is no way out
				break_(f)
			})
			eventually(t, "several failures", func() bool { return r.Stats().Failures > 3 })
			if r.Err() == nil {
				t.Error("Err() = nil while discovery fails")
			}
			f.edit(func(f *fakeAPI) {
				clear(f.status)
				clear(f.body)
				f.down = false
			})
			r.reports(t, "pods.v1 deployments.v1.apps as.v1.g.io@")
			if sets := r.reported(); len(sets) != 2 {
				t.Errorf("reported %q, want two Sets", sets)
			}
			if err := r.Err(); err != nil {
				t.Errorf("Err() = %v after recovery", err)
			}
			if n := r.log.count("discovery failed"); n != 1 {
				t.Errorf("logged %d times that discovery failed, want once", n)
			}
		})
	}
}

func TestStaleGroup(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "m.io/v1: ms")
	f.services.setService("m.io", "v1", true)
	r := run(t, f)
	r.reports(t, "pods.v1 ms.v1.m.io@")
	f.says("v1: pods", "m.io/v1!")
	r.reports(t, "pods.v1 ms.v1.m.io~@ !m.io/v1")
	r.looksMore(t, 3)
	f.says("v1: pods", "m.io/v1: ms")
	r.reports(t, "pods.v1 ms.v1.m.io@")
	if n := r.log.count("keeping its resources"); n != 1 {
		t.Errorf("logged %d times that the group failed, want once", n)
	}
}

func TestLegacy(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "g/v2: as", "g/v1: as bs", "m/v1: ms")
	f.legacy = true
	r := run(t, f, func(o *Options) { o.PollInterval = 20 * time.Millisecond })
	r.reports(t, "pods.v1 as.v2.g@ bs.v1.g@ ms.v1.m@")
	f.says("v1: pods", "g/v2: as", "g/v1: as bs", "m/v1!")
	r.reports(t, "pods.v1 as.v2.g@ bs.v1.g@ ms.v1.m~@ !m/v1")
	f.says("v1!", "g/v2!", "g/v1!", "m/v1!")
	eventually(t, "failure", func() bool { return r.Err() != nil })
	r.reports(t, "pods.v1 as.v2.g@ bs.v1.g@ ms.v1.m~@ !m/v1")
	f.edit(func(f *fakeAPI) {
		f.legacy, f.api = false, says("v1: pods nodes", "g/v2: as", "g/v1: as bs", "m/v1: ms")
	})
	r.reports(t, "nodes.v1 pods.v1 as.v2.g@ bs.v1.g@ ms.v1.m@")
}

// TestIncomplete: what another informerd lacks while it has not heard what its cluster
// serves is not gone, whatever form it answers in.
func TestIncomplete(t *testing.T) {
	for name, legacy := range map[string]bool{"aggregated": false, "not aggregated": true} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(t, "v1: pods nodes", "g/v1: as")
			for _, group := range []string{"", "g"} {
				f.services.setService(group, "v1", false)
			}
			f.legacy = legacy
			r := run(t, f, func(o *Options) { o.PollInterval = 20 * time.Millisecond })
			r.reports(t, "nodes.v1 pods.v1 as.v1.g")
			f.edit(func(f *fakeAPI) { f.unsure = true })
			eventually(t, "failure", func() bool { return errors.Is(r.Err(), errIncomplete) }) // the same documents
			f.says("v1: nodes")
			r.looksMore(t, 3)
			time.Sleep(confirmAfter)
			r.looksMore(t, 3)
			r.reports(t, "nodes.v1 pods.v1 as.v1.g")
			f.edit(func(f *fakeAPI) { f.unsure = false })
			r.reports(t, "nodes.v1 as.v1.g~") // whose APIService is there still
		})
	}
}

// A server that goes away and comes back loses nothing, even if at first it
// does not know of its CRDs, and it is never sent a LIST.
func TestServerRestarts(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "g.io/v1: as bs")
	f.crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	f.crds.setCRD("g.io", "bs", "uid-2", 1, "v1")
	f.services.setService("", "v1", false)
	f.services.setService("g.io", "v1", false)
	r := run(t, f)
	r.reports(t, "pods.v1 as.v1.g.io bs.v1.g.io")
	for range 3 {
		f.setDown(true)
		eventually(t, "failure", func() bool { return r.Err() != nil })
		f.crds.edit(func(o *fakeObjects) { o.oldest = len(o.events) + 1000 }) // 410 for whoever resumes
		f.says("v1: pods")
		f.setDown(false)
		r.reports(t, "pods.v1 as.v1.g.io~ bs.v1.g.io~")
		r.looksMore(t, 3)
		f.says("v1: pods", "g.io/v1: as bs")
		r.reports(t, "pods.v1 as.v1.g.io bs.v1.g.io")
	}
	// A CRD that goes during the outage is gone after it.
	f.setDown(true)
	f.crds.delete("bs.g.io")
	f.says("v1: pods", "g.io/v1: as")
	f.setDown(false)
	r.reports(t, "pods.v1 as.v1.g.io")
	if n := r.Stats().Lists; n != 0 {
		t.Errorf("sent %d LISTs, want none", n)
	}
}

// Cut or expired watches catch up without a LIST.
func TestWatchCut(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "g.io/v1: as")
	f.crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	r := run(t, f, slowly)
	r.reports(t, "pods.v1 as.v1.g.io")
	generation := func(n int64) func() bool {
		return func() bool { return r.crds.current().rows["as.g.io"].generation == n }
	}
	f.crds.cut()
	eventually(t, "second watch", func() bool { n, _ := f.crds.lastWatch(); return n == 2 })
	if _, q := f.crds.lastWatch(); !strings.Contains(q, "resourceVersion=1") {
		t.Errorf("watch after a cut = %q, want one that resumes", q)
	}
	f.crds.setCRD("g.io", "as", "uid-1", 2, "v1")
	eventually(t, "generation 2", generation(2))
	f.crds.edit(func(o *fakeObjects) { o.oldest = 1000 })
	f.crds.cut()
	f.crds.setCRD("g.io", "as", "uid-1", 3, "v1")
	eventually(t, "generation 3", generation(3))
	if n := r.Stats().Lists; n != 0 {
		t.Errorf("sent %d LISTs, want none", n)
	}
}

// A server that rejects streaming lists is listed, in pages.
func TestNoStreamingList(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "g.io/v1: as")
	f.crds.noStream = true
	f.crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	r := run(t, f, slowly)
	r.reports(t, "pods.v1 as.v1.g.io")
	f.says("v1: pods", "g.io/v1: as bs")
	f.crds.setCRD("g.io", "bs", "uid-2", 1, "v1")
	r.reports(t, "pods.v1 as.v1.g.io bs.v1.g.io")
	if s := r.Stats(); s.Lists != 1 {
		t.Errorf("Lists = %d, want 1", s.Lists)
	}
}

// A user who may not read CRDs and APIServices still gets resources.
func TestForbidden(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "g.io/v1: as")
	f.crds.status, f.services.status = http.StatusForbidden, http.StatusForbidden
	r := run(t, f)
	r.reports(t, "pods.v1 as.v1.g.io@")
	f.says("v1: pods nodes", "g.io/v1: as")
	r.reports(t, "nodes.v1 pods.v1 as.v1.g.io@")
	r.crds.retryNow()
	eventually(t, "second attempt", func() bool { return f.count("GET "+crdsPath+" 403") > 1 })
	if n := r.log.count("watch refused"); n != 2 {
		t.Errorf("logged %d refusals, want one for each watch", n)
	}
	// The rights may come later.
	f.crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	f.crds.edit(func(o *fakeObjects) { o.status = 0 })
	r.crds.retryNow()
	r.reports(t, "nodes.v1 pods.v1 as.v1.g.io")
}

func TestServerUpgrade(t *testing.T) {
	f := newFakeAPI(t, "v1: pods")
	r := run(t, f)
	r.reports(t, "pods.v1")
	f.setDown(true)
	eventually(t, "failure", func() bool { return r.Err() != nil })
	f.edit(func(f *fakeAPI) { f.version = "v1.37.0" })
	f.setDown(false)
	eventually(t, "new version", func() bool { s, _ := r.Current(); return s.ServerVersion == "v1.37.0" })
}

// The first Set waits for a server that is not up yet.
func TestServerDownAtStart(t *testing.T) {
	f := newFakeAPI(t, "v1: pods", "g.io/v1: as")
	f.crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	f.down = true
	r := run(t, f)
	eventually(t, "failure", func() bool { return r.Err() != nil })
	if _, ok := r.Current(); ok {
		t.Error("Current() has a Set without an answer")
	}
	f.setDown(false)
	r.reports(t, "pods.v1 as.v1.g.io")
	if sets := r.reported(); len(sets) != 1 {
		t.Errorf("reported %q, want one Set", sets)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("New() without Config = nil error")
	}
	if _, err := New(Options{Config: &rest.Config{Host: "http://[::bad"}}); err == nil {
		t.Error("New() with a bad host = nil error")
	}
}
