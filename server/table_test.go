package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
)

// printing makes the API server one that prints pods, with a column for wide
// tables, and no nodes.
func printing(o *Options) {
	up := &fakeUpstream{}
	var rows []string
	for _, p := range [][3]string{{"a", "one", "10"}, {"a", "two", "20"}, {"b", "three", "30"}} {
		row := fmt.Sprintf(`{"cells":[%q,"Running\u001b[31m",3,"wide","9y"],"object":{"metadata":{"namespace":%q,"name":%q,"uid":"uid-%s-%s","resourceVersion":%q}}}`,
			p[1], p[0], p[1], p[0], p[1], p[2])
		rows = append(rows, row)
		up.set("/api/v1/namespaces/"+p[0]+"/pods/"+p[1], printedTable(row))
	}
	up.set("/api/v1/pods", printedTable(rows...))
	o.Upstream = func(string) kubeapi.Upstream { return up }
}

func printedTable(rows ...string) string {
	return `{"kind":"Table","columnDefinitions":[{"name":"Name","type":"string"},{"name":"Status","type":"string"},{"name":"Restarts","type":"integer"},
		{"name":"Wide","type":"string","priority":1},{"name":"Age","type":"string"}],"rows":[` + strings.Join(rows, ",") + `]}`
}

type tableAnswer struct {
	Kind     string
	Metadata listMeta
	Columns  []tableColumns
	Items    []struct {
		Cluster, Resource string
		Cells             []any
		Object            struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
			Spec     map[string]any
		}
	}
}

func (a tableAnswer) rows() string {
	var all []string
	for _, i := range a.Items {
		all = append(all, fmt.Sprint(append([]any{i.Resource, i.Object.Metadata.Namespace}, i.Cells...)...))
	}
	return strings.ReplaceAll(strings.Join(all, "; "), "\x1b[31m", "")
}

// TestViewTable: the columns are the API server's, whatever the order and the
// page; what it does not print has a name and an age.
func TestViewTable(t *testing.T) {
	w := newWorld(t, printing)
	var got tableAnswer
	h := w.getJSON(t, with(podObjects, "view", "table", "sort", "-metadata.name", "limit", "2"), &got)
	if got.Kind != "Table" || len(got.Columns) != 1 || got.Columns[0].Resource != "pods" || !got.Columns[0].Namespaced || got.Columns[0].Columns[3].Priority != 1 ||
		got.Items[0].Object.Kind != "PartialObjectMetadata" || got.Items[0].Object.Spec != nil || got.Metadata.Continue == "" {
		t.Errorf("%+v", got)
	}
	if rows := got.rows(); !strings.HasPrefix(rows, "podsatwoRunning3wide") || !strings.Contains(rows, "; podsbthreeRunning3wide") || strings.Contains(rows, "9y") {
		t.Errorf("rows %q", rows)
	}
	if h.Get("ETag") != "" {
		t.Errorf("a table, whose ages grow, has the tag %s", h.Get("ETag"))
	}
	var rest tableAnswer
	w.getJSON(t, with(podObjects, "view", "table", "sort", "-metadata.name", "limit", "2", "continue", got.Metadata.Continue), &rest)
	if len(rest.Items) != 1 || rest.Items[0].Object.Metadata.Name != "one" {
		t.Errorf("second page: %+v", rest)
	}

	var kinds tableAnswer
	w.getJSON(t, with("/v1/query", "resources", "nodes,pods", "view", "table", "sort", "metadata.name", "limit", "2"), &kinds)
	if len(kinds.Columns) != 2 || len(kinds.Columns[0].Columns) != 2 || kinds.Columns[0].Resource != "nodes" || kinds.Columns[0].Namespaced || len(kinds.Columns[1].Columns) != 5 {
		t.Errorf("columns of many kinds: %+v", kinds.Columns)
	}
	if rows := kinds.rows(); !strings.HasPrefix(rows, "nodesn1") || !strings.Contains(rows, "; podsaoneRunning3wide") {
		t.Errorf("rows of many kinds: %q", rows)
	}
	w.getJSON(t, with("/v1/query", "resources", "nodes,pods", "view", "table", "sort", "metadata.name", "limit", "2", "continue", kinds.Metadata.Continue), &rest)
	if rows := rest.rows(); !strings.HasPrefix(rows, "podsbthreeRunning3wide") {
		t.Errorf("second page of many kinds: %q", rows)
	}
	if rec := w.get(t, with("/v1/query", "resources", "nodes,pods", "sort", "metadata.name", "limit", "2", "continue", kinds.Metadata.Continue)); rec.Code != http.StatusBadRequest {
		t.Errorf("the token of a table is good for objects: %d", rec.Code)
	}
}

func TestOutputTable(t *testing.T) {
	w := newWorld(t, printing)
	for _, c := range []struct {
		path, want string
	}{
		{with(podObjects, "output", "table", "namespace", "a"), "NAMESPACE NAME STATUS RESTARTS AGE\na one Running [31m 3 <unknown>\na two Running [31m 3 <unknown>\n"},
		{with("/v1/query", "resources", "nodes,pods", "output", "table", "filter", `object.metadata.name in ["n1", "one"]`),
			"# nodes\nNAME AGE\nn1 <unknown>\n\n# pods\nNAMESPACE NAME STATUS RESTARTS AGE\na one Running [31m 3 <unknown>\n"},
		{with(podObjects, "output", "table", "fields", "metadata.name,spec.priority,spec.nodeName", "labelSelector", "app=web"),
			"METADATA.NAME SPEC.PRIORITY SPEC.NODENAME\none <none> n1\nthree <none> n1\n"},
		{with(podObjects, "output", "table", "groupBy", "metadata.namespace"), "METADATA.NAMESPACE COUNT()\na 2\nb 1\n"},
		{with(podObjects, "output", "table", "namespace", "none"), ""},
	} {
		rec := w.get(t, c.path)
		var lines []string
		for line := range strings.Lines(rec.Body.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " ")+"\n")
		}
		if got := strings.Join(lines, ""); got != c.want || rec.Header().Get("Content-Type") != "text/plain" {
			t.Errorf("%s:\n%q, want\n%q", c.path, got, c.want)
		}
	}
}

// TestTableFields: rows have beside their cells what was asked for, and no more.
func TestTableFields(t *testing.T) {
	w := newWorld(t, printing)
	for _, path := range []string{podObjects + "?", "/v1/query?resources=pods&", "/v1/query?resources=pods,nodes&"} {
		for fields, want := range map[string]string{
			"metadata.namespace":                     `{"metadata":{"namespace":"a"}}`,
			"metadata.namespace,spec.nodeName":       `{"metadata":{"namespace":"a"},"spec":{"nodeName":"n1"}}`,
			"metadata.resourceVersion,metadata.name": `{"metadata":{"name":"one","resourceVersion":"10"}}`,
		} {
			var got struct {
				Items []struct {
					Resource string
					Cells    []any
					Object   json.RawMessage
				}
			}
			w.getJSON(t, path+"view=table&fields="+fields, &got)
			i := slices.IndexFunc(got.Items, func(item struct {
				Resource string
				Cells    []any
				Object   json.RawMessage
			}) bool {
				return item.Resource == "pods" && item.Cells[0] == "one"
			})
			if i < 0 || string(got.Items[i].Object) != want || len(got.Items[i].Cells) != 5 {
				t.Errorf("%s, %s: %+v, want %s", path, fields, got.Items, want)
			}
		}
	}
}

// TestFieldsOfIdentity: what is answered without unpacking objects is the same as with it.
func TestFieldsOfIdentity(t *testing.T) {
	w := newWorld(t)
	// As the API server writes pods: their kind comes first.
	kindFirst := strings.NewReplacer(`,"spec":{}`, "", `"apiVersion":"v1","kind":"Pod"`, `"kind":"Pod","apiVersion":"v1"`)
	for _, fields := range []string{"metadata.name", "kind,metadata.namespace", "apiVersion,metadata.uid,metadata.resourceVersion"} {
		for _, path := range []string{podObjects + "?", "/v1/query?resources=pods,nodes&sort=-metadata.name&"} {
			known := w.get(t, path+"output=ndjson&fields="+fields)
			unpacked := w.get(t, path+"output=ndjson&fields="+fields+",spec.nowhere")
			if want := kindFirst.Replace(unpacked.Body.String()); known.Code != 200 || known.Body.String() != want {
				t.Errorf("%s, %s: %s, want %s", path, fields, known.Body, want)
			}
		}
	}
	for _, path := range []string{podObjects + "?", "/v1/query?resources=pods,nodes&sort=-metadata.name&"} {
		known := w.get(t, path+"output=csv")
		unpacked := w.get(t, path+"output=csv&fields=kind,metadata.namespace,metadata.name,spec.nowhere")
		if want := strings.NewReplacer(",spec.nowhere\r", "\r", ",\r", "\r").Replace(unpacked.Body.String()); known.Code != 200 || known.Body.String() != want {
			t.Errorf("%s: %q, want %q", path, known.Body, want)
		}
	}
	for _, question := range []string{"groupBy=kind,metadata.namespace", "groupBy=metadata.namespace&agg=count(),max(metadata.name)", "agg=count()", "facets=metadata.namespace"} {
		path := "/v1/query?resources=pods,nodes&limit=1&" + question
		more := strings.Replace(path, "groupBy=", "groupBy=spec.nowhere,", 1)
		var known, unpacked map[string]any
		w.getJSON(t, path, &known)
		w.getJSON(t, more, &unpacked)
		delete(known, "metadata")
		delete(unpacked, "metadata")
		text, err := json.Marshal(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(known)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(string(text), `,"spec.nowhere":null`, ""); string(got) != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
	var all struct {
		Items []struct{ Values map[string]int }
	}
	w.getJSON(t, "/v1/query?resources=pods,nodes&agg=count()", &all)
	if len(all.Items) != 1 || all.Items[0].Values["count()"] != 4 {
		t.Errorf("all objects are %v, want 4", all.Items)
	}
}

func TestTableMistakes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		path, field, message string
	}{
		{with(podObjects, "view", "table", "fields", "a", "output", "table"), "view", "name the paths in fields"},
		{with(podObjects, "view", "table", "output", "csv"), "view", "columns of the API server"},
		{with(podObjects, "view", "metadata", "output", "table"), "view", "name the paths in fields"},
		{with(podObjects, "view", "table", "watch", "true"), "view", "watch=true"},
		{with(podObjects, "output", "table", "facets", "kind"), "facets", "no place"},
		{with(podObjects+"/a/one", "view", "table"), "view", "of lists"},
	} {
		s := wantStatus(t, w.get(t, c.path), http.StatusBadRequest, "BadRequest", c.message)
		if s.Details.Causes[0].Field != c.field {
			t.Errorf("%s: field %s", c.path, s.Details.Causes[0].Field)
		}
	}
}

// twoClusters has pods in both and configmaps in one of them.
func twoClusters(t *testing.T) *world {
	w := newWorld(t)
	w.caches.clusters = []cache.ClusterStatus{{Name: "east", Discovered: true}, {Name: "west", Discovered: true}}
	in := func(cluster, name, kind string, objects ...string) *fakeResource {
		s := spec("", "v1", name, kind, true)
		s.Cluster = cluster
		r := newResource(t, s, cache.Live)
		r.replace(t, "100", objects...)
		return r
	}
	w.pods = in("east", "pods", "Pod", pod("a", "one", "web", "n1", 10), pod("b", "three", "web", "n1", 30))
	w.caches.resources = []*fakeResource{w.pods, in("west", "configmaps", "ConfigMap", configMap("two", 5, 16)), in("west", "pods", "Pod", pod("a", "one", "web", "n9", 10))}
	return w
}

// TestQueryClusters: a question to several clusters, all of them if none is
// named, has answers that say where they are from.
func TestQueryClusters(t *testing.T) {
	w := twoClusters(t)
	for _, c := range []struct {
		parameters   []string
		want, states string
	}{
		{nil, "east/one east/three west/two west/one", "east/pods west/configmaps west/pods"},
		{[]string{"cluster", "east", "cluster", "west", "sort", "metadata.name", "resources", "pods"}, "east/one west/one east/three", "east/pods west/pods"},
		{[]string{"cluster", "west", "fields", "metadata.name"}, "/two /one", "west/configmaps west/pods"},
		{[]string{"resources", "pods,configmaps", "fields", "metadata.name"}, "east/one east/three west/two west/one", "east/pods west/configmaps west/pods"},
	} {
		var got struct {
			Metadata listMeta
			Items    []struct {
				Cluster, Kind string
				Metadata      struct{ Name string }
			}
		}
		w.getJSON(t, with("/v1/query", c.parameters...), &got)
		var names, states []string
		for _, i := range got.Items {
			names = append(names, i.Cluster+"/"+i.Metadata.Name)
			if i.Kind == "" {
				t.Errorf("%v: an item without its kind", c.parameters)
			}
		}
		for _, s := range got.Metadata.Resources {
			states = append(states, s.Cluster+"/"+s.Resource)
		}
		if strings.Join(names, " ") != c.want || strings.Join(states, " ") != c.states {
			t.Errorf("%v: %v of %v, want %s of %s", c.parameters, names, states, c.want, c.states)
		}
	}
	w.pods.set(cache.Stale, "the watch is down")
	if h := w.get(t, "/v1/query?resources=pods").Header().Get("Warning"); !strings.Contains(h, "east/pods is stale") {
		t.Errorf("of several: Warning %q", h)
	}
	if h := w.get(t, "/v1/query?resources=pods&cluster=east").Header().Get("Warning"); !strings.Contains(h, `"pods is stale`) {
		t.Errorf("of one: Warning %q", h)
	}
	if text := w.get(t, "/v1/query?cluster=west&output=table").Body.String(); !strings.Contains(text, "# configmaps\n") {
		t.Errorf("a table of one cluster names it: %s", text)
	}
	var table tableAnswer
	w.getJSON(t, with("/v1/query", "view", "table", "resources", "pods", "filter", `object.spec.nodeName == "n9"`), &table)
	if len(table.Items) != 1 || table.Items[0].Cluster != "west" || len(table.Columns) != 1 || table.Columns[0].Cluster != "west" {
		t.Errorf("table: %+v", table)
	}
	if rows := w.get(t, with("/v1/query", "resources", "pods", "output", "csv", "fields", "cluster,metadata.name")).Body.String(); rows != "cluster,metadata.name\r\neast,one\r\neast,three\r\nwest,one\r\n" {
		t.Errorf("csv: %q", rows)
	}
	var groups struct {
		Items []struct{ Values map[string]int }
	}
	if w.getJSON(t, with("/v1/query", "agg", "count()", "resources", "pods"), &groups); len(groups.Items) != 1 || groups.Items[0].Values["count()"] != 3 {
		t.Errorf("groups: %+v", groups)
	}
	wantStatus(t, w.get(t, with("/v1/query", "cluster", "north")), http.StatusBadRequest, "BadRequest", "there is: east, west")
	wantStatus(t, w.get(t, with("/v1/query", "resources", "nodes")), http.StatusNotFound, "NotFound", "column 1")
}

func TestWatchClusters(t *testing.T) {
	w := twoClusters(t)
	s := open(t, serve(t, w)+with("/v1/query", "watch", "true", "resources", "pods"))
	var from []string
	for range 3 {
		from = append(from, s.next().data.Resource)
	}
	if strings.Join(from, " ") != "east/pods east/pods west/pods" {
		t.Errorf("events of %v", from)
	}
	if e := s.want("BOOKMARK "); e.id != "east/pods=100,west/pods=100" {
		t.Errorf("id %s", e.id)
	}
}
