package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

func TestSearch(t *testing.T) {
	w := shop(t)
	var got searchAnswer
	h := w.getJSON(t, "/v1/search?q=shop&limit=3&highlights", &got)
	var items []string
	for _, i := range got.Items {
		items = append(items, fmt.Sprintf("%s %s %s %s %d %v", i.ID, i.Kind, i.Namespace, i.Name, i.Score, i.Matches))
	}
	want := `configmaps/a/shop ConfigMap a shop 1000 [{name shop}]
deployments.apps/a/shop Deployment a shop 1000 [{name shop}]
services/a/shop Service a shop 1000 [{name shop}]`
	if s := strings.Join(items, "\n"); s != want {
		t.Errorf("items:\n%s\nwant:\n%s", s, want)
	}
	if got.Kind != "SearchResultList" || got.Total != 8 || !got.Metadata.Truncated || fmt.Sprint(got.Terms) != "[{any shop}]" {
		t.Errorf("answer = %+v", got)
	}
	if s := fmt.Sprint(got.Facets); s != "{[] [{pods 4} {configmaps 1} {deployments.apps 1} {replicasets.apps 1} {services 1}] [{a 7} {b 1}]}" {
		t.Errorf("facets = %s", s)
	}
	if s := fmt.Sprint(got.Unanswered); s != "[{ events unwatched } { secrets forbidden secrets is forbidden}]" {
		t.Errorf("unanswered = %s", s)
	}
	if rec := w.get(t, "/v1/search?q=shop&limit=3&highlights", "If-None-Match", h.Get("ETag")); rec.Code != 304 {
		t.Errorf("code = %d with the tag of the same answer, want 304", rec.Code)
	}
	w.pods.apply(t, cache.Added, pod("b", "shop", "x", "n1", 300))
	got = searchAnswer{}
	w.getJSON(t, "/v1/search?q=name:shop+kind:pod+ns:b", &got)
	if len(got.Items) != 1 || got.Items[0].ID != "pods/b/shop" || got.Items[0].Matches != nil || got.Metadata.Truncated {
		t.Errorf("answer = %+v", got)
	}
}

func TestComplete(t *testing.T) {
	w := newWorld(t)
	for query, want := range map[string]string{
		"for=resources&prefix=po":                                "pods Pod 3",
		"for=resources&prefix=s":                                 "secrets Secret 0",
		"for=paths&resource=pods&prefix=spec.":                   "spec.containers array 3, spec.nodeName string 3, spec.containers[*] object 3, spec.containers[*].image string 3, spec.containers[*].name string 3; 3 of 3",
		"for=paths&resource=pods&prefix=spec.&limit=1":           "spec.containers array 3; 3 of 3; truncated",
		"for=values&resource=pods&path=spec.nodeName":            "n1  2, n2  1",
		"for=values&resource=pods&path=metadata.labels":          "app  3",
		"for=values&resource=pods&path=metadata.labels.app":      "web  2, db  1",
		"for=values&resource=pods&path=status.phase&prefix=Run":  "Running  3; 3 of 3",
		"for=values&resource=pods&path=spec.containers[*].image": "registry.example/shop/web:1.2  3",
	} {
		var got completionList
		w.getJSON(t, "/v1/complete?"+query, &got)
		var items []string
		for _, i := range got.Items {
			items = append(items, fmt.Sprintf("%s %s %d", i.Value, i.Kind, i.Objects))
		}
		s := strings.Join(items, ", ")
		if got.Sampled != nil {
			s += fmt.Sprintf("; %d of %d", got.Sampled.Objects, got.Sampled.Of)
		}
		if got.Metadata.Truncated {
			s += "; truncated"
		}
		if s != want || got.Kind != "CompletionList" {
			t.Errorf("%s: %s\nwant %s", query, s, want)
		}
	}
}

func TestSearchBadInput(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		path           string
		code           int
		field, message string
	}{
		{"/v1/search", 400, "q", "no word to look for"},
		{"/v1/search?q=", 400, "q", "column 1"},
		{"/v1/search?q=a+-", 400, "q", "column 3"},
		{"/v1/search?q=kind:pots", 400, "q", "no kind is called"},
		{"/v1/search?q=a&limit=0", 400, "limit", "from 1 to 1000"},
		{"/v1/search?q=a&highlights=x", 400, "highlights", "neither"},
		{"/v1/search?q=a&cluster=west", 400, "cluster", "west"},
		{"/v1/search?query=a", 400, "query", "known here: cluster, fieldSelector, filter, highlights, labelSelector, limit, namespace, pretty, q"},
		{"/v1/complete", 400, "for", "resources, paths, values"},
		{"/v1/complete?for=names", 400, "for", "resources, paths, values"},
		{"/v1/complete?for=paths", 400, "resource", "required"},
		{"/v1/complete?for=values&resource=pods", 400, "path", "required"},
		{"/v1/complete?for=values&resource=pods&path=a..b", 400, "path", "column"},
		{"/v1/complete?for=resources&path=a", 400, "path", "not possible"},
		{"/v1/complete?for=paths&resource=pots", 400, "resource", "did you mean pods"},
		{"/v1/complete?for=paths&resource=events", 404, "NotWatched", "not watched"},
		{"/v1/complete?for=paths&resource=secrets", 503, "", "secrets is forbidden"},
		{"/v1/complete?for=paths&resource=pods&limit=0", 400, "limit", "from 1"},
	} {
		rec := w.get(t, c.path)
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.message) || c.code == 400 && !strings.Contains(rec.Body.String(), `"field":"`+c.field+`"`) {
			t.Errorf("GET %s = %d %s, want %d about %s with %q", c.path, rec.Code, rec.Body, c.code, c.field, c.message)
		}
	}
}

// TestSearchWithin: a search among what a query selects.
func TestSearchWithin(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		parameters []string
		want       string
	}{
		{nil, "pods/a/one pods/b/three"},
		{[]string{"namespace", "a"}, "pods/a/one"},
		{[]string{"namespace", "a", "namespace", "b*"}, "pods/a/one pods/b/three"},
		{[]string{"labelSelector", "app=db"}, ""},
		{[]string{"fieldSelector", "metadata.name!=one"}, "pods/b/three"},
		{[]string{"filter", `object.metadata.name.startsWith("o") && object.spec.nodeName == "n1"`}, "pods/a/one"},
	} {
		var got searchAnswer
		w.getJSON(t, with("/v1/search", append(c.parameters, "q", "label:app=web")...), &got)
		var ids []string
		for _, i := range got.Items {
			ids = append(ids, i.ID)
		}
		if strings.Join(ids, " ") != c.want || got.Total != len(ids) {
			t.Errorf("%v: %v, total %d, want %s", c.parameters, ids, got.Total, c.want)
		}
	}
	var got searchAnswer
	w.getJSON(t, with("/v1/search", "q", "label:app=web", "filter", "object.spec.priority > 1"), &got)
	if got.Total != 0 || got.Metadata.FilterErrors == nil || got.Metadata.FilterErrors.Count == 0 {
		t.Errorf("a filter without a value: %+v", got)
	}
	for _, bad := range [][]string{{"filter", "object."}, {"labelSelector", "a in"}, {"fieldSelector", "a..b=c"}, {"namespace", "["}} {
		s := wantStatus(t, w.get(t, with("/v1/search", append(bad, "q", "web")...)), 400, "BadRequest", "")
		if s.Details.Causes[0].Field != bad[0] {
			t.Errorf("%v: field %s", bad, s.Details.Causes[0].Field)
		}
	}
}
