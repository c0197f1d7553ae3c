package terminal

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// onlooker is a world seen through a proxy that notes what is asked of /v1/query.
type onlooker struct {
	world
	mu    sync.Mutex // guards asked
	asked []string
	// before is called before a question is handed on; nil is nothing. It may answer itself,
	// which it reports. It is set before anything is asked.
	before func(question string, w http.ResponseWriter, r *http.Request) bool
}

func watching(tb testing.TB, w *world) *onlooker {
	tb.Helper()
	target, err := url.Parse(w.url)
	if err != nil {
		tb.Fatal(err)
	}
	o := &onlooker{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/query" && o.note(w, r) {
			return
		}
		defer func() { _ = recover() }() // of a client that went away
		proxy.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	o.url = server.URL
	return o
}

func (o *onlooker) note(w http.ResponseWriter, r *http.Request) (answered bool) {
	question := "objects"
	switch {
	case r.URL.Query().Get("watch") != "":
		question = "stream"
	case r.URL.Query().Get("explain") != "":
		question = "count"
	case r.Header.Get("If-None-Match") != "":
		question = "unchanged"
	}
	o.mu.Lock()
	o.asked = append(o.asked, question)
	o.mu.Unlock()
	return o.before != nil && o.before(question, w, r)
}

// questions are those since the last call. Streams are opened in no order, so they count as
// one.
func (o *onlooker) questions() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := strings.Join(slices.Compact(o.asked), " ")
	o.asked = nil
	return asked
}

// TestWaitLooksFirst: what is so already is found by asking, and said as streams have it
// said; all else is left to them.
func TestWaitLooksFirst(t *testing.T) {
	const running, once = "--for object.status.phase=='Running'", "objects count unchanged"
	shop, twins := newWorld(t), newTwins(t)
	shop.of("pods").apply(t, cache.Added, pod("shop-1", "web-2", "n1", "Running", 100001, ""))
	for _, c := range []struct {
		world *world
		line  string
		asked string // "": streams decide
	}{
		{shop, "pods -n team " + running, once},
		{shop, "pods/web-1-a -n shop " + running, once},
		{shop, "pods/web-1-a pods/team/alone -n shop " + running, once + " " + once},
		{shop, "pods web-1-a web-1-a -n shop " + running, once},
		{shop, "pods -A -l app=web --filter object.status.phase!='Pending' " + running, once},
		{shop, "pods,nodes,deploy,cm -A --for has(object.metadata.name)", once + " " + once},
		{shop, "deploy,pods -A --for object.metadata.name.startsWith('') --quiet", once},
		{shop, "* -A --for has(object.metadata.name)", once},
		{shop, "pods,rs,nodes -A --for create", "objects"},
		{shop, "pods/gone -n shop --for delete", "count"},
		{shop, "pods gone lost -n shop --for delete", "count"},
		{shop, "pods -l app=none -A --for delete", "count"},
		{shop, "deploy/web -n shop --for condition=Available=True --filter object.metadata.generation==1", ""},
		{twins, "cm/one -n shop --for has(object.data)", once},
		{twins, "cm -A --cluster west --for object.data.a=='1'", once},
		{shop, "pods -n shop " + running, ""},
		{shop, "pods web-1-a none -n shop " + running, ""},
		{shop, "pods -l app=none -A " + running, ""},
		{shop, "pods -l app=none -A --for create", ""},
		{shop, "pods web-1-a none -n shop --for create", ""},
		{shop, "pods gone web-1-a -n shop --for delete", ""},
		{shop, "pods/gone pods/web-1-a -n shop --for delete", ""},
		{twins, "cm/one -n shop --for object.data.a=='1'", ""},
		{shop, "pods -n team --for nonsense(", ""},
	} {
		o := watching(t, c.world)
		args := append([]string{"wait"}, append(strings.Fields(c.line), "--timeout", "0")...)
		got := o.run(t, args...)
		asked := o.questions()
		// A stream of the first run may reach its onlooker when that run is over.
		blind := watching(t, c.world)
		blind.before = func(question string, w http.ResponseWriter, _ *http.Request) bool {
			if question != "stream" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return question != "stream"
		}
		want := blind.run(t, args...)
		if !strings.HasSuffix(blind.questions(), " stream") {
			t.Fatalf("%s: nothing was streamed", c.line)
		}
		if got != want {
			t.Errorf("%s: %+v, by streams %+v", c.line, got, want)
		}
		if c.asked == "" && !strings.HasSuffix(asked, " stream") || c.asked != "" && asked != c.asked {
			t.Errorf("%s: asked %q, want %q", c.line, asked, c.asked)
		}
	}
}

// TestWaitLookOverChanges: a count of other contents decides nothing, whatever their version
// says.
func TestWaitLookOverChanges(t *testing.T) {
	for name, version := range map[string]int{"another version": 100001, "the same version": 201} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := watching(t, w)
			o.before = func(question string, _ http.ResponseWriter, _ *http.Request) bool {
				if question == "count" {
					w.of("pods").apply(t, cache.Deleted, pod("shop", "web-1-b", "n1", "Pending", version, ""))
					w.of("pods").apply(t, cache.Modified, pod("shop", "web-1-a", "n1", "Failed", version, ""))
				}
				return false
			}
			got := o.run(t, "wait", "pods", "-n", "shop", "--for", "object.status.phase=='Running'", "--timeout", "0")
			if got.code != ExitNo || !strings.Contains(got.err, "pod/web-1-a") || got.out != "" {
				t.Errorf("%+v", got)
			}
			if asked := o.questions(); !strings.HasSuffix(asked, "stream") {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

// TestWaitLookAtTwoServers: that the first one has nothing new says nothing of what another
// counted.
func TestWaitLookAtTwoServers(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	other.of("pods").apply(t, cache.Deleted, pod("shop", "web-1-b", "n1", "Pending", 100001, ""))
	o, elsewhere := watching(t, w), watching(t, other)
	target, _ := url.Parse(elsewhere.url)
	proxy := httputil.NewSingleHostReverseProxy(target)
	o.before = func(question string, w http.ResponseWriter, r *http.Request) bool {
		if question == "count" {
			proxy.ServeHTTP(w, r)
		}
		return question == "count"
	}
	got := o.run(t, "wait", "pods", "-n", "shop", "--for", "object.status.phase=='Running'", "--timeout", "0")
	if got.code != ExitNo || !strings.Contains(got.err, "pod/web-1-b") || elsewhere.questions() != "count" {
		t.Errorf("%+v", got)
	}
}

// TestWaitLookDoubts: an answer that is old or not whole, or has no value for some objects,
// decides nothing, and what is wrong is said once.
func TestWaitLookDoubts(t *testing.T) {
	for name, c := range map[string]struct {
		resource string
		state    cache.State
		line     string
		want     result
	}{
		"stale":         {"pods", cache.Stale, "pods -n team --for object.status.phase=='Running'", result{out: "pod/alone condition met\n", err: "warning: pods is stale\n"}},
		"stale, gone":   {"pods", cache.Stale, "pods/none -n team --for delete", result{out: "pod/none deleted\n", err: "warning: pods is stale\n"}},
		"unanswered":    {"cm", cache.Syncing, "pods,cm -n team --for create", result{err: "warning: configmaps is syncing\nnot known how it stands: not all can be read", code: ExitNoAnswer}},
		"without value": {"nodes", cache.Live, "nodes -A --filter object.spec.x==1||object.metadata.name=='n1' --for has(object.metadata.name)", result{out: "node/n1 condition met\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.of("nodes").apply(t, cache.Added, `{"metadata":{"name":"n2","uid":"n2","resourceVersion":"100001"},"spec":{}}`)
			w.of(c.resource).set(c.state)
			o := watching(t, w)
			if got := o.run(t, append(append([]string{"wait"}, strings.Fields(c.line)...), "--timeout", "0")...); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if asked := o.questions(); !strings.HasSuffix(asked, "stream") {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

// TestWaitLookAtNonsense: counts that cannot be decide nothing, and break nothing.
func TestWaitLookAtNonsense(t *testing.T) {
	for _, objects := range []string{"-1", "9223372036854775807"} {
		w := newWorld(t)
		o := watching(t, w)
		o.before = func(question string, w http.ResponseWriter, _ *http.Request) bool {
			if question == "stream" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			one := `{"answered":true,"state":"live","resourceVersion":"1","objects":` + objects + `}`
			_, _ = io.WriteString(w, `{"kind":"List","metadata":{"resources":[`+one+`,`+one+`]},"items":[{}]}`)
			return true
		}
		got := o.run(t, "wait", "pods/alone", "-n", "team", "--for", "object.status.phase=='Running'", "--timeout", "0")
		if got.code != 0 || got.out != "pod/alone condition met\n" {
			t.Errorf("%s objects: %+v", objects, got)
		}
	}
}

// TestWaitBetweenLookAndStreams: what happens after the look is not missed.
func TestWaitBetweenLookAndStreams(t *testing.T) {
	w := newWorld(t)
	o := watching(t, w)
	var once sync.Once
	o.before = func(question string, _ http.ResponseWriter, _ *http.Request) bool {
		if question == "stream" {
			once.Do(func() { w.of("pods").apply(t, cache.Modified, pod("shop", "web-1-b", "n1", "Running", 100001, "")) })
		}
		return false
	}
	s := o.start(t, "wait", "pods", "-n", "shop", "--for", "object.status.phase=='Running'", "--timeout", "1m")
	if code := s.end(t); code != 0 || s.out.String() != "pod/web-1-a condition met\npod/web-1-b condition met\n" {
		t.Errorf("exit code %d, %q, %q", code, s.out, s.err)
	}
}

// TestWaitLookInTime: who does not answer the look does not keep it from ending in time.
func TestWaitLookInTime(t *testing.T) {
	o := watching(t, newWorld(t))
	o.before = func(_ string, _ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	began := time.Now()
	got := o.run(t, "wait", "pods", "-n", "team", "--for", "create", "--timeout", "50ms")
	if got.code != ExitNoAnswer || !strings.Contains(got.err, "not known within 50ms") {
		t.Errorf("%+v after %v", got, time.Since(began))
	}
}

// TestWaitLookEnds: streams follow where the look has no answer.
func TestWaitLookEnds(t *testing.T) {
	o := watching(t, newWorld(t))
	o.before = func(question string, _ http.ResponseWriter, r *http.Request) bool {
		if question != "stream" {
			<-r.Context().Done()
		}
		return question != "stream"
	}
	if got := o.run(t, "wait", "pods", "-n", "team", "--for", "create", "--timeout", "-1s"); got.code != 0 || got.out != "pod/alone created\n" || got.err != "" {
		t.Errorf("%+v", got)
	}
	if asked := o.questions(); asked != "objects stream" {
		t.Errorf("asked %q", asked)
	}
}

// TestWaitLookHeedsWarnings: what only the headers of an answer say counts, too.
func TestWaitLookHeedsWarnings(t *testing.T) {
	o := watching(t, newWorld(t))
	o.before = func(question string, w http.ResponseWriter, _ *http.Request) bool {
		if question != "stream" {
			w.Header().Set("Informerd-Unanswered", "pods of namespaces secret")
		}
		return false
	}
	for _, goal := range []string{"create", "delete", "object.status.phase=='Running'"} {
		name := map[bool]string{true: "gone", false: "alone"}[goal == "delete"]
		if got := o.run(t, "wait", "pods/"+name, "-n", "team", "--for", goal); got.code != 0 || got.err != "" {
			t.Errorf("%s: %+v", goal, got)
		}
		if asked := o.questions(); !strings.HasSuffix(asked, " stream") {
			t.Errorf("%s: asked %q", goal, asked)
		}
	}
}
