package server

import (
	"strings"
	"testing"

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

// A resource that can be read only later joins; one that stops leaves.
func TestWatchManyKindsJoinAndLeave(t *testing.T) {
	w := newWorld(t)
	s := open(t, serve(t, w)+with("/v1/query", "watch", "true", "resources", "nodes,pods"))
	s.want("ADDED n1", "ADDED one", "ADDED two", "ADDED three", "BOOKMARK ")
	w.nodes.store.Close()
	if e := s.want("RESYNC "); !strings.Contains(e.raw, `"resource":"nodes"`) {
		t.Errorf("resync %s", e.raw)
	}
	if e := s.want("STATE live"); !strings.Contains(e.raw, `"answered":false`) {
		t.Errorf("state %s", e.raw)
	}
	if e := s.want("BOOKMARK "); e.id != "pods=100" {
		t.Errorf("id %s", e.id)
	}
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
