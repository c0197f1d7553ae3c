package server

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

func TestWatchManyKinds(t *testing.T) {
	w := newWorld(t)
	url := serve(t, w) + with("/v1/query", "watch", "true", "resources", "nodes,pods,secrets", "filter", `object.metadata.name != "two"`)
	s := open(t, url)
	s.want("ADDED n1", "ADDED one", "ADDED three", "STATE forbidden")
	end := s.want("BOOKMARK ")
	if end.id != "nodes=100,pods=100" || !strings.Contains(end.raw, `"initialEventsEnd":true`) {
		t.Errorf("bookmark %s %s", end.id, end.raw)
	}
	w.pods.apply(t, cache.Added, pod("a", "four", "web", "n1", 101))
	if e := s.want("ADDED four"); e.id != "" || !strings.Contains(e.raw, `"resource":"pods"`) {
		t.Errorf("event %q %s", e.id, e.raw)
	}
	if e := s.want("BOOKMARK "); e.id != "nodes=100,pods=101" {
		t.Errorf("id %s", e.id)
	}
	w.nodes.apply(t, cache.Deleted, `{"metadata":{"name":"n1","uid":"n1","resourceVersion":"105"}}`)
	s.want("DELETED n1")
	if e := s.want("BOOKMARK "); e.id != "nodes=105,pods=101" {
		t.Errorf("id %s", e.id)
	}
	s.close()

	w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 110))
	s = open(t, url, "Last-Event-ID", "nodes=105,pods=101")
	for _, want := range []string{"STATE forbidden", "BOOKMARK ", "DELETED one", "BOOKMARK "} {
		s.want(want)
	}
	s.close()

	s = open(t, url, "Last-Event-ID", "nodes=105,pods=1")
	if e := s.want("RESYNC "); !strings.Contains(e.raw, `"resource":"pods"`) {
		t.Errorf("resync %s", e.raw)
	}
	s.want("ADDED four", "ADDED three", "STATE forbidden", "BOOKMARK ")
}

// A resource that gets another store, or none, begins anew, or leaves.
func TestWatchManyKindsReplaced(t *testing.T) {
	w := newWorld(t, ticking)
	s := open(t, serve(t, w)+with("/v1/query", "watch", "true", "resources", "nodes,pods"))
	s.want("ADDED n1", "ADDED one", "ADDED two", "ADDED three", "BOOKMARK ")
	w.nodes.restart(t, "200", node("n2", 150))
	if e := s.want("RESYNC "); e.data.Resource != "nodes" {
		t.Errorf("resync %s", e.raw)
	}
	s.want("ADDED n2")
	if e := s.want("BOOKMARK "); e.id != "nodes=200,pods=100" {
		t.Errorf("id %s", e.id)
	}
	w.nodes.store.Close()
	w.nodes.mu.Lock()
	w.nodes.store, w.nodes.status.State = nil, cache.Unwatched
	w.nodes.mu.Unlock()
	s.want("RESYNC ")
	if e := s.want("STATE unwatched"); !strings.Contains(e.raw, `"answered":false`) {
		t.Errorf("state %s", e.raw)
	}
	// There is nothing left to resume from.
	if e := s.want("BOOKMARK "); e.id != "nodes=0,pods=100" {
		t.Errorf("id %s", e.id)
	}
}

// restart closes the store and puts another one, with a list at version, in its
// place.
func (f *fakeResource) restart(t testing.TB, version string, objects ...string) {
	t.Helper()
	f.store.Close()
	next := newResource(t, f.spec, cache.Live)
	next.replace(t, version, objects...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store = next.store
}

// ticking makes a server look often for what changed.
func ticking(o *Options) { o.Heartbeat = 10 * time.Millisecond }

// When informerd stops the stores close first. The last bookmark says where
// every resource can be resumed.
func TestWatchManyKindsShutdown(t *testing.T) {
	w := newWorld(t, ticking)
	s := open(t, serve(t, w)+with("/v1/query", "watch", "true", "resources", "nodes,pods", "namespace", "b"))
	s.want("ADDED three", "BOOKMARK ")
	w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n2", 101))
	w.nodes.store.Bookmark("", "102")
	w.nodes.store.Close()
	w.pods.store.Close()
	s.want("MODIFIED three", "BOOKMARK ")
	for w.nodes.store.Stats().Subscribers+w.pods.store.Stats().Subscribers > 0 {
		runtime.Gosched()
	}
	w.stop()
	if e := s.want("BOOKMARK "); e.id != "nodes=102,pods=101" {
		t.Errorf("id %s", e.id)
	}
	s.wantEnd()
}

// What a client has of a resource that cannot be read when it comes back is
// resumed, or void, when it can be.
func TestWatchManyKindsResumeLater(t *testing.T) {
	w := newWorld(t, ticking)
	w.secrets.replace(t, "50", secret("s1", 40))
	w.secrets.apply(t, cache.Added, secret("s2", 60))
	url := serve(t, w) + with("/v1/query", "watch", "true", "resources", "nodes,secrets")
	for since, want := range map[string][]string{
		"50": {"STATE live", "BOOKMARK ", "ADDED s2", "BOOKMARK "},
		"40": {"RESYNC ", "ADDED s1", "ADDED s2", "STATE live", "BOOKMARK "},
		"0":  {"RESYNC ", "ADDED s1", "ADDED s2", "STATE live", "BOOKMARK "},
	} {
		w.secrets.set(cache.Forbidden, "")
		s := open(t, url, "Last-Event-ID", "nodes=100,secrets="+since)
		s.want("STATE forbidden")
		if e := s.want("BOOKMARK "); e.id != "nodes=100,secrets="+since {
			t.Errorf("since %s: id %s", since, e.id)
		}
		w.secrets.set(cache.Live, "")
		if e := s.want(want...); e.id != "nodes=100,secrets=60" {
			t.Errorf("since %s: id %s", since, e.id)
		}
		s.close()
	}
}

// A client may have objects of a resource that its id does not name: it was cut
// off among the first of them.
func TestWatchManyKindsResumeUnnamed(t *testing.T) {
	w := newWorld(t)
	s := open(t, serve(t, w)+with("/v1/query", "watch", "true", "resources", "nodes,pods"), "Last-Event-ID", "pods=100")
	if e := s.want("RESYNC "); e.data.Resource != "nodes" {
		t.Errorf("resync %s", e.raw)
	}
	s.want("ADDED n1")
	if e := s.want("BOOKMARK "); e.id != "nodes=100,pods=100" {
		t.Errorf("id %s", e.id)
	}
}

// What went away while the client was not there is void at once.
func TestWatchManyKindsResumeGone(t *testing.T) {
	w := newWorld(t)
	url := serve(t, w) + with("/v1/query", "watch", "true", "resources", "nodes,events")
	s := open(t, url, "Last-Event-ID", "events=7,nodes=100,widgets.v1.example.com=7")
	if e := s.want("RESYNC "); e.data.Resource != "widgets.v1.example.com" {
		t.Errorf("resync %s", e.raw)
	}
	if e := s.want("STATE unwatched"); e.data.Resource != "widgets.v1.example.com" || e.data.Reason != "the resource is gone" {
		t.Errorf("state %s", e.raw)
	}
	if e := s.want("RESYNC "); e.data.Resource != "events" {
		t.Errorf("resync %s", e.raw)
	}
	s.want("STATE unwatched")
	if e := s.want("BOOKMARK "); e.id != "events=0,nodes=100" {
		t.Errorf("id %s", e.id)
	}
}

// An id can always be resumed from, also where a resource has no version.
func TestWatchManyKindsWithoutVersion(t *testing.T) {
	w := newWorld(t)
	w.nodes.restart(t, "", `{"metadata":{"name":"n2","uid":"n2"}}`)
	url := serve(t, w) + with("/v1/query", "watch", "true", "resources", "nodes")
	s := open(t, url)
	s.want("ADDED n2")
	e := s.want("BOOKMARK ")
	if e.id != "nodes=0" {
		t.Fatalf("id %s", e.id)
	}
	s = open(t, url, "Last-Event-ID", e.id)
	s.want("RESYNC ", "ADDED n2", "BOOKMARK ")
}

// Resources that are behind their client are waited for together, and the
// headers for none.
func TestWatchManyKindsWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pods.set(cache.Warm, "")
		w.nodes.set(cache.Warm, "")
		began := time.Now()
		rec := &timedRecorder{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("GET", with("/v1/query", "watch", "true", "resources", "nodes,pods", "timeoutSeconds", "4"), nil)
		r.Host = "localhost"
		r.Header.Set("Last-Event-ID", "nodes=500,pods=500")
		w.Handler().ServeHTTP(rec, r)
		if d := rec.flushed.Sub(began); d != 0 {
			t.Errorf("the headers leave after %v", d)
		}
		if body := rec.Body.String(); !strings.Contains(body, `"initialEventsEnd":true`) {
			t.Errorf("after 4s there is only %s", body)
		}
		w.stop()
	})
}

// timedRecorder notes when something left first.
type timedRecorder struct {
	*httptest.ResponseRecorder
	flushed time.Time
}

func (r *timedRecorder) Flush() {
	if r.flushed.IsZero() {
		r.flushed = time.Now()
	}
	r.ResponseRecorder.Flush()
}

func TestWatchManyKindsState(t *testing.T) {
	w := newWorld(t)
	w.secrets.store.Replace("", nil, "50")
	s := open(t, serve(t, w)+with("/v1/query", "watch", "true", "resources", "secrets"))
	if e := s.want("STATE forbidden"); !strings.Contains(e.raw, `"answered":false`) || !strings.Contains(e.raw, "secrets is forbidden") {
		t.Errorf("state %s", e.raw)
	}
	s.want("BOOKMARK ")
	w.secrets.set(cache.Live, "")
	if e := s.want("STATE live"); !strings.Contains(e.raw, `"answered":true`) {
		t.Errorf("state %s", e.raw)
	}
	if e := s.want("BOOKMARK "); e.id != "secrets=50" {
		t.Errorf("id %s", e.id)
	}
}

func TestWatchManyKindsMistakes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		parameters []string
		id         string
		message    string
	}{
		{[]string{"index", "colour:red"}, "", "there is no index"},
		{[]string{"sort", "kind"}, "", "watch=true"},
		{nil, "rubbish", "Last-Event-ID"},
		{nil, "pods=x", "Last-Event-ID"},
	} {
		rec := w.get(t, with("/v1/query", append(c.parameters, "watch", "true")...), "Last-Event-ID", c.id)
		wantStatus(t, rec, 400, "BadRequest", c.message)
	}
}

func TestWatchGroups(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w)
	for _, path := range []string{podObjects, "/v1/resources/pods/indexes/namespace/a", "/v1/query"} {
		w.pods.replace(t, "1000", pod("a", "one", "web", "n1", 10), pod("a", "two", "db", "n2", 20))
		s := open(t, base+with(path, "watch", "true", "groupBy", "kind", "agg", "count()", "sort", "-count()", "limit", "1"))
		if e := s.next(); e.name != "GROUPS" || !strings.Contains(e.raw, `"items":[{"group":{"kind":"Pod"},"values":{"count()":2}}]`) {
			t.Errorf("%s: %s", path, e.raw)
		}
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n2", 1001)) // changes no group
		w.pods.apply(t, cache.Added, pod("a", "three", "web", "n2", 1002))
		if e := s.next(); !strings.Contains(e.raw, `"count()":3`) {
			t.Errorf("%s: %s", path, e.raw)
		}
		s.close()
	}
}

// Facets are told beside the objects, whole, whenever they changed.
func TestWatchFacets(t *testing.T) {
	w := newWorld(t)
	base := serve(t, w)
	for _, path := range []string{podObjects, "/v1/query"} {
		w.pods.replace(t, "1000", pod("a", "one", "web", "n1", 10), pod("a", "two", "db", "n2", 20))
		s := open(t, base+with(path, "watch", "true", "facets", "spec.nodeName", "namespace", "a"))
		s.until("FACETS", `"facets":[{"path":"spec.nodeName","values":[{"value":"n1","objects":1},{"value":"n2","objects":1}]}]`)
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n2", 1001))
		s.until("FACETS", `"values":[{"value":"n2","objects":2}]`)
		w.pods.apply(t, cache.Modified, pod("a", "one", "db", "n2", 1002)) // changes no facet
		w.pods.apply(t, cache.Added, pod("b", "three", "web", "n9", 1003)) // not selected
		w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n2", 1004))
		if e := s.until("FACETS", ""); !strings.Contains(e.raw, `"values":[{"value":"n2","objects":1}]`) || !strings.Contains(e.raw, `"answered":true`) {
			t.Errorf("%s: %s", path, e.raw)
		}
		s.close()
	}
}
