package server

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestGroupByCluster: the cluster is a value like any other where objects are counted,
// whatever else they are counted by and however that is read.
func TestGroupByCluster(t *testing.T) {
	for _, c := range []struct {
		parameters []string
		want       string
	}{
		{[]string{"groupBy", "cluster"}, "cluster=east:2 cluster=west:2"},
		{[]string{"groupBy", "cluster", "cluster", "west"}, "cluster=west:2"},
		{[]string{"groupBy", "cluster,kind"}, "cluster=east,kind=Pod:2 cluster=west,kind=ConfigMap:1 cluster=west,kind=Pod:1"},
		{[]string{"groupBy", "kind,cluster", "resources", "pods"}, "cluster=east,kind=Pod:2 cluster=west,kind=Pod:1"},
		{[]string{"groupBy", "metadata.namespace,cluster", "resources", "pods"}, "cluster=east,metadata.namespace=a:1 cluster=west,metadata.namespace=a:1 cluster=east,metadata.namespace=b:1"},
		{[]string{"groupBy", "cluster,spec.nodeName", "resources", "pods"}, "cluster=east,spec.nodeName=n1:2 cluster=west,spec.nodeName=n9:1"},
		{[]string{"groupBy", "cluster,health()", "resources", "pods"}, "cluster=east,health()=progressing:2 cluster=west,health()=progressing:1"},
	} {
		w := twoClusters(t)
		for range 6 { // what is asked again and again is answered from columns in the end
			var got groupsOf
			w.getJSON(t, with("/v1/query", c.parameters...), &got)
			if s := got.String(); s != c.want {
				t.Errorf("%v: %s, want %s", c.parameters, s, c.want)
			}
		}
	}
	w := twoClusters(t)
	var facets struct {
		Facets []facet
	}
	w.getJSON(t, "/v1/query?resources=pods&facets=cluster,metadata.namespace&limit=1", &facets)
	if s := fmt.Sprint(facets.Facets); s != "[{cluster [{east 2} {west 1}] false} {metadata.namespace [{a 2} {b 1}] false}]" {
		t.Errorf("facets are %s", s)
	}
	s := open(t, serve(t, w)+with("/v1/query", "watch", "true", "resources", "pods", "groupBy", "cluster"))
	if e := s.next(); !strings.Contains(e.raw, `"group":{"cluster":"east"},"values":{"count()":2}`) {
		t.Errorf("a stream of groups begins with %s", e.raw)
	}
}

// continueToken differs from answer to answer.
var continueToken = regexp.MustCompile(`"continue":"[^"]*"`)

type groupsOf struct {
	Items []struct {
		Group  map[string]any
		Values map[string]int
	}
}

func (g groupsOf) String() string {
	var all []string
	for _, i := range g.Items {
		var keys []string
		for path, v := range i.Group {
			keys = append(keys, fmt.Sprintf("%s=%v", path, v))
		}
		slices.Sort(keys)
		all = append(all, fmt.Sprintf("%s:%d", strings.Join(keys, ","), i.Values["count()"]))
	}
	return strings.Join(all, " ")
}

// TestObjectsOfClusters: the list of a resource is of all clusters if none is named, and
// then it is what /v1/query answers.
func TestObjectsOfClusters(t *testing.T) {
	w := twoClusters(t)
	if err := w.pods.store.SetIndexes(map[string]string{"node": "spec.nodeName"}); err != nil {
		t.Fatal(err)
	}
	for path, same := range map[string]string{
		"/v1/resources/pods/objects":                              "/v1/query?resources=pods",
		"/v1/resources/pods/objects?cluster=west&cluster=east":    "/v1/query?resources=pods&cluster=west&cluster=east",
		"/v1/resources/pods/objects?groupBy=cluster":              "/v1/query?resources=pods&groupBy=cluster",
		"/v1/resources/configmaps/objects":                        "/v1/query?resources=configmaps",
		"/v1/resources/pods/objects?sort=-metadata.name&limit=2":  "/v1/query?resources=pods&sort=-metadata.name&limit=2",
		"/v1/resources/pods/indexes/node/n1?fields=metadata.name": "/v1/query?resources=pods&index=node:n1&fields=metadata.name",
	} {
		got, want := w.get(t, path), w.get(t, same)
		uncut := func(s string) string { return continueToken.ReplaceAllString(s, "") }
		if got.Code != 200 || uncut(got.Body.String()) != uncut(want.Body.String()) {
			t.Errorf("%s: %d %s\n%s: %d %s", path, got.Code, got.Body, same, want.Code, want.Body)
		}
	}
	if rec := w.get(t, "/v1/resources/pods/objects?cluster=west"); !strings.Contains(rec.Body.String(), `"kind":"PodList"`) {
		t.Errorf("of one cluster: %s", rec.Body)
	}
	wantStatus(t, w.get(t, "/v1/resources/pods/objects?resourceVersion=1"), http.StatusBadRequest, "BadRequest", "name the cluster")
	wantStatus(t, w.get(t, "/v1/resources/nodes/objects"), http.StatusNotFound, "NotFound", "nodes")
	wantStatus(t, w.get(t, "/v1/resources/p*/objects"), http.StatusNotFound, "NotFound", "no resource is called p*")
	wantStatus(t, w.get(t, "/v1/resources/pods/objects?cluster=north&cluster=east"), http.StatusBadRequest, "BadRequest", "there is: east, west")
	s := open(t, serve(t, w)+"/v1/resources/pods/objects?watch=true")
	if e := s.next(); e.data.Resource != "east/pods" {
		t.Errorf("a stream of all clusters begins with %s", e.raw)
	}
}

// TestSearchClusters: words are searched in all clusters, and the answer says where.
func TestSearchClusters(t *testing.T) {
	w := twoClusters(t)
	var got searchAnswer
	w.getJSON(t, "/v1/search?q=o&limit=3", &got)
	var items []string
	for _, i := range got.Items {
		items = append(items, i.Cluster+" "+i.ID)
	}
	if s := strings.Join(items, ", "); s != "east pods/a/one, west pods/a/one" {
		t.Errorf("found %s", s)
	}
	if s := fmt.Sprint(got.Facets.Cluster, got.Facets.Kind); s != "[{east 1} {west 1}] [{pods 2}]" || got.Total != 2 {
		t.Errorf("total %d, facets %s", got.Total, s)
	}
	got = searchAnswer{}
	if w.getJSON(t, "/v1/search?q=o&cluster=east", &got); len(got.Items) != 1 || got.Items[0].Cluster != "" || got.Facets.Cluster != nil {
		t.Errorf("of one cluster: %+v", got)
	}
	// A cluster that has told nothing yet is named, and the others answer.
	w.caches.know(cache.ClusterStatus{Name: "north", Err: "connection refused"})
	got = searchAnswer{}
	w.getJSON(t, "/v1/search?q=o", &got)
	if got.Total != 2 || len(got.Unanswered) != 1 || got.Unanswered[0].Cluster != "north" || got.Unanswered[0].Resource != "*" {
		t.Errorf("with one that does not answer: %+v", got)
	}
	if rec := w.get(t, "/v1/search?q=o&cluster=north"); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("of that one alone: %d %s", rec.Code, rec.Body)
	}
}

// TestCompleteClusters: proposals are of all clusters, those of several once.
func TestCompleteClusters(t *testing.T) {
	w := twoClusters(t)
	for query, want := range map[string]string{
		"for=values&resource=pods&path=metadata.namespace":              "a 2, b 1",
		"for=values&resource=pods&path=metadata.namespace&cluster=west": "a 1",
		"for=values&resource=configmaps&path=metadata.name":             "two 1",
	} {
		var got completionList
		w.getJSON(t, "/v1/complete?"+query, &got)
		var items []string
		for _, i := range got.Items {
			items = append(items, fmt.Sprint(i.Value, " ", i.Objects))
		}
		if s := strings.Join(items, ", "); s != want {
			t.Errorf("%s: %s, want %s", query, s, want)
		}
	}
	var got completionList
	w.getJSON(t, "/v1/complete?for=resources", &got)
	if len(got.Items) != 2 {
		t.Errorf("resources: %+v", got.Items)
	}
	wantStatus(t, w.get(t, "/v1/complete?for=values&resource=nodes&path=metadata.name"), http.StatusBadRequest, "BadRequest", "nodes")
}

// TestDarkCluster: a cluster of which nothing is known holds up no list of the others, and
// is named. Nor does it keep a stream from going on with one that was replaced.
func TestDarkCluster(t *testing.T) {
	w := twoClusters(t)
	url := serve(t, w)
	s := open(t, url+"/v1/resources/pods/objects?watch=true")
	for range 3 {
		s.next()
	}
	s.want("BOOKMARK ")
	w.caches.know(cache.ClusterStatus{Name: "north", Err: "connection refused"})
	for _, path := range []string{"/v1/resources/pods/objects", "/v1/query?resources=pods", "/v1/query?resources=pods,configmaps", "/v1/query?resources=po*"} {
		rec := w.get(t, path)
		if rec.Code != 200 || !strings.Contains(rec.Header().Get("Informerd-Unanswered"), "north/") || !strings.Contains(rec.Body.String(), `"cluster":"north"`) {
			t.Errorf("%s: %d %v %s", path, rec.Code, rec.Header(), rec.Body)
		}
	}
	wantStatus(t, w.get(t, "/v1/resources/pods/objects?cluster=north&cluster=north"), http.StatusServiceUnavailable, "ServiceUnavailable", "north")
	wantStatus(t, w.get(t, "/v1/complete?for=values&resource=nodes&path=metadata.name"), http.StatusServiceUnavailable, "ServiceUnavailable", "north")
	w.pods.apply(t, cache.Added, pod("a", "four", "web", "n1", 400))
	if e := s.next(); !strings.Contains(e.raw, "four") {
		t.Errorf("the stream goes on with %s", e.raw)
	}
}

// TestClusterOfItems: each item says which cluster it is of where several were asked, also
// if only one of them has any.
func TestClusterOfItems(t *testing.T) {
	w := twoClusters(t)
	for path, want := range map[string]bool{
		"/v1/resources/configmaps/objects":              true,
		"/v1/query?resources=configmaps":                true,
		"/v1/query?resources=configmaps&cluster=west":   false,
		"/v1/resources/configmaps/objects?cluster=west": false,
	} {
		if rec := w.get(t, path); rec.Code != 200 || strings.Contains(rec.Body.String(), `"items":[{"cluster":"west"`) != want {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}
