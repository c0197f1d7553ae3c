package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
	"github.com/informerd/informerd/server/handlers"
)

func TestHandlersAreSeen(t *testing.T) {
	w, f := newHandlersWorld(t)
	f.dead = []handlers.DeadLetter{{Cluster: "default", Resource: "pods", Namespace: "a", Name: "one", Attempts: 15, Error: "refused", Since: then}, {Name: "two"}}
	var all list[handlers.Status]
	w.getJSON(t, "/v1/handlers", &all)
	if len(all.Items) != 2 || all.Kind != "HandlerList" || all.Items[1].LastError != "a/secret-name" {
		t.Errorf("handlers: %+v", all)
	}
	var one handlers.Status
	w.getJSON(t, "/v1/handlers/shop", &one)
	if one.Name != "shop" || len(one.Lines) != 1 {
		t.Errorf("shop: %+v", one)
	}
	var dead list[handlers.DeadLetter]
	w.getJSON(t, "/v1/handlers/shop/deadletters?limit=1", &dead)
	if len(dead.Items) != 1 || dead.Metadata.Continue != "next" || dead.Items[0].Error != "refused" {
		t.Errorf("dead letters: %+v", dead)
	}
	w.getJSON(t, "/v1/handlers/shop/deadletters?limit=2&continue=x", &dead)
	if got := f.noted(); !slices.Equal(got, []string{`dead shop 1 ""`, `dead shop 2 "x"`}) {
		t.Errorf("asked %q", got)
	}
	for _, path := range []string{"/v1/handlers/none", "/v1/handlers/none/deadletters", "/v1/handlers/No%2Fne"} {
		wantStatus(t, w.get(t, path), 404, metav1.StatusReasonNotFound, "there is no handler")
	}
	wantStatus(t, w.get(t, "/v1/handlers?cluster=a"), 400, metav1.StatusReasonBadRequest, "unknown parameter")
}

// TestWithoutHandlers: where there are none there are none, and why, if they should be.
func TestWithoutHandlers(t *testing.T) {
	w := newWorld(t)
	var all list[handlers.Status]
	w.getJSON(t, "/v1/handlers", &all)
	if len(all.Items) != 0 {
		t.Errorf("%+v", all)
	}
	wantStatus(t, w.get(t, "/v1/handlers/shop"), 404, metav1.StatusReasonNotFound, "no handler")
	wantStatus(t, w.post(t, "/v1/handlers/shop/claim", ""), 404, metav1.StatusReasonNotFound, "no handler")
	w = newWorld(t, func(o *Options) { o.HandlersTrouble = "the file is locked" })
	for _, rec := range []*httptest.ResponseRecorder{w.get(t, "/v1/handlers"), w.get(t, "/v1/handlers/shop"), w.post(t, "/v1/handlers/shop/claim", "")} {
		wantStatus(t, rec, 503, metav1.StatusReasonServiceUnavailable, "the file is locked")
	}
}

func TestBadBodies(t *testing.T) {
	w, f := newHandlersWorld(t)
	for body, want := range map[string]string{
		`{"token":"x"}`:       `unknown field "token"`,
		`{"tokens":"x"}`:      "cannot unmarshal",
		`{"tokens":["x"]} {}`: "more follows",
		`{"tokens":["x"`:      "unexpected EOF",
		`[]`:                  "cannot unmarshal",
		`{"tokens":[]}`:       "is missing",
		`{"tokens":["x",""]}`: "one is empty",
		`{"tokens":["` + strings.Repeat(`x","`, 1000) + `x"]}`: "at most 1000",
	} {
		wantStatus(t, w.post(t, "/v1/handlers/shop/ack", body), 400, metav1.StatusReasonBadRequest, want)
	}
	wantStatus(t, w.post(t, "/v1/handlers/shop/ack?token=x", `{"tokens":["x"]}`), 400, metav1.StatusReasonBadRequest, "use one of them")
	wantStatus(t, w.post(t, "/v1/handlers/shop/ack", `{"tokens":["x"]}`, "Content-Type", "text/plain"), 415, metav1.StatusReasonUnsupportedMediaType, "application/json")
	wantStatus(t, w.post(t, "/v1/handlers/shop/ack", `{"tokens":["`+strings.Repeat("x", maxBody)+`"]}`), 413, metav1.StatusReasonRequestEntityTooLarge, "more than")
	wantStatus(t, w.post(t, "/v1/handlers/shop/redrive", `{"keys":[]}`), 400, metav1.StatusReasonBadRequest, "leave it out")
	wantStatus(t, w.post(t, "/v1/handlers/shop/pause", `{"name":"shop"}`), 400, metav1.StatusReasonBadRequest, "unknown field")
	if calls := f.noted(); len(calls) > 0 {
		t.Errorf("something was done all the same: %q", calls)
	}
}

func TestSteering(t *testing.T) {
	w, f := newHandlersWorld(t)
	for _, test := range []struct{ target, body, answer, call string }{
		{"pause", "", `{"name":"shop","paused":true}`, "pause shop"},
		{"resume", "{}", `{"name":"shop","paused":false}`, "resume shop"},
		{"redrive", "", `{"redriven":0}`, "redrive shop []"},
		{"redrive", `{"keys":[{"cluster":"default","resource":"pods","namespace":"a","name":"one"}]}`, `{"redriven":1}`, "redrive shop [{default pods a one}]"},
	} {
		rec := w.post(t, "/v1/handlers/shop/"+test.target, test.body)
		if calls := f.noted(); rec.Code != 200 || strings.TrimSpace(rec.Body.String()) != test.answer || !slices.Equal(calls, []string{test.call}) {
			t.Errorf("%s: %d %s %q", test.target, rec.Code, rec.Body, calls)
		}
	}
}

// TestOnlyPost: what does something does it for POST, and nothing else is done with POST.
func TestOnlyPost(t *testing.T) {
	w, f := newHandlersWorld(t)
	for pattern := range w.posts {
		path := strings.Replace(pattern, "{handler}", "shop", 1)
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			if rec := w.do(t, method, path); rec.Code != 405 || rec.Header().Get("Allow") != "POST" {
				t.Errorf("%s %s = %d, Allow %q", method, path, rec.Code, rec.Header().Get("Allow"))
			}
		}
	}
	for pattern := range w.parameters {
		if w.posts[pattern] {
			continue
		}
		path := strings.NewReplacer("{handler}", "shop", "{resource}", "pods", "{namespace}", "a", "{name}", "one", "{index}", "node", "*", "x").Replace(pattern)
		if rec := w.post(t, path, ""); rec.Code != 405 || rec.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s = %d, Allow %q", path, rec.Code, rec.Header().Get("Allow"))
		}
	}
	if calls := f.noted(); len(calls) > 0 {
		t.Errorf("done: %q", calls)
	}
}

// TestForeignPagesSteerNothing: not even those that another port of this machine serves, to
// which a browser says same-site.
func TestForeignPagesSteerNothing(t *testing.T) {
	w, f := newHandlersWorld(t)
	for name, headers := range map[string][]string{
		"cross-site":    {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		"another port":  {"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000"},
		"an old one":    {"Origin", "http://localhost:3000"},
		"no origin":     {"Origin", "null"},
		"another name":  {"Host", "evil.example"},
		"a simple form": {"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
	} {
		for _, what := range []string{"claim?wait=0", "ack?token=x", "pause", "redrive"} {
			r := httptest.NewRequest(http.MethodPost, "/v1/handlers/shop/"+what, nil)
			r.Host = "localhost:8080"
			for i := 0; i+1 < len(headers); i += 2 {
				if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
					r.Host = headers[i+1]
				}
			}
			rec := httptest.NewRecorder()
			w.Handler().ServeHTTP(rec, r)
			if rec.Code != http.StatusForbidden {
				t.Errorf("%s, %s: %d %s", name, what, rec.Code, rec.Body)
			}
		}
	}
	if calls := f.noted(); len(calls) > 0 {
		t.Errorf("done: %q", calls)
	}
	for name, headers := range map[string][]string{
		"our page":       {"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:8080"},
		"behind a proxy": {"Sec-Fetch-Site", "same-origin", "Origin", "https://informerd.example"},
		"an old browser": {"Origin", "http://localhost:8080"},
		"a program":      nil,
		"with a token":   {"Sec-Fetch-Site", "cross-site", "Authorization", "Bearer x"},
	} {
		if rec := w.post(t, "/v1/handlers/shop/pause", "", headers...); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
}

// pathUser may do to paths what the test says.
type pathUser struct {
	*accesstest.User
	mu  sync.Mutex
	may map[string]bool // "post /v1/handlers/shop/claim"
}

func (u *pathUser) Path(_ context.Context, verb, path string) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.may[verb+" "+path], nil
}

func (u *pathUser) set(right string, may bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.may[right] = may
}

func newPathUser(rights ...string) *pathUser {
	u := &pathUser{User: accesstest.NewUser("jane"), may: map[string]bool{}}
	for _, r := range rights {
		u.may[r] = true
	}
	return u
}

// TestRightsOfHandlers: each thing needs its own right, and whoever lacks it is not told
// whether there is such a handler.
func TestRightsOfHandlers(t *testing.T) {
	rights := map[string]string{
		"GET /v1/handlers":                  "get /v1/handlers",
		"GET /v1/handlers/shop":             "get /v1/handlers/shop",
		"GET /v1/handlers/shop/deadletters": "get /v1/handlers/shop/deadletters",
		"POST /v1/handlers/shop/claim":      "post /v1/handlers/shop/claim",
		"POST /v1/handlers/shop/ack":        "post /v1/handlers/shop/claim",
		"POST /v1/handlers/shop/nack":       "post /v1/handlers/shop/claim",
		"POST /v1/handlers/shop/extend":     "post /v1/handlers/shop/claim",
		"POST /v1/handlers/shop/pause":      "post /v1/handlers/shop/pause",
		"POST /v1/handlers/shop/resume":     "post /v1/handlers/shop/resume",
		"POST /v1/handlers/shop/redrive":    "post /v1/handlers/shop/redrive",
	}
	for request, right := range rights {
		method, path, _ := strings.Cut(request, " ")
		for other := range rights {
			user := newPathUser(rights[other])
			w, f := newHandlersWorld(t, func(o *Options) { o.Access = func(*http.Request) (access.Asker, error) { return user, nil } })
			f.good = []string{"x"}
			target := path
			switch {
			case strings.HasSuffix(path, "/claim"):
				target += "?wait=0"
			case strings.HasSuffix(path, "ack"), strings.HasSuffix(path, "extend"):
				target += "?token=x"
			}
			ask := func(target string) *httptest.ResponseRecorder {
				if method == "GET" {
					return w.get(t, target)
				}
				return w.post(t, target, "")
			}
			rec := ask(target)
			if (rec.Code == 200) != (rights[other] == right) || rec.Code != 200 && rec.Code != 403 {
				t.Errorf("%s by who may %s: %d %s", request, rights[other], rec.Code, rec.Body)
			}
			if rec := ask(strings.Replace(target, "/shop", "/none", 1)); strings.Contains(target, "/shop") && rec.Code != 403 {
				t.Errorf("%s of a handler that there is not: %d %s", request, rec.Code, rec.Body)
			}
			if calls := f.noted(); rec.Code == 403 && len(calls) > 0 {
				t.Errorf("%s by who may %s: done %q", request, rights[other], calls)
			}
		}
	}
}

// TestWhoMaySteerIsTold: what is offered is what is not refused.
func TestWhoMaySteerIsTold(t *testing.T) {
	for _, may := range [][]string{{}, {"redrive"}, {"pause", "resume"}, {"pause", "resume", "redrive"}} {
		user := newPathUser("get /v1/handlers/shop")
		for _, what := range may {
			user.set("post /v1/handlers/shop/"+what, true)
		}
		w, _ := newHandlersWorld(t, func(o *Options) { o.Access = func(*http.Request) (access.Asker, error) { return user, nil } })
		var shown shownHandler
		w.getJSON(t, "/v1/handlers/shop", &shown)
		if shown.Name != "shop" || !slices.Equal(shown.May, may) || shown.May == nil {
			t.Errorf("who may %q is told %+v", may, shown)
		}
		for _, what := range steering {
			if rec := w.post(t, "/v1/handlers/shop/"+what, ""); (rec.Code == 200) != slices.Contains(may, what) {
				t.Errorf("who may %q: %s is %d", may, what, rec.Code)
			}
		}
	}
}

// TestHandlersOfOthersAreNotListed: what went wrong with a handler names objects.
func TestHandlersOfOthersAreNotListed(t *testing.T) {
	user := newPathUser("get /v1/handlers", "get /v1/handlers/hook")
	w, f := newHandlersWorld(t, func(o *Options) { o.Access = func(*http.Request) (access.Asker, error) { return user, nil } })
	rec := w.get(t, "/v1/handlers")
	if text := rec.Body.String(); rec.Code != 200 || !strings.Contains(text, "hook") || strings.Contains(text, "shop") || strings.Contains(text, "secret") {
		t.Errorf("%d %s", rec.Code, text)
	}
	user.set("post /v1/handlers/shop/claim", true)
	w.post(t, "/v1/handlers/shop/claim?wait=0", "")
	if f.claimed.Owner != "jane" {
		t.Errorf("claimed by %q", f.claimed.Owner)
	}
}
