package server

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

func TestListObjects(t *testing.T) {
	w := newWorld(t)
	const objects = "/v1/resources/pods/objects"
	for path, want := range map[string]string{
		objects:                                       "one two three",
		objects + "?namespace=a":                      "one two",
		objects + "?namespace=a&namespace=b":          "one two three",
		objects + "?namespace=?":                      "one two three",
		objects + "?labelSelector=app%3Dweb":          "one three",
		objects + "?labelSelector=app+in+(db)":        "two",
		objects + "?fieldSelector=spec.nodeName%3Dn2": "two",
		objects + "?fieldSelector=spec.containers[*].image%3Dregistry.example/shop/web:1.2": "one two three",
		objects + "?index=node:n1":                                           "one three",
		objects + "?index=node:n1&index=label:app%3Dweb&namespace=b":         "three",
		objects + "?index=image:registry.example/shop/web:1.2&index=node:n2": "two",
		objects + "?resourceVersion=100":                                     "one two three",
		objects + "?resourceVersion=0":                                       "one two three",
		objects + "?namespace=none":                                          "",
		"/v1/resources/pods/indexes/node/n1":                                 "one three",
		"/v1/resources/pods/indexes/node/n1?namespace=b":                     "three",
		"/v1/resources/pods/indexes/label/app=web":                           "one three",
		"/v1/resources/pods/indexes/label/app%3Dweb":                         "one three",
		"/v1/resources/pods/indexes/image/registry.example/shop/web:1.2":     "one two three",
		"/v1/resources/pods/indexes/image/registry.example%2Fshop%2Fweb:1.2": "one two three",
		"/v1/resources/pods/indexes/namespace/b":                             "three",
		"/v1/resources/pods/indexes/node/none":                               "",
		"/v1/resources/pods/indexes/node/":                                   "",
	} {
		var got podList
		h := w.getJSON(t, path, &got)
		if got.names() != want {
			t.Errorf("GET %s: %q, want %q", path, got.names(), want)
		}
		if got.Kind != "PodList" || got.APIVersion != "v1" || got.Metadata.ResourceVersion != "100" || got.Items == nil {
			t.Errorf("GET %s: list is %+v", path, got)
		}
		if h.Get("Informerd-State") != "live" || h.Get("Informerd-Resource-Version") != "100" || h.Get("Informerd-Age") == "" || h.Get("Warning") != "" {
			t.Errorf("GET %s: headers %v", path, h)
		}
	}
}

func TestListKind(t *testing.T) {
	w := newWorld(t)
	for given, want := range map[string]string{"": "NodeList", "ManyNodes": "ManyNodes"} {
		w.nodes.spec.ListKind = given
		var got podList
		w.getJSON(t, "/v1/resources/nodes/objects", &got)
		if got.Kind != want {
			t.Errorf("listKind %q: a %s", given, got.Kind)
		}
	}
}

func TestObjectsAreServedAsTheyAre(t *testing.T) {
	w := newWorld(t)
	want := pod("a", "one", "web", "n1", 10)
	if got := w.get(t, "/v1/resources/pods/objects/a/one").Body.String(); got != want+"\n" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := w.get(t, "/v1/resources/pods/objects?namespace=b").Body.String(); got !=
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":[`+pod("b", "three", "web", "n1", 30)+"]}\n" {
		t.Errorf("got %s", got)
	}
	var indented, plain any
	for _, path := range []string{"/v1/resources/pods/objects", "/v1/resources/pods/objects?namespace=x", "/v1/resources/pods/objects/a/one"} {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		pretty := w.get(t, path+sep+"pretty").Body.Bytes()
		if err := json.Unmarshal(pretty, &indented); err != nil {
			t.Fatal(err)
		}
		w.getJSON(t, path, &plain)
		if d := cmp.Diff(plain, indented); d != "" {
			t.Error(d)
		}
		again, _ := json.MarshalIndent(json.RawMessage(pretty), "", "  ")
		if d := cmp.Diff(string(again)+"\n", string(pretty)); d != "" {
			t.Errorf("%s is indented otherwise:\n%s", path, d)
		}
	}
}

// TestItemsInLines: pretty=items is the list as it is, but each item begins a line.
func TestItemsInLines(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{
		"/v1/resources/pods/objects?", "/v1/resources/pods/objects?namespace=b", "/v1/resources/pods/objects?namespace=x",
		"/v1/query?resources=pods,nodes", "/v1/resources/pods/indexes/node/n1?",
		"/v1/resources/pods/objects?groupBy=spec.nodeName",
	} {
		plain, lines := w.get(t, path).Body.String(), w.get(t, path+"&pretty=items").Body.String()
		if got := strings.ReplaceAll(lines, "\n", "") + "\n"; got != plain {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, plain)
		}
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal([]byte(plain), &list); err != nil {
			t.Fatal(err)
		}
		for i, item := range list.Items {
			if !strings.Contains(lines, "\n"+string(item)) {
				t.Errorf("%s: item %d begins no line of\n%s", path, i, lines)
			}
		}
	}
}

func TestFields(t *testing.T) {
	w := newWorld(t)
	got := w.get(t, "/v1/resources/pods/objects?namespace=a&fields=metadata.name,status.phase").Body.String()
	want := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":[` +
		`{"metadata":{"name":"one"},"status":{"phase":"Running"}},{"metadata":{"name":"two"},"status":{"phase":"Running"}}]}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := w.get(t, "/v1/resources/pods/objects/a/one?fields=spec.nodeName").Body.String(); got != `{"spec":{"nodeName":"n1"}}`+"\n" {
		t.Errorf("got %s", got)
	}
}

// All pages show the version of the first, whatever happens between them.
func TestPagesAreOfOneVersion(t *testing.T) {
	w := newWorld(t)
	var objects []string
	for i := range 95 {
		objects = append(objects, pod("a", fmt.Sprintf("pod-%03d", i), "web", "n1", i+1))
	}
	w.pods.replace(t, "200", objects...)

	var names []string
	token, left := "", 95
	for page := 0; ; page++ {
		var got podList
		h := w.getJSON(t, "/v1/resources/pods/objects?limit=10&continue="+token, &got)
		if got.Metadata.ResourceVersion != "200" || h.Get("Informerd-Resource-Version") != "200" {
			t.Fatalf("page %d is of version %s", page, got.Metadata.ResourceVersion)
		}
		left -= len(got.Items)
		if remaining := got.Metadata.RemainingItemCount; left > 0 && (remaining == nil || *remaining != int64(left)) {
			t.Errorf("page %d: remaining %v, want %d", page, remaining, left)
		}
		if h.Get("ETag") != "" {
			t.Errorf("page %d has an ETag", page)
		}
		for _, i := range got.Items {
			names = append(names, i.Metadata.Name)
		}
		if token = got.Metadata.Continue; token == "" {
			break
		}
		// The world moves on: one goes, one comes, one changes.
		w.pods.apply(t, cache.Deleted, pod("a", fmt.Sprintf("pod-%03d", 94-page), "web", "n1", 300+3*page))
		w.pods.apply(t, cache.Added, pod("a", fmt.Sprintf("new-%03d", page), "web", "n1", 301+3*page))
		w.pods.apply(t, cache.Modified, pod("a", fmt.Sprintf("pod-%03d", 50), "db", "n1", 302+3*page))
	}
	if len(names) != 95 || names[0] != "pod-000" || names[94] != "pod-094" {
		t.Errorf("%d names: %v", len(names), names)
	}
}

func TestContinueOfAnotherQuery(t *testing.T) {
	w := newWorld(t)
	var got podList
	w.getJSON(t, "/v1/resources/pods/objects?limit=1", &got)
	token := got.Metadata.Continue
	wantStatus(t, w.get(t, "/v1/resources/pods/objects?limit=1&namespace=a&continue="+token), 400, metav1.StatusReasonBadRequest, "continue")
	wantStatus(t, w.get(t, "/v1/resources/nodes/objects?limit=1&continue="+token), 400, metav1.StatusReasonBadRequest, "continue")
	// The same resource in another life of the process.
	other := newWorld(t)
	wantStatus(t, other.get(t, "/v1/resources/pods/objects?limit=1&continue="+token), 410, metav1.StatusReasonExpired, "")
}

func TestETag(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{
		"/v1/resources", "/v1/resources/pods", "/v1/resources/pods/objects", "/v1/resources/pods/objects?limit=10",
		"/v1/resources/pods/objects/a/one", "/v1/resources/pods/indexes", "/v1/resources/pods/indexes/node",
		"/v1/resources/pods/indexes/node/n1",
	} {
		first := w.get(t, path)
		tag := first.Header().Get("ETag")
		if first.Code != 200 || !strings.HasPrefix(tag, `W/"`) {
			t.Errorf("GET %s = %d, ETag %q", path, first.Code, tag)
			continue
		}
		for _, header := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
			again := w.get(t, path, "If-None-Match", header)
			if again.Code != 304 || again.Body.Len() > 0 || again.Header().Get("ETag") != tag {
				t.Errorf("GET %s with %s = %d %q", path, header, again.Code, again.Body)
			}
			if !strings.Contains(strings.Join(again.Header().Values("Vary"), ","), "Accept") {
				t.Errorf("GET %s: Vary = %v", path, again.Header().Values("Vary"))
			}
		}
		if again := w.get(t, path, "If-None-Match", `"x"`); again.Code != 200 {
			t.Errorf("GET %s with another tag = %d", path, again.Code)
		}
	}
	tagOf := func(path string) string { return w.get(t, path).Header().Get("ETag") }
	list, one, two := tagOf("/v1/resources/pods/objects"), tagOf("/v1/resources/pods/objects/a/one"), tagOf("/v1/resources/pods/objects/a/two")
	nodes := tagOf("/v1/resources/nodes/objects")
	if list == tagOf("/v1/resources/pods/objects?pretty") || list == tagOf("/v1/resources/pods/objects?namespace=a") {
		t.Error("other answers have the same tag")
	}
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n9", 101))
	if list == tagOf("/v1/resources/pods/objects") || one == tagOf("/v1/resources/pods/objects/a/one") {
		t.Error("a change left the tag")
	}
	if two != tagOf("/v1/resources/pods/objects/a/two") || nodes != tagOf("/v1/resources/nodes/objects") {
		t.Error("a change of another object changed the tag")
	}
}

func TestETagWithoutVersion(t *testing.T) {
	w := newWorld(t)
	const path = "/v1/resources/nodes/objects/-/n2"
	w.nodes.replace(t, "101", `{"metadata":{"name":"n2","uid":"n2"},"spec":{"unschedulable":false}}`)
	tag := w.get(t, path).Header().Get("ETag")
	if rec := w.get(t, path, "If-None-Match", tag); rec.Code != 304 {
		t.Errorf("unchanged: %d", rec.Code)
	}
	w.nodes.apply(t, cache.Modified, `{"metadata":{"name":"n2","uid":"n2"},"spec":{"unschedulable":true}}`)
	if rec := w.get(t, path, "If-None-Match", tag); rec.Code != 200 {
		t.Errorf("changed: %d", rec.Code)
	}
}

// A state without data wins over a tag: the client's copy may be long out of
// date.
func TestNoDataBeatsETag(t *testing.T) {
	w := newWorld(t)
	tag := w.get(t, "/v1/resources/pods/objects").Header().Get("ETag")
	w.pods.set(cache.Syncing, "listing")
	wantStatus(t, w.get(t, "/v1/resources/pods/objects", "If-None-Match", tag), 503, metav1.StatusReasonServiceUnavailable, "no data yet: listing")
}

func TestStates(t *testing.T) {
	for state, code := range map[cache.State]int{
		cache.Syncing: 503, cache.Warm: 200, cache.Live: 200, cache.Stale: 200, cache.Forbidden: 503, cache.Failed: 503,
	} {
		w := newWorld(t)
		w.pods.set(state, `it is "so"`)
		w.pods.status.Proof = time.Now().Add(-90 * time.Second)
		for _, path := range []string{
			"/v1/resources/pods/objects", "/v1/resources/pods/objects/a/one", "/v1/resources/pods/indexes",
			"/v1/resources/pods/indexes/node", "/v1/resources/pods/indexes/node/n1",
		} {
			rec := w.get(t, path)
			if rec.Code != code || rec.Header().Get("Informerd-State") != string(state) {
				t.Fatalf("%s, GET %s = %d, state %q", state, path, rec.Code, rec.Header().Get("Informerd-State"))
			}
			if code == 503 {
				wantStatus(t, rec, 503, metav1.StatusReasonServiceUnavailable, string(state))
				if rec.Header().Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
				continue
			}
			warned := rec.Header().Get("Warning") == `110 informerd "pods is `+string(state)+`: it is \"so\""` && rec.Header().Get("Age") == "90"
			if warned == (state == cache.Live) {
				t.Errorf("%s, GET %s: headers %v", state, path, rec.Header())
			}
			if !strings.HasPrefix(rec.Header().Get("Informerd-Age"), "90.") {
				t.Errorf("Informerd-Age = %q", rec.Header().Get("Informerd-Age"))
			}
		}
	}
}

// TestUnknownAge: an age that is not known is not told as a small one, and the
// warning says so. A proof from the future is of a clock that was set since.
func TestUnknownAge(t *testing.T) {
	for name, proof := range map[string]time.Time{"no proof": {}, "from the future": time.Now().Add(24 * time.Hour)} {
		w := newWorld(t)
		w.pods.set(cache.Warm, "resuming")
		w.pods.status.Proof, w.pods.status.SnapshotAt = proof, time.Now()
		for _, path := range []string{"/v1/resources/pods/objects", "/v1/resources/pods/objects/a/one", "/v1/resources/pods", "/api/v1/pods", "/api/v1/namespaces/a/pods/one"} {
			rec := w.get(t, path)
			h := rec.Header()
			if h.Get("Informerd-Age") != "" || h.Get("Age") != "" || h.Get("Warning") != `110 informerd "pods is warm, how old it is is not known: resuming"` {
				t.Errorf("%s, GET %s: %v", name, path, h)
			}
			if strings.Contains(rec.Body.String(), `"age"`) {
				t.Errorf("%s, GET %s: %s", name, path, rec.Body)
			}
		}
	}
}

func TestHead(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{
		"/", "/livez", "/readyz", "/v1/resources", "/v1/resources/pods", "/v1/resources/pods/objects",
		"/v1/resources/pods/objects/a/one", "/v1/resources/pods/indexes", "/v1/resources/pods/indexes/node",
		"/v1/resources/pods/objects?watch=true",
	} {
		rec := w.do(t, http.MethodHead, path)
		if rec.Code != 200 {
			t.Errorf("HEAD %s = %d", path, rec.Code)
		}
		if path != "/" && rec.Body.Len() > 0 { // net/http cuts what ServeFileFS leaves
			t.Errorf("HEAD %s has a body: %s", path, rec.Body)
		}
		if rec.Header().Get("Content-Type") == "" {
			t.Errorf("HEAD %s has no Content-Type", path)
		}
	}
}

func TestGzip(t *testing.T) {
	w := newWorld(t)
	var objects []string
	for i := range 50 {
		objects = append(objects, pod("a", fmt.Sprintf("pod-%d", i), "web", "n1", i+1))
	}
	w.pods.replace(t, "200", objects...)
	const path = "/v1/resources/pods/objects"
	plain := w.get(t, path)
	packed := w.get(t, path, "Accept-Encoding", "gzip")
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() >= plain.Body.Len()/2 {
		t.Fatalf("headers %v, %d bytes of %d", packed.Header(), packed.Body.Len(), plain.Body.Len())
	}
	if packed.Header().Get("ETag") != plain.Header().Get("ETag") {
		t.Error("compression changes the ETag")
	}
	if !strings.Contains(strings.Join(plain.Header().Values("Vary"), ","), "Accept-Encoding") {
		t.Errorf("Vary = %v", plain.Header().Values("Vary"))
	}
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got podList
	decode(t, r, &got)
	if len(got.Items) != 50 {
		t.Errorf("%d items", len(got.Items))
	}
	for _, target := range []string{
		path + "?output=yaml", path + "?output=csv&fields=metadata,spec", path + "?output=ndjson", path + "?output=table",
		"/v1/graph/nodes/-/n1?output=dot", "/api/v1/pods",
	} {
		rec := w.get(t, target, "Accept-Encoding", "gzip", "Accept", "application/yaml, */*")
		if h := rec.Header(); rec.Code != 200 || h.Get("Content-Encoding") != "gzip" {
			t.Errorf("GET %s = %d %v", target, rec.Code, h)
		}
	}
	if rec := w.get(t, path, "Accept-Encoding", "gzip", "If-None-Match", packed.Header().Get("ETag")); rec.Code != 304 || rec.Body.Len() > 0 {
		t.Errorf("code %d with %d bytes", rec.Code, rec.Body.Len())
	}
}

func TestWaitForVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, path := range []string{"/v1/resources/pods/objects", "/v1/resources/pods/objects/a/one", "/v1/resources/pods/indexes/node/n1"} {
			start := time.Now()
			rec := w.get(t, path+"?resourceVersion=150")
			s := wantStatus(t, rec, 504, metav1.StatusReasonTimeout, "Too large resource version: 150, current: 100")
			if s.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge || rec.Header().Get("Retry-After") != "1" {
				t.Errorf("details %+v, headers %v", s.Details, rec.Header())
			}
			if waited := time.Since(start); waited != 3*time.Second {
				t.Errorf("waited %v", waited)
			}
			start = time.Now()
			wantStatus(t, w.get(t, path+"?resourceVersion=150&timeout=500ms"), 504, metav1.StatusReasonTimeout, "")
			if waited := time.Since(start); waited != 500*time.Millisecond {
				t.Errorf("waited %v", waited)
			}
		}
		go func() {
			time.Sleep(2 * time.Second)
			w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n7", 150))
		}()
		var got podList
		w.getJSON(t, "/v1/resources/pods/objects?resourceVersion=150&index=node:n7", &got)
		if got.names() != "one" || got.Metadata.ResourceVersion != "150" {
			t.Errorf("got %q at %s", got.names(), got.Metadata.ResourceVersion)
		}
	})
}

// TestMissingNamespace: of a namespace that may not be read nobody is told that
// it is empty.
func TestMissingNamespace(t *testing.T) {
	w := newWorld(t)
	w.pods.set(cache.Live, "")
	w.pods.status.Missing = []cache.MissingNamespace{{Namespace: "b", State: cache.Forbidden, Reason: "not you"}}
	const objects = "/v1/resources/pods/objects"
	for _, target := range []string{objects + "?namespace=b", objects + "/b/three", objects + "?namespace=b&watch=true"} {
		wantStatus(t, w.get(t, target), 503, metav1.StatusReasonServiceUnavailable, "pods of namespace b is forbidden: not you")
	}
	for target, warned := range map[string]bool{objects: true, objects + "?namespace=[ab]": true, objects + "?namespace=a": false, objects + "/a/one": false} {
		h := w.get(t, target).Header()
		if warning := h.Get("Warning"); strings.Contains(warning, "pods in namespaces b (forbidden)") != warned {
			t.Errorf("GET %s has the warning %q", target, warning)
		}
	}
	w.pods.set(cache.Stale, "down")
	if warnings := w.get(t, objects).Header().Values("Warning"); len(warnings) != 2 || !strings.HasPrefix(warnings[0], "110 ") || !strings.HasPrefix(warnings[1], "299 ") {
		t.Errorf("a stale copy has the warnings %q", warnings)
	}
	if unanswered := w.get(t, "/v1/query?resources=pods").Header().Get("Informerd-Unanswered"); unanswered != "pods of namespaces b" {
		t.Errorf("Informerd-Unanswered is %q", unanswered)
	}
	var item resourceItem
	w.getJSON(t, "/v1/resources/pods", &item)
	if len(item.Missing) != 1 || item.Missing[0] != (missingItem{"b", cache.Forbidden, "not you"}) {
		t.Errorf("missing are %v", item.Missing)
	}
}

// TestGetNotSelected: that an object is not in a copy of some does not mean that
// it does not exist.
func TestGetNotSelected(t *testing.T) {
	w := newWorld(t)
	selected := w.pods.spec
	selected.LabelSelector = "app=web"
	some := newResource(t, selected, cache.Live)
	some.replace(t, "100", pod("a", "one", "web", "n1", 10))
	w.caches.resources = []*fakeResource{some, w.nodes}
	status := wantStatus(t, w.get(t, "/v1/resources/pods/objects/a/two"), 404, metav1.StatusReasonNotFound, `pods "a/two" is not here and may exist`)
	if status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Type != "NotWatched" {
		t.Errorf("details are %+v", status.Details)
	}
	status = wantStatus(t, w.get(t, "/v1/resources/nodes/objects/-/n2"), 404, metav1.StatusReasonNotFound, "not found")
	if status.Details != nil {
		t.Errorf("of one that does not exist the details are %+v", status.Details)
	}
}

// TestHiddenFields: what a rule takes out cannot be selected by. Of several resources
// the others answer.
func TestHiddenFields(t *testing.T) {
	w := newWorld(t)
	rule := w.pods.spec
	rule.Drop = []string{"status"}
	w.caches.resources[2] = newResource(t, rule, cache.Live)
	w.caches.resources[2].replace(t, "100", pod("a", "one", "web", "n1", 10))
	for _, target := range []string{with(podObjects, "fieldSelector", "status.phase=Running"), with(podObjects, "fieldSelector", "status.phase=Running", "watch", "true")} {
		rec := w.get(t, target)
		if body := rec.Body.String(); rec.Code != 400 || !strings.Contains(body, "the rule of pods drops status") {
			t.Errorf("GET %s = %d %s", target, rec.Code, body)
		}
	}
	var got struct {
		Items    []any
		Metadata listMeta
	}
	w.getJSON(t, with("/v1/query", "fieldSelector", "status.phase!=Failed"), &got)
	for _, r := range got.Metadata.Resources {
		if r.Resource == "pods" && (r.Answered || !strings.Contains(r.Reason, "drops status")) || r.Resource == "nodes" && !r.Answered {
			t.Errorf("%+v", r)
		}
	}
	if len(got.Items) != 1 {
		t.Errorf("%d objects, want the node", len(got.Items))
	}
}
