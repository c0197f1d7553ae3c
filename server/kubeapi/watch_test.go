package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// watching is a client of one watch.
type watching struct {
	t      testing.TB
	events chan event
}

// event is one event, as tests compare them.
type event struct {
	Type   string
	Object struct {
		Kind     string
		Code     int
		Reason   metav1.StatusReason
		Metadata metav1.ObjectMeta
		Spec     map[string]any
		Rows     []struct{ Cells []any }
		Columns  []any `json:"columnDefinitions"`
	}
}

// String is the type with name and version.
func (e event) String() string {
	if e.Type == "ERROR" {
		return fmt.Sprintf("ERROR %d %s", e.Object.Code, e.Object.Reason)
	}
	s := e.Type + " " + e.Object.Metadata.Name + "@" + e.Object.Metadata.ResourceVersion
	if e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		s += " end"
	}
	return s
}

// watch opens a watch and wants to get one. Headers come in pairs.
func (w *world) watch(target string, headers ...string) *watching {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+target, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != typeJSON {
		w.t.Fatalf("GET %s = %d %v", target, resp.StatusCode, resp.Header)
	}
	s := &watching{t: w.t, events: make(chan event, 10000)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.events)
		defer resp.Body.Close()
		d := json.NewDecoder(resp.Body)
		for {
			var e event
			if d.Decode(&e) != nil {
				return
			}
			s.events <- e
		}
	})
	w.t.Cleanup(func() { cancel(); reading.Wait() })
	return s
}

// next is the next event, "end" at the end of the stream.
func (s *watching) next() event {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			return event{Type: "end"}
		}
		return e
	case <-time.After(10 * time.Second):
		s.t.Fatal("no event came")
		return event{}
	}
}

// want wants events in this order.
func (s *watching) want(events ...string) {
	s.t.Helper()
	for _, want := range events {
		if got := strings.TrimSuffix(s.next().String(), " @"); got != want {
			s.t.Errorf("event is %q, want %q", got, want)
		}
	}
}

// TestWatchBegins: where a watch begins is what its parameters say.
func TestWatchBegins(t *testing.T) {
	w := newWorld(t)
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101))
	present := []string{"ADDED one@101", "ADDED two@20", "ADDED three@30"}
	for target, want := range map[string][]string{
		"watch=1":                      present,
		"watch=true&resourceVersion=0": present,
		"watch=1&resourceVersion=100":  {"MODIFIED one@101"},
		"watch=1&resourceVersion=101":  {},
		"watch=1&resourceVersion=1":    {"ERROR 410 Expired", "end"},
		"watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan":                                            {},
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan":                                             present,
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1":                       append(present[:3:3], "BOOKMARK @101 end"),
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&resourceVersion=101":   append(present[:3:3], "BOOKMARK @101 end"),
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1&resourceVersion=99999":      {"ERROR 504 Timeout", "end"},
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&labelSelector=app%3Dz": {"BOOKMARK @101 end"},
	} {
		t.Run(target, func(t *testing.T) {
			s := w.watch("/api/v1/pods?" + target)
			s.want(want...)
			if len(want) > 0 && want[len(want)-1] == "end" {
				return
			}
			select {
			case e := <-s.events:
				t.Errorf("then came %s", e)
			case <-time.After(20 * time.Millisecond):
			}
		})
	}
}

// TestWatchByPath: the form from before there was a parameter.
func TestWatchByPath(t *testing.T) {
	w := newWorld(t)
	w.watch("/api/v1/watch/namespaces/a/pods").want("ADDED one@10", "ADDED two@20")
	w.watch("/api/v1/watch/namespaces/a/pods/two").want("ADDED two@20")
}

// TestWatchSelection: what enters a selection is ADDED, what leaves it DELETED
// with the version of the change.
func TestWatchSelection(t *testing.T) {
	w := newWorld(t)
	labels := w.watch("/api/v1/pods?watch=1&resourceVersion=100&labelSelector=app%3Dweb")
	fields := w.watch("/api/v1/namespaces/a/pods?watch=1&resourceVersion=100&fieldSelector=spec.nodeName%3Dn2")
	w.pods.apply(t, cache.Modified, pod("a", "one", "db", "n2", 101))
	w.pods.apply(t, cache.Modified, pod("a", "two", "web", "n2", 102))
	w.pods.apply(t, cache.Modified, pod("a", "two", "web", "n1", 103))
	w.pods.apply(t, cache.Deleted, pod("b", "three", "web", "n1", 104))
	w.pods.apply(t, cache.Deleted, pod("a", "one", "db", "n2", 105))
	left := labels.next()
	if left.String() != "DELETED one@101" || left.Object.Metadata.Labels["app"] != "web" {
		t.Errorf("leaving the selection is %s with labels %v, want those it had", left, left.Object.Metadata.Labels)
	}
	labels.want("ADDED two@102", "MODIFIED two@103", "DELETED three@104")
	fields.want("ADDED one@101", "MODIFIED two@102", "DELETED two@103", "DELETED one@105")
}

// TestWatchRelist: objects that a list found missing carry a version that does
// not send a client back in time.
func TestWatchRelist(t *testing.T) {
	w := newWorld(t)
	s := w.watch("/api/v1/pods?watch=1&resourceVersion=100")
	w.pods.replace(t, "200", pod("a", "one", "web", "n1", 10), pod("a", "two", "db", "n2", 150))
	s.want("DELETED three@100", "MODIFIED two@150")
}

// TestWatchEnds: a watch ends cleanly at its timeout, with a bookmark shortly
// before.
func TestWatchEnds(t *testing.T) {
	t.Parallel() // it waits, for seconds
	w := newWorld(t)
	began := time.Now()
	s := w.watch("/api/v1/pods?watch=1&resourceVersion=100&timeoutSeconds=3&allowWatchBookmarks=true&labelSelector=app%3Dnone")
	quiet := w.watch("/api/v1/pods?watch=1&resourceVersion=100&timeoutSeconds=1")
	w.pods.apply(t, cache.Modified, pod("a", "one", "db", "n2", 101))
	w.pods.store.Bookmark("", "110")
	s.want("BOOKMARK @110", "end")
	quiet.want("MODIFIED one@101", "end")
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("ended after %v", took)
	}
}

// TestProofIsToldAtOnce: who follows a copy hears of a proof when it comes, not with the
// next bookmark that is due anyway, and not of what proves next to nothing.
func TestProofIsToldAtOnce(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	s := w.watch("/api/v1/pods?watch=1&resourceVersion=100&allowWatchBookmarks=true")
	plain := w.watch("/api/v1/pods?watch=1&resourceVersion=100")
	w.pods.proved(now.Add(-time.Minute))
	s.want("BOOKMARK @100")
	w.pods.proved(now.Add(-time.Minute + proofGain/2))
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101))
	s.want("MODIFIED one@101")
	w.pods.store.Bookmark("", "105")
	w.pods.proved(now)
	s.want("BOOKMARK @105")
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 106))
	s.want("MODIFIED one@106")
	plain.want("MODIFIED one@101", "MODIFIED one@106")
}

// TestWatchStops: a store that closes because informerd stops ends the stream,
// so that its client resumes; one that was replaced has another history.
func TestWatchStops(t *testing.T) {
	w := newWorld(t)
	s := w.watch("/api/v1/nodes?watch=1&resourceVersion=100")
	w.nodes.store.Close()
	s.want("end")

	s = w.watch("/api/v1/pods?watch=1&resourceVersion=100")
	old := w.pods.store
	w.pods.mu.Lock()
	w.pods.store = newResource(t, "", "v1", "pods", "Pod", true).store
	w.pods.mu.Unlock()
	old.Close()
	s.want("ERROR 410 Expired", "end")
}

// TestWatchOfStopped: a watch that finds its store closed has not begun, so that
// its client is told when to come back.
func TestWatchOfStopped(t *testing.T) {
	w := newWorld(t)
	w.pods.store.Close()
	for _, query := range []string{"", "&resourceVersion=100", "&resourceVersion=0", "&resourceVersion=200&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"} {
		rec := httptest.NewRecorder()
		err := w.ask(rec, httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=1"+query, nil))
		if !errors.Is(err, cache.ErrStopped) || rec.Body.Len() > 0 || len(rec.Header()["Content-Type"]) > 0 {
			t.Errorf("watch=1%s of a closed store = %v, header %v, body %q", query, err, rec.Header(), rec.Body)
		}
	}
}

// TestWatchersShareFrames: however many watch, an event is unpacked once, and
// all get all events in order.
func TestWatchersShareFrames(t *testing.T) {
	w := newWorld(t)
	const watchers, events = 50, 200
	var all []*watching
	for range watchers {
		all = append(all, w.watch("/api/v1/pods?watch=1&resourceVersion=100"))
	}
	for n := range events {
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101+n))
	}
	for _, s := range all {
		for n := range events {
			s.want(fmt.Sprintf("MODIFIED one@%d", 101+n))
		}
	}
	w.frames.mu.Lock()
	defer w.frames.mu.Unlock()
	if n := w.frames.order.Len(); n != events {
		t.Errorf("%d frames were made for %d events and %d watchers", n, events, watchers)
	}
}

func TestFramesAreBounded(t *testing.T) {
	w := newWorld(t)
	for n := range maxFrames + 10 {
		o := w.pods.decode(t, pod("a", "one", "web", "n1", n+1))
		if _, err := w.frames.get(o, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n, m := w.frames.order.Len(), len(w.frames.byKey); n != maxFrames || m != maxFrames {
		t.Errorf("%d frames in order, %d by key", n, m)
	}
}

func TestWithVersion(t *testing.T) {
	for raw, want := range map[string]string{
		`{"metadata":{"resourceVersion":"1"}}`: `{"metadata":{"resourceVersion":"7"}}`,
		`{"spec":{"resourceVersion":"1"},"metadata":{"annotations":{"resourceVersion":"1","a":"\"resourceVersion\":\"1\""},"x":["resourceVersion","1"], "resourceVersion" : "1" ,"uid":"u"}}`: `{"spec":{"resourceVersion":"1"},"metadata":{"annotations":{"resourceVersion":"1","a":"\"resourceVersion\":\"1\""},"x":["resourceVersion","1"], "resourceVersion" : "7" ,"uid":"u"}}`,
	} {
		got, err := withVersion([]byte(raw), "7")
		if err != nil || string(got) != want {
			t.Errorf("withVersion(%s) = %s, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{}`, `{"metadata":{}}`, `{"metadata":{"resourceVersion":1}}`} {
		if got, err := withVersion([]byte(raw), "7"); err == nil {
			t.Errorf("withVersion(%s) = %s, want an error", raw, got)
		}
	}
}

// TestWatchForm: a watch takes the first form that it can be streamed in.
func TestWatchForm(t *testing.T) {
	w := newWorld(t)
	s := w.watch("/api/v1/pods?watch=1", "Accept", "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json")
	if e := s.next(); e.Object.Kind != "Pod" {
		t.Errorf("an event is of a %s, want a Pod", e.Object.Kind)
	}
}
