package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access/accesstest"
)

// stream asks for a stream and returns what it has written, once it waits, and its end.
func (w *world) stream(t *testing.T, target string, headers ...string) (written func() string, ended <-chan struct{}) {
	t.Helper()
	rec, done := httptest.NewRecorder(), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		r.Host = "localhost:8080"
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w.Handler().ServeHTTP(rec, r)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() string {
		synctest.Wait()
		return rec.Body.String()
	}, done
}

// TestStreamsEndWithRights: within a second after rights change, streams end, or begin
// anew with what may be seen now.
func TestStreamsEndWithRights(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/resources/pods/objects?watch=true":                     "event: ERROR\nid: 0\n",
		"/v1/resources/pods/objects?watch=true&resourceVersion=100": "event: ERROR\nid: 0\n",
		"/v1/query?resources=pods&watch=true":                       "event: RESYNC\n",
		"/v1/query?watch=true":                                      "event: RESYNC\n",
		"/api/v1/pods?visible=true&watch=true":                      `"code":410`,
		"/api/v1/namespaces/a/pods?watch=true":                      `"code":410`,
		"/api/v1/namespaces/a/pods?watch=true&resourceVersion=100":  `"code":410`,
	} {
		for name, change := range map[string]func(*accesstest.User){
			"other":   func(u *accesstest.User) { u.Grant(podsResource, cache.NewScope([]string{"b"}, nil)) },
			"none":    func(u *accesstest.User) { u.Grant(podsResource, cache.Scope{}) },
			"unknown": func(u *accesstest.User) { u.Fail(errors.New("the token was withdrawn")) },
		} {
			synctest.Test(t, func(t *testing.T) {
				user := jane()
				w := newGuarded(t, user)
				written, ended := w.stream(t, target)
				time.Sleep(3 * time.Second)
				if text := written(); strings.Contains(text, want) || strings.Contains(text, "uid-b-three") {
					t.Fatalf("%s: before rights are changed:\n%s", target, text)
				}
				change(user)
				time.Sleep(time.Second)
				text := written()
				if !strings.Contains(text, want) {
					t.Errorf("%s, %s: after a second:\n%s", target, name, text)
				}
				if name != "unknown" && strings.HasPrefix(target, "/v1/query") {
					if (name == "other") != strings.Contains(text, "uid-b-three") {
						t.Errorf("%s, %s: what may be seen now:\n%s", target, name, text)
					}
					return
				}
				select {
				case <-ended:
				default:
					t.Errorf("%s, %s: the stream goes on:\n%s", target, name, text)
				}
			})
		}
	}
}

// TestStreamsGoOnWithOtherRights: changes of rights that are not about what a stream
// shows do not end it.
func TestStreamsGoOnWithOtherRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := jane()
		w := newGuarded(t, user)
		for _, target := range []string{"/v1/resources/pods/objects?watch=true", "/v1/query?resources=pods&watch=true", "/api/v1/pods?visible=true&watch=true", "/api/v1/namespaces/a/pods?watch=true"} {
			written, ended := w.stream(t, target)
			synctest.Wait()
			for range 5 {
				user.Grant(nodesResource, cache.NewScope([]string{"a"}, nil))
				time.Sleep(time.Second)
			}
			select {
			case <-ended:
				t.Errorf("%s has ended:\n%s", target, written())
			default:
			}
		}
		// A strict watch of one namespace is of that alone.
		written, ended := w.stream(t, "/api/v1/namespaces/a/pods?watch=true")
		user.Grant(podsResource, cache.NewScope([]string{"a", "b"}, nil))
		time.Sleep(2 * time.Second)
		select {
		case <-ended:
			t.Errorf("a watch of namespace a has ended:\n%s", written())
		default:
		}
	})
}

// TestGroupsFollowRights: groups are told anew within a second, however long they take.
func TestGroupsFollowRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := jane()
		w := newGuarded(t, user)
		written, _ := w.stream(t, "/v1/query?resources=pods&watch=true&groupBy=metadata.namespace")
		time.Sleep(3 * time.Second)
		user.Grant(podsResource, cache.NewScope([]string{"b"}, nil))
		time.Sleep(time.Second)
		text := written()
		_, last, ok := strings.Cut(text, `"metadata.namespace":"a"`)
		if !ok || !strings.Contains(last, `"metadata.namespace":"b"`) || strings.Contains(last, `"metadata.namespace":"a"`) {
			t.Errorf("groups:\n%s", text)
		}
	})
}

// TestResumedByOtherRights: a client that comes back with other rights begins anew: what
// it has may be more than it may see.
func TestResumedByOtherRights(t *testing.T) {
	ids := regexp.MustCompile(`(?m)^id: (\S+)$`)
	for _, target := range []string{"/v1/resources/pods/objects?watch=true", "/v1/query?resources=pods&watch=true"} {
		synctest.Test(t, func(t *testing.T) {
			user := jane()
			w := newGuarded(t, user)
			written, _ := w.stream(t, target)
			found := ids.FindAllStringSubmatch(written(), -1)
			if len(found) == 0 {
				t.Fatalf("%s: no id:\n%s", target, written())
			}
			last := found[len(found)-1][1]
			again, _ := w.stream(t, target, "Last-Event-ID", last)
			if text := again(); strings.Contains(text, "RESYNC") || strings.Contains(text, "uid-a-one") {
				t.Errorf("%s resumed by the same rights:\n%s", target, text)
			}
			for _, scope := range []cache.Scope{cache.NewScope([]string{"b"}, nil), cache.WholeScope()} {
				user.Grant(podsResource, scope)
				again, _ = w.stream(t, target, "Last-Event-ID", last)
				if text := again(); !strings.Contains(text, "RESYNC") || !strings.Contains(text, "uid-b-three") {
					t.Errorf("%s resumed by other rights:\n%s", target, text)
				}
			}
		})
	}
}

// reluctant is a client that reads each piece of an answer a while after the one before.
type reluctant struct{ *httptest.ResponseRecorder }

func (r reluctant) Write(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return r.ResponseRecorder.Write(p)
}

// TestRevokedWhileOpening: nor is a client that is slow told the rest of what there is to
// begin with, when it may not see that any more.
func TestRevokedWhileOpening(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/resources/pods/objects?watch=true": "event: ERROR\nid: 0\n",
		"/api/v1/namespaces/a/pods?watch=true":  `"type":"ERROR"`,
		"/v1/query?resources=pods&watch=true":   `"type":"RESYNC"`,
	} {
		synctest.Test(t, func(t *testing.T) {
			const pods = 5000
			user := jane()
			w := newGuarded(t, user)
			for i := range pods {
				w.pods.apply(t, cache.Added, pod("a", fmt.Sprint("p", i), "web", "n1", 200+i))
			}
			rec, done := httptest.NewRecorder(), make(chan struct{})
			// A stream of many resources goes on with what may be seen now.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			go func() {
				defer close(done)
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
				r.Host = "localhost:8080"
				w.Handler().ServeHTTP(reluctant{rec}, r)
			}()
			time.Sleep(time.Second)
			user.Grant(podsResource, cache.NewScope([]string{"b"}, nil))
			<-done
			text := rec.Body.String()
			if told := strings.Count(text, `"kind":"Pod"`); told == 0 || told > pods/2 || !strings.Contains(text, want) {
				t.Errorf("%s: %d pods told; it ends with %.300q", target, told, text[max(0, len(text)-300):])
			}
		})
	}
}
