package server

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// shop is a world with a Deployment, what it made, and what is around it.
func shop(t testing.TB) *world {
	w := newWorld(t)
	add := func(s cache.Spec, objects ...string) {
		r := newResource(t, s, cache.Live)
		r.replace(t, "200", objects...)
		w.caches.resources = append(w.caches.resources, r)
	}
	const owner = `,"ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":%q}]`
	meta := func(name, more string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"a","uid":%q,"resourceVersion":"7"%s}`, name, "uid-"+name, more)
	}
	add(spec("apps", "v1", "deployments", "Deployment", true), meta("shop", "")+"}")
	add(spec("apps", "v1", "replicasets", "ReplicaSet", true), meta("shop-1", fmt.Sprintf(owner, "Deployment", "shop", "uid-shop"))+"}")
	add(spec("", "v1", "services", "Service", true),
		meta("shop", "")+`,"spec":{"selector":{"app":"shop"}}}`, meta("typo", "")+`,"spec":{"selector":{"app":"shpo"}}}`)
	add(spec("", "v1", "configmaps", "ConfigMap", true), configMap("shop", 7, 16))
	w.pods.apply(t, cache.Added, meta("shop-1-x", `,"labels":{"app":"shop"}`+fmt.Sprintf(owner, "ReplicaSet", "shop-1", "uid-shop-1"))+
		`,"spec":{"nodeName":"n1","volumes":[{"configMap":{"name":"shop"}},{"configMap":{"name":"gone"}},{"secret":{"secretName":"s"}}]}}`)
	return w
}

const shopGraph = "/v1/graph/deployments.apps/a/shop"

func TestGraph(t *testing.T) {
	w := shop(t)
	var got graphAnswer
	h := w.getJSON(t, shopGraph, &got)
	var nodes, edges []string
	for _, n := range got.Nodes {
		nodes = append(nodes, fmt.Sprintf("%d %s %s missing=%v unknown=%v hub=%v", n.Depth, n.ID, n.State, n.Missing, n.Unknown, n.Hub))
	}
	for _, e := range got.Edges {
		edges = append(edges, e.From+" "+e.Edge+" "+e.To+" by "+e.Why)
	}
	wantNodes := []string{
		"0 deployments.apps/a/shop live missing=false unknown=false hub=false",
		"1 replicasets.apps/a/shop-1 live missing=false unknown=false hub=false",
		"2 pods/a/shop-1-x live missing=false unknown=false hub=false",
		"3 configmaps/a/gone live missing=true unknown=false hub=false",
		"3 configmaps/a/shop live missing=false unknown=false hub=false",
		"3 nodes/-/n1 live missing=false unknown=false hub=true",
		"3 secrets/a/s forbidden missing=false unknown=true hub=false",
		"3 services/a/shop live missing=false unknown=false hub=false",
	}
	wantEdges := []string{
		"deployments.apps/a/shop owns replicasets.apps/a/shop-1 by metadata.ownerReferences[*]",
		"replicasets.apps/a/shop-1 owns pods/a/shop-1-x by metadata.ownerReferences[*]",
		"pods/a/shop-1-x mounts configmaps/a/gone by spec.volumes[*].configMap",
		"pods/a/shop-1-x mounts configmaps/a/shop by spec.volumes[*].configMap",
		"pods/a/shop-1-x runsOn nodes/-/n1 by spec.nodeName",
		"pods/a/shop-1-x mounts secrets/a/s by spec.volumes[*].secret",
		"services/a/shop selects pods/a/shop-1-x by spec.selector",
	}
	if !slices.Equal(nodes, wantNodes) {
		t.Errorf("nodes:\n%s\nwant:\n%s", strings.Join(nodes, "\n"), strings.Join(wantNodes, "\n"))
	}
	if !slices.Equal(edges, wantEdges) {
		t.Errorf("edges:\n%s\nwant:\n%s", strings.Join(edges, "\n"), strings.Join(wantEdges, "\n"))
	}
	want := []unansweredItem{{Resource: "events", State: cache.Unwatched}, {Resource: "secrets", State: cache.Forbidden, Reason: "secrets is forbidden"}}
	if got.Kind != "Graph" || got.Root != "deployments.apps/a/shop" || got.Truncated || !slices.Equal(got.Unanswered, want) {
		t.Errorf("answer = %+v", got)
	}
	if h.Get("Informerd-State") != "live" {
		t.Errorf("headers = %v", h)
	}
	if rec := w.get(t, shopGraph, "If-None-Match", h.Get("ETag")); rec.Code != 304 {
		t.Errorf("code = %d with the tag of the same answer, want 304", rec.Code)
	}
	w.pods.apply(t, cache.Deleted, `{"metadata":{"name":"shop-1-x","namespace":"a","uid":"uid-shop-1-x","resourceVersion":"300"}}`)
	if rec := w.get(t, shopGraph, "If-None-Match", h.Get("ETag")); rec.Code != 200 {
		t.Errorf("code = %d after a change, want 200", rec.Code)
	}
}

func TestGraphRestricted(t *testing.T) {
	w := shop(t)
	for query, want := range map[string]string{
		"depth=1":                     "deployments.apps/a/shop replicasets.apps/a/shop-1",
		"direction=in":                "deployments.apps/a/shop",
		"kinds=replicasets.apps,pods": "deployments.apps/a/shop replicasets.apps/a/shop-1 pods/a/shop-1-x",
		"edges=owns":                  "deployments.apps/a/shop replicasets.apps/a/shop-1 pods/a/shop-1-x",
		"limit=2":                     "deployments.apps/a/shop replicasets.apps/a/shop-1",
		"depth=5&through=nodes&edges=owns,runsOn": "deployments.apps/a/shop replicasets.apps/a/shop-1 pods/a/shop-1-x nodes/-/n1 pods/a/one pods/b/three",
	} {
		var got graphAnswer
		w.getJSON(t, shopGraph+"?"+query, &got)
		var ids []string
		for _, n := range got.Nodes {
			ids = append(ids, n.ID)
		}
		if s := strings.Join(ids, " "); s != want {
			t.Errorf("%s: %s, want %s", query, s, want)
		}
		if got.Truncated != strings.Contains(query, "limit") {
			t.Errorf("%s: truncated = %v", query, got.Truncated)
		}
	}
}

func TestGraphForms(t *testing.T) {
	w := shop(t)
	var tree struct {
		Kind string
		Root *treeNode
	}
	w.getJSON(t, shopGraph+"?view=tree", &tree)
	var lines []string
	var print func(n *treeNode, indent string)
	print = func(n *treeNode, indent string) {
		for _, c := range n.Children {
			line := indent + c.Direction + " " + c.Edge + " " + c.Seen
			if c.Node != nil {
				line += c.Node.ID
			}
			lines = append(lines, line)
			if c.Node != nil {
				print(c.Node, indent+" ")
			}
		}
	}
	print(tree.Root, "")
	want := []string{"out owns replicasets.apps/a/shop-1", " out owns pods/a/shop-1-x", "  out mounts configmaps/a/gone", "  out mounts configmaps/a/shop",
		"  out runsOn nodes/-/n1", "  out mounts secrets/a/s", "  in selects services/a/shop"}
	if tree.Kind != "GraphTree" || !slices.Equal(lines, want) {
		t.Errorf("tree:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	rec := w.get(t, shopGraph+"?output=dot")
	if ct := rec.Header().Get("Content-Type"); rec.Code != 200 || ct != "text/vnd.graphviz; charset=utf-8" {
		t.Fatalf("code = %d, Content-Type = %s", rec.Code, ct)
	}
	for _, line := range []string{
		`"deployments.apps/a/shop" [label="Deployment\na/shop", style="rounded,bold"];`,
		`"configmaps/a/gone" [label="ConfigMap\na/gone", style="rounded,dashed", color=red];`,
		`"services/a/shop" -> "pods/a/shop-1-x" [label="selects", tooltip="spec.selector"];`,
		`// secrets is forbidden`,
	} {
		if !strings.Contains(rec.Body.String(), line) {
			t.Errorf("no line %s in\n%s", line, rec.Body)
		}
	}
	if rec := w.do(t, "HEAD", shopGraph+"?output=dot"); rec.Code != 200 || rec.Body.Len() > 0 {
		t.Errorf("HEAD = %d with %d bytes", rec.Code, rec.Body.Len())
	}
	if rec := w.get(t, shopGraph+"?output=dot", "Accept", "application/json"); rec.Code != 406 {
		t.Errorf("code = %d for a client that wants JSON, want 406", rec.Code)
	}
}

func TestDangling(t *testing.T) {
	w := shop(t)
	for query, want := range map[string][]string{
		"":                     {"pods/a/shop-1-x mounts configmaps/a/gone", "pods/a/two runsOn nodes/-/n2", "services/a/typo selects nothing by app=shpo"},
		"?kinds=services":      {"services/a/typo selects nothing by app=shpo"},
		"?kinds=configmaps":    {"pods/a/shop-1-x mounts configmaps/a/gone"},
		"?namespace=b":         nil,
		"?namespace=a&limit=1": {"pods/a/shop-1-x mounts configmaps/a/gone"},
	} {
		var got danglingList
		w.getJSON(t, "/v1/graph/dangling"+query, &got)
		var items []string
		for _, i := range got.Items {
			item := i.From.ID + " " + i.Edge
			if i.To != nil {
				item += " " + i.To.ID
			} else {
				item += " nothing by " + i.Selector
			}
			items = append(items, item)
		}
		if !slices.Equal(items, want) || got.Metadata.Truncated != strings.Contains(query, "limit") || got.Kind != "DanglingList" {
			t.Errorf("%q: %v (%+v), want %v", query, items, got.Metadata, want)
		}
	}
}

// TestDanglingUnstored: who keeps no answer gets the same one while it is made, without a tag of
// it; who names a tag, and who wants it indented, does not.
func TestDanglingUnstored(t *testing.T) {
	w := shop(t)
	const path = "/v1/graph/dangling"
	kept := w.get(t, path)
	tag := kept.Header().Get("ETag")
	for _, value := range []string{"no-store", "max-age=0, No-Store"} {
		rec := w.get(t, path, "Cache-Control", value)
		if rec.Code != 200 || rec.Body.String() != kept.Body.String() || rec.Header().Get("ETag") != "" || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d, %v, %s", value, rec.Code, rec.Header(), rec.Body)
		}
	}
	if rec := w.get(t, path, "Cache-Control", "no-store", "If-None-Match", tag); rec.Code != 304 || tag == "" {
		t.Errorf("with its tag %q it is %d", tag, rec.Code)
	}
	if rec := w.get(t, path+"?pretty", "Cache-Control", "no-store"); rec.Code != 200 || !strings.Contains(rec.Body.String(), "\n  \"items\"") {
		t.Errorf("indented it is %d, %s", rec.Code, rec.Body)
	}
	for _, value := range []string{"no-cache", "no-stores"} {
		if rec := w.get(t, path, "Cache-Control", value); rec.Header().Get("ETag") != tag {
			t.Errorf("%s: the tag is %q, want %q", value, rec.Header().Get("ETag"), tag)
		}
	}
	if rec := w.do(t, "HEAD", path, "Cache-Control", "no-store"); rec.Code != 200 || rec.Body.Len() > 0 {
		t.Errorf("HEAD = %d with %d bytes", rec.Code, rec.Body.Len())
	}
}

func TestGraphBadInput(t *testing.T) {
	w := shop(t)
	for _, c := range []struct {
		path           string
		code           int
		field, message string
	}{
		{shopGraph + "?depth=0", 400, "depth", "from 1 to 5"},
		{shopGraph + "?depth=6", 400, "depth", "from 1 to 5"},
		{shopGraph + "?depth=", 400, "depth", "from 1 to 5"},
		{shopGraph + "?limit=0", 400, "limit", "from 1 to 5000"},
		{shopGraph + "?direction=up", 400, "direction", "both, in, out"},
		{shopGraph + "?kinds=pots", 400, "kinds", "did you mean pods"},
		{shopGraph + "?kinds=pods,", 400, "kinds", "empty part"},
		{shopGraph + "?through=pots", 400, "through", "did you mean pods"},
		{shopGraph + "?edges=owned", 400, "edges", "owns"},
		{shopGraph + "?view=list", 400, "view", "graph, tree"},
		{shopGraph + "?output=svg", 400, "output", "json, dot"},
		{shopGraph + "?output=dot&view=tree", 400, "view", "output=dot"},
		{shopGraph + "?output=dot&pretty", 400, "pretty", "output=dot"},
		{shopGraph + "?pretty=x", 400, "pretty", "neither"},
		{shopGraph + "?edge=owns", 400, "edge", "did you mean edges?"},
		{"/v1/graph/deployments.apps/a/nobody", 404, "", `\"a/nobody\" not found`},
		{"/v1/graph/deployments.apps/-/shop", 400, "path", "namespaced"},
		{"/v1/graph/pots/a/shop", 404, "", "did you mean pods"},
		{"/v1/graph/events/a/x", 404, "NotWatched", "not watched"},
		{"/v1/graph/secrets/a/s", 503, "", "secrets is forbidden"},
		{"/v1/graph/dangling?kinds=pots", 400, "kinds", "did you mean pods"},
		{"/v1/graph/dangling?namespace=", 400, "namespace", "empty"},
		{"/v1/graph/dangling?namespace=[", 400, "namespace", "not a glob"},
		{"/v1/graph/dangling?limit=x", 400, "limit", "not a number"},
		{"/v1/graph/dangling?cluster=west", 400, "cluster", "west"},
		{"/v1/graph/dangling?pretty=x", 400, "pretty", "neither"},
	} {
		rec := w.get(t, c.path)
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.message) || c.code == 400 && !strings.Contains(rec.Body.String(), `"field":"`+c.field+`"`) {
			t.Errorf("GET %s = %d %s, want %d about %s with %q", c.path, rec.Code, rec.Body, c.code, c.field, c.message)
		}
	}
	if rec := w.get(t, "/v1/graph/configmaps/a/gone"); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"missing":true`) {
		t.Errorf("what is named and missing = %d %s", rec.Code, rec.Body)
	}
}

func TestRelationMetrics(t *testing.T) {
	w := shop(t)
	if values := scrape(t, w); values["informerd_graph_nodes{}"] != 0 || values["informerd_search_texts{}"] != 0 {
		t.Error("something is held before anybody asked")
	}
	w.get(t, shopGraph)
	w.get(t, "/v1/search?q=shop")
	values := scrape(t, w)
	for name, want := range map[string]float64{
		"informerd_graph_nodes{}": 15, "informerd_graph_edges{}": 9, "informerd_search_objects{}": 10,
		"informerd_graph_unread_total{}": 0, "informerd_search_unread_total{}": 0,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if values["informerd_search_texts{}"] == 0 {
		t.Error("informerd_search_texts is 0")
	}
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range values {
		name, _, _ = strings.Cut(name, "{")
		if strings.HasPrefix(name, "informerd_graph") && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/api.md does not know %s", name)
		}
	}
}
