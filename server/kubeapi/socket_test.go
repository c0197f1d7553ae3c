package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	gorilla "github.com/gorilla/websocket"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access/accesstest"
	"github.com/informerd/informerd/test/websocket"
)

// socket is a watch over a WebSocket.
type socket struct {
	watching
	conn *gorilla.Conn
}

// socket opens a watch over a WebSocket.
func (w *world) socket(target string) *socket {
	w.t.Helper()
	conn, _, err := websocket.Dial(w.t.Context(), w.server.URL+target, nil, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &socket{watching{t: w.t, events: make(chan event, 10000)}, conn}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.events)
		for {
			kind, message, err := conn.ReadMessage()
			var e event
			switch {
			case websocket.Ended(err):
				s.events <- event{Type: "CLOSE"}
				return
			case err != nil:
				return
			case kind != gorilla.TextMessage || json.Unmarshal(message, &e) != nil:
				w.t.Errorf("message %x %q", kind, message)
			}
			s.events <- e
		}
	})
	w.t.Cleanup(func() { _ = conn.Close(); reading.Wait() })
	return s
}

// TestSocket: a WebSocket brings what a watch does, each event as a message.
func TestSocket(t *testing.T) {
	w := newWorld(t)
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101))
	for target, want := range map[string][]string{
		"watch=1":                                      {"ADDED one@101", "ADDED two@20", "ADDED three@30"},
		"watch=1&resourceVersion=100":                  {"MODIFIED one@101"},
		"watch=1&resourceVersion=1":                    {"ERROR 410 Expired", "CLOSE", "end"},
		"watch=1&resourceVersion=100&timeoutSeconds=1": {"MODIFIED one@101", "CLOSE", "end"},
		"watch=1&fieldSelector=metadata.name%3Dtwo":    {"ADDED two@20"},
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&labelSelector=app%3Ddb": {"ADDED two@20", "BOOKMARK @101 end"},
	} {
		t.Run(target, func(t *testing.T) {
			w.socket("/api/v1/pods?" + target).want(want...)
		})
	}
	s := w.socket("/api/v1/namespaces/a/pods?watch=1&resourceVersion=101")
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n2", 102))
	w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n2", 103))
	w.pods.apply(t, cache.Deleted, pod("a", "two", "db", "n2", 104))
	s.want("MODIFIED one@102", "DELETED two@104")
}

// TestSocketRefused: what is wrong with a watch is an answer of HTTP, as without a
// WebSocket, and one that asks for no watch is answered as if it had not asked.
func TestSocketRefused(t *testing.T) {
	w := newWorld(t)
	refused := func(target string) int {
		t.Helper()
		_, _, err := websocket.Dial(t.Context(), w.server.URL+target, nil, nil)
		answer, ok := errors.AsType[*websocket.RefusedError](err)
		if !ok {
			t.Fatalf("%s: %v", target, err)
		}
		return answer.Code
	}
	for target, want := range map[string]int{
		"/api/v1/pods":                                   http.StatusOK,
		"/api/v1/pods?watch=1&resourceVersion=x":         http.StatusInternalServerError,
		"/api/v1/pods?watch=1&labelSelector=(":           http.StatusBadRequest,
		"/api/v1/nothing?watch=1":                        http.StatusNotFound,
		"/apis/coordination.k8s.io/v1/leases?watch=true": http.StatusNotFound,
	} {
		if got := refused(target); got != want {
			t.Errorf("%s is answered with %d, want %d", target, got, want)
		}
	}
	draft := httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=1", nil)
	draft.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"12"}}
	rec := httptest.NewRecorder()
	w.serve(rec, draft)
	if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "version") {
		t.Errorf("a bad handshake is answered with %d %s", rec.Code, rec.Body)
	}
	w.asker = accesstest.NewUser("jane")
	if got := refused("/api/v1/pods?watch=1"); got != http.StatusForbidden {
		t.Errorf("who may see nothing is answered with %d", got)
	}
}

// TestSocketEnds: a client that goes ends its watch, whose place is free then.
func TestSocketEnds(t *testing.T) {
	w := newWorld(t)
	released := make(chan struct{}, 1)
	w.Admit = func(context.Context, Class) (func(), error) { return func() { released <- struct{}{} }, nil }
	for name, leave := range map[string]func(*gorilla.Conn) error{
		"with a word":    func(c *gorilla.Conn) error { return c.WriteMessage(gorilla.CloseMessage, nil) },
		"without a word": func(c *gorilla.Conn) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := w.socket("/api/v1/pods?watch=1&resourceVersion=100")
			if err := leave(s.conn); err != nil {
				t.Fatal(err)
			}
			select {
			case <-released:
			case <-time.After(10 * time.Second):
				t.Error("the watch goes on")
			}
		})
	}
}
