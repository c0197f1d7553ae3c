package kubeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// table is what tests read of one.
type table struct {
	Kind, APIVersion  string
	Metadata          metav1.ListMeta
	ColumnDefinitions []metav1.TableColumnDefinition
	Rows              []struct {
		Cells      []any
		Conditions []any
		Object     *struct {
			Kind     string
			Metadata metav1.ObjectMeta
			Spec     map[string]any
		}
	}
}

func (t table) String() string {
	var lines []string
	for _, r := range t.Rows {
		lines = append(lines, fmt.Sprint(r.Cells...))
	}
	return strings.Join(lines, "; ")
}

// prints makes the upstream one that prints pods: their name, an extra cell and
// an age that is long wrong.
func (w *world) prints(extra string, pods ...[4]string) { // namespace, name, uid, version
	w.upstream.set(func(r *http.Request) *http.Response {
		var rows []string
		for _, p := range pods {
			if _, in, ok := strings.Cut(r.URL.Path, "/namespaces/"); ok && !strings.HasPrefix(in, p[0]+"/") {
				continue
			}
			one := strings.HasSuffix(r.URL.Path, "/"+p[1]) || strings.HasSuffix(r.URL.Query().Get("fieldSelector"), "="+p[1])
			if !one && (!strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Query().Has("fieldSelector")) {
				continue
			}
			rows = append(rows, fmt.Sprintf(`{"cells":[%q,%q,"9y"],"conditions":[{"type":"Completed"}],"object":{"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":%q}}}`,
				p[1], extra, p[0], p[1], p[2], p[3]))
		}
		return jsonResponse(200, `{"kind":"Table","columnDefinitions":[{"name":"Name"},{"name":"Extra","priority":1},{"name":"Age"}],"rows":[`+strings.Join(rows, ",")+`]}`)
	})
}

var printedPods = [][4]string{{"a", "one", "uid-a-one", "10"}, {"a", "two", "uid-a-two", "20"}, {"b", "three", "uid-b-three", "30"}}

// TestTable: rows are printed by the API server once, ages are of now.
func TestTable(t *testing.T) {
	w := newWorld(t)
	w.prints("x", printedPods...)
	var got table
	for range 3 {
		w.into(&got, "/api/v1/pods", "Accept", acceptTable)
	}
	if got.String() != strings.ReplaceAll("onexAGE; twoxAGE; threexAGE", "AGE", ageOfPods()) && got.String() != strings.ReplaceAll("one x AGE; two x AGE; three x AGE", "AGE", ageOfPods()) {
		t.Errorf("table is %q", got)
	}
	if got.Kind != "Table" || got.Metadata.ResourceVersion != "100" || got.ColumnDefinitions[1].Priority != 1 || len(got.Rows[0].Conditions) != 1 ||
		got.Rows[0].Object.Kind != "PartialObjectMetadata" || got.Rows[0].Object.Metadata.Name != "one" {
		t.Errorf("table is %+v", got)
	}
	if asked := w.upstream.requests(); len(asked) != 3 {
		t.Errorf("three rows were asked for with %v", asked)
	}
	w.into(&got, "/api/v1/namespaces/a/pods?includeObject=None&limit=1", "Accept", acceptTable)
	if len(got.Rows) != 1 || got.Rows[0].Object != nil || got.Metadata.Continue == "" {
		t.Errorf("without objects: %+v", got)
	}
	w.into(&got, "/api/v1/namespaces/a/pods/two?includeObject=Object", "Accept", acceptTable)
	if len(got.Rows) != 1 || got.Rows[0].Object.Spec["nodeName"] != "n2" {
		t.Errorf("with the object: %+v", got)
	}
	w.wantStatus(w.get("/api/v1/pods?includeObject=Half", "Accept", acceptTable), 400, metav1.StatusReasonBadRequest, "Half")
}

// TestTableManyRows: many rows are one list of the smallest part that has them.
func TestTableManyRows(t *testing.T) {
	w := newWorld(t)
	for n := range 10 {
		w.pods.apply(t, cache.Added, pod("c", fmt.Sprint("p", n), "many", "n1", 101+n))
	}
	w.prints("x")
	if rec := w.get("/api/v1/pods?labelSelector=app%3Dmany", "Accept", acceptTable); rec.Code != 200 {
		t.Fatal(rec.Body)
	}
	asked := w.upstream.requests()
	if len(asked) != 1 || !strings.Contains(asked[0], "/api/v1/namespaces/c/pods?") || !strings.Contains(asked[0], "labelSelector=app%3Dmany") ||
		!strings.Contains(asked[0], "resourceVersion=110") {
		t.Errorf("asked %v", asked)
	}
}

// TestTableFewOfManyRows: of a long table those that have changed are asked for one by one.
func TestTableFewOfManyRows(t *testing.T) {
	w := newWorld(t)
	var printed [][4]string
	for n := range 1000 {
		name := fmt.Sprint("p", n)
		w.pods.apply(t, cache.Added, pod("c", name, "many", "n1", 101+n))
		printed = append(printed, [4]string{"c", name, "uid-c-" + name, fmt.Sprint(101 + n)})
	}
	w.prints("before", printed...)
	const long = "/api/v1/pods?labelSelector=app%3Dmany"
	var got table
	w.into(&got, long, "Accept", acceptTable)
	for n := range 10 {
		w.pods.apply(t, cache.Modified, pod("c", fmt.Sprint("p", n), "many", "n1", 2000+n))
		printed[n][3] = fmt.Sprint(2000 + n)
	}
	w.prints("after", printed...)
	listed := len(w.upstream.requests())
	w.into(&got, long, "Accept", acceptTable)
	asked := w.upstream.requests()[listed:]
	if len(asked) != 10 || slices.ContainsFunc(asked, func(uri string) bool { return !strings.Contains(uri, "/namespaces/c/pods/p") }) {
		t.Errorf("10 of 1000 rows were asked for with %v", asked)
	}
	after := 0
	for _, r := range got.Rows {
		if r.Cells[1] == "after" {
			after++
		}
	}
	if len(got.Rows) != 1000 || after != 10 {
		t.Errorf("%d rows, %d of them new", len(got.Rows), after)
	}
}

// TestTableLargerThanADocument: rows come with the metadata of their objects, which may be
// large together.
func TestTableLargerThanADocument(t *testing.T) {
	w := newWorld(t)
	var rows []string
	for n := range 40 {
		name := fmt.Sprint("p", n)
		w.pods.apply(t, cache.Added, pod("c", name, "many", "n1", 101+n))
		rows = append(rows, fmt.Sprintf(`{"cells":[%q,"printed","9y"],"object":{"metadata":{"annotations":{"a":%q},"namespace":"c","name":%q,"uid":"uid-c-%s","resourceVersion":"%d"}}}`,
			name, strings.Repeat("x", maxDocument/39), name, name, 101+n))
	}
	body := `{"kind":"Table","columnDefinitions":[{"name":"Name"},{"name":"Extra"},{"name":"Age"}],"rows":[` + strings.Join(rows, ",") + `]}`
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(200, body) })
	const uri = "/api/v1/namespaces/c/pods"
	var got table
	for range 2 {
		w.into(&got, uri, "Accept", acceptTable)
	}
	for _, r := range got.Rows {
		if r.Cells[1] != "printed" {
			t.Fatalf("a row is %v", r.Cells)
		}
	}
	if asked := w.upstream.requests(); len(got.Rows) != 40 || len(asked) != 1 {
		t.Errorf("%d rows; asked %v", len(got.Rows), asked)
	}
}

// TestTableBrokenOff: of a table that is not whole nothing is believed.
func TestTableBrokenOff(t *testing.T) {
	w := newWorld(t)
	w.prints("half", printedPods...)
	whole := w.upstream.answer
	w.upstream.set(func(r *http.Request) *http.Response {
		body, err := io.ReadAll(whole(r).Body)
		if err != nil {
			t.Error(err)
		}
		return jsonResponse(200, string(body[:len(body)-2]))
	})
	var got table
	w.into(&got, "/api/v1/pods", "Accept", acceptTable)
	if strings.Contains(got.String(), "half") || len(got.Rows) != 3 {
		t.Errorf("of half a table: %v", got)
	}
}

// TestTableOutage: while the API server is away there are the rows of before,
// and the names and ages of others.
func TestTableOutage(t *testing.T) {
	w := newWorld(t)
	var got table
	w.into(&got, "/api/v1/nodes", "Accept", acceptTable)
	if got.String() != "n1 <unknown>" && got.String() != "n1<unknown>" || len(got.ColumnDefinitions) != 2 {
		t.Errorf("never printed: %q", got)
	}
	w.prints("x", printedPods...)
	w.into(&got, "/api/v1/pods", "Accept", acceptTable)
	w.upstream.set(nil)
	w.pods.apply(t, cache.Modified, pod("a", "two", "db", "n2", 101))
	w.pods.apply(t, cache.Added, pod("a", "zero", "db", "n2", 102))
	w.into(&got, "/api/v1/namespaces/a/pods", "Accept", acceptTable)
	if text := strings.ReplaceAll(got.String(), " ", ""); text != strings.ReplaceAll("onexAGE;twoxAGE;zero<unknown>AGE", "AGE", ageOfPods()) {
		t.Errorf("during an outage: %q", got)
	}
}

// TestTableWatch: each event is a table of one row; the first has the columns.
func TestTableWatch(t *testing.T) {
	w := newWorld(t)
	w.prints("x", [4]string{"a", "one", "uid-a-one", "101"})
	s := w.watch("/api/v1/pods?watch=1&resourceVersion=100&allowWatchBookmarks=1", "Accept", acceptTable)
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101))
	first := s.next()
	w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 102))
	second := s.next()
	if first.Object.Kind != "Table" || len(first.Object.Columns) != 3 || first.Object.Rows[0].Cells[1] != "x" {
		t.Errorf("first event is %+v", first)
	}
	if second.Type != "DELETED" || second.Object.Columns != nil || second.Object.Rows[0].Cells[1] != "x" || second.Object.Metadata.ResourceVersion != "102" {
		t.Errorf("second event is %+v", second)
	}
	asked := w.upstream.requests()
	if len(asked) == 0 || !strings.Contains(asked[0], "resourceVersionMatch=Exact") {
		t.Errorf("asked %v", asked)
	}
}

// TestTableWatchHides: a stream of tables that goes on under another rule shows no more
// than one that begins under it.
func TestTableWatchHides(t *testing.T) {
	w := newWorld(t)
	w.prints("x", [4]string{"a", "one", "uid-a-one", "101"}, [4]string{"a", "one", "uid-a-one", "102"})
	s := w.watch("/api/v1/pods?watch=1&resourceVersion=100", "Accept", acceptTable)
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101))
	if e := s.next(); e.Object.Rows[0].Cells[1] != "x" {
		t.Errorf("under the rule of before: %+v", e)
	}
	w.pods.spec.Redact = []string{"spec.nodeName"}
	asked := len(w.upstream.requests())
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 102))
	if e := s.next(); len(e.Object.Rows[0].Cells) != 3 || e.Object.Rows[0].Cells[0] != "one" || e.Object.Rows[0].Cells[1] != "<unknown>" {
		t.Errorf("under a rule that redacts: %+v", e)
	}
	if n := len(w.upstream.requests()); n != asked {
		t.Errorf("the API server was asked %v", w.upstream.requests()[asked:])
	}
}

// TestGoodFor: a cell that says how long ago something was does not stay true.
func TestGoodFor(t *testing.T) {
	for cell, want := range map[string]time.Duration{
		`"Running"`: 0, `3`: 0, `null`: 0, `"0"`: 0, `"10.0.0.1"`: 0, `"v1.36.3"`: 0, `"5m"`: 10 * time.Second, `"3h"`: time.Minute,
		`"2 (5m3s ago)"`: time.Second, `"7d"`: 10 * time.Minute, `"4y12d"`: 10 * time.Minute, `"30s"`: time.Second, `"web-5d"`: 0,
	} {
		if got := goodFor(json.RawMessage(cell)); got != want {
			t.Errorf("goodFor(%s) = %v, want %v", cell, got, want)
		}
	}
}

// TestTableWarnings: what the API server warns of who prints a resource is
// passed on, also with rows it printed before; of a custom resource its
// definition warns.
func TestTableWarnings(t *testing.T) {
	const warning = `299 - "v1 Pod is deprecated"`
	w := newWorld(t)
	w.upstream.set(func(*http.Request) *http.Response {
		return jsonResponse(200, `{"kind":"Table","columnDefinitions":[{"name":"Name"}],"rows":[]}`, "Warning", warning)
	})
	for range 2 {
		if got := w.get("/api/v1/pods", "Accept", acceptTable).Header().Values("Warning"); len(got) != 1 || got[0] != warning {
			t.Errorf("warnings of pods: %q", got)
		}
		w.upstream.set(nil)
	}
	for said, want := range map[string]string{
		"":                   "",
		`,"deprecated":true`: `299 - "messaging.example.com/v1 Queue is deprecated"`,
		`,"deprecated":true,"deprecationWarning":"use \"v2\""`: `299 - "use \"v2\""`,
	} {
		w := newWorld(t)
		w.defines(said)
		if got := w.get("/apis/messaging.example.com/v1/queues", "Accept", acceptTable).Header().Get("Warning"); got != want {
			t.Errorf("warning of %s: %s, want %s", said, got, want)
		}
	}
}
