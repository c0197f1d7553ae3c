package kubeapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestDocumentsFollowResources: as soon as a definition came, changed or went,
// what the API server said before is asked for again, until the API server says
// something else and beyond: it may be behind what is known here.
func TestDocumentsFollowResources(t *testing.T) {
	w := newWorld(t)
	w.modes.Passthrough = PassAll
	says := func(tag string) {
		w.upstream.set(func(r *http.Request) *http.Response {
			if r.Header.Get("If-None-Match") == `"`+tag+`"` {
				return jsonResponse(304, ``, "ETag", `"`+tag+`"`)
			}
			return jsonResponse(200, `{"says":"`+tag+`"}`, "ETag", `"`+tag+`"`)
		})
	}
	want := func(when, tag string) {
		t.Helper()
		if rec := w.get("/openapi/v3"); rec.Code != 200 || rec.Body.String() != `{"says":"`+tag+`"}` {
			t.Errorf("%s: %d %s, want %s", when, rec.Code, rec.Body, tag)
		}
	}
	boats := newResource(t, "sea.example.com", "v1", "boats", "Boat", true)
	boats.spec.CRDUID, boats.spec.CRDGeneration = "boats", 1
	pods := w.resources
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"created", func() { w.resources = append(pods[:len(pods):len(pods)], boats) }},
		{"changed", func() { boats.spec.CRDGeneration++ }},
		{"made anew", func() { boats.spec.CRDUID = "other" }},
		{"deleted", func() { w.resources = pods }},
	} {
		w.editions = editions{} // as if nothing had changed for long
		says("before " + change.what)
		w.documents = library{}
		want("at first", "before "+change.what)
		says("since " + change.what)
		want("while nothing changes", "before "+change.what)
		says("before " + change.what)
		change.do()
		want("while the API server is behind", "before "+change.what)
		says("since " + change.what)
		want("when "+change.what, "since "+change.what)
	}
}

// TestEditions: for how long documents are not trusted after a change.
func TestEditions(t *testing.T) {
	var e editions
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for _, step := range []struct {
		edition      uint64
		now, fetched int
		want         bool
	}{
		{1, 0, -5, false}, // from an earlier run
		{1, 1, 1, true},
		{1, 29, 1, true},
		{1, 31, 1, false},
		{1, 32, 31, true},
		{1, 32, 40, false}, // by a clock that was wrong
		{2, 35, 31, false}, // changed
		{2, 36, 36, false}, // the API server may be behind
		{2, 64, 60, false},
		{2, 66, 60, true},
		{1, 67, 66, false}, // changed back
	} {
		if got := e.serves("a", step.edition, at(step.now)).trusts(at(step.fetched), at(step.now)); got != step.want {
			t.Errorf("%+v: trusted is %v", step, got)
		}
		if other := e.serves("b", 7, start); !other.trusts(at(1), at(2)) {
			t.Error("another cluster's documents are not trusted")
		}
	}
}

// TestEdition: an edition is that of one cluster, in whatever order its resources
// are told.
func TestEdition(t *testing.T) {
	a, b, other := newResource(t, "", "v1", "a", "A", true), newResource(t, "", "v1", "b", "B", true), newResource(t, "", "v1", "c", "C", true)
	other.spec.Resource = cache.Resource{Cluster: "other", GVR: other.spec.GVR}
	one := edition([]Resource{a, b}, "default")
	if edition([]Resource{b, other, a}, "default") != one {
		t.Error("order or another cluster counts")
	}
	if edition([]Resource{a}, "default") == one || edition(nil, "default") == one {
		t.Error("what is missing does not count")
	}
}
