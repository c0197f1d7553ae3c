package kubeapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// initialTable asks for a watch of nothing that ends with a second bookmark.
const initialTable = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=3&labelSelector=app%3Dnone"

// printsNothing makes the API server print objects in which nothing is set.
func (w *world) printsNothing() {
	w.upstream.set(func(r *http.Request) *http.Response {
		columns := `"columnDefinitions":[{"name":"Name"},{"name":"Ready"},{"name":"Age"}]`
		if r.URL.Query().Get("watch") == "" {
			return jsonResponse(200, `{"kind":"Table",`+columns+`,"rows":[]}`)
		}
		return jsonResponse(200, `{"type":"BOOKMARK","object":{"kind":"Table",`+columns+`,"rows":[{"cells":["","0/0","<unknown>"],"object":null}]}}`)
	})
}

// TestTableBookmark: a bookmark of a table has a row, in which nothing is set but
// the version, as the API server prints it, and columns only if it comes first.
func TestTableBookmark(t *testing.T) {
	t.Parallel() // it waits, for seconds
	const marked = `"metadata":{"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}`
	for include, object := range map[string][2]string{
		"":         {`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + marked + `}`, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"100"}}`},
		"Metadata": {`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + marked + `}`, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"100"}}`},
		"None":     {`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + marked + `}`, `null`},
		"Object":   {`{"kind":"Pod","apiVersion":"v1",` + marked + `}`, `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"100"}}`},
	} {
		t.Run("include "+include, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.printsNothing()
			lines := strings.Split(strings.TrimSpace(w.get("/api/v1/pods?"+initialTable+"&includeObject="+include, "Accept", acceptTable).Body.String()), "\n")
			if len(lines) != 2 {
				t.Fatalf("events are %q", lines)
			}
			for n, columns := range []int{3, 0} {
				var e struct {
					Type   string
					Object struct {
						Kind, APIVersion string
						Metadata         map[string]any
						Columns          []any `json:"columnDefinitions"`
						Rows             []struct{ Cells, Object json.RawMessage }
					}
				}
				if err := json.Unmarshal([]byte(lines[n]), &e); err != nil {
					t.Fatal(err)
				}
				o := e.Object
				if e.Type != "BOOKMARK" || o.Kind != "Table" || o.APIVersion != "meta.k8s.io/v1" || len(o.Columns) != columns || len(o.Metadata) != 1 || o.Metadata["resourceVersion"] != "100" ||
					len(o.Rows) != 1 || string(o.Rows[0].Cells) != `["","0/0","<unknown>"]` || string(o.Rows[0].Object) != object[n] {
					t.Errorf("includeObject=%s: bookmark %d is %s", include, n, lines[n])
				}
			}
		})
	}
}

// TestTableBookmarkCells: what nothing looks like while nobody can be asked, and in
// a custom resource; and a bookmark after another event.
func TestTableBookmarkCells(t *testing.T) {
	t.Parallel() // it waits, for seconds
	w := newWorld(t)
	rows := func(uri string) string {
		line, _, _ := strings.Cut(w.get(uri, "Accept", acceptTable).Body.String(), "\n")
		_, rows, _ := strings.Cut(line, `"rows":`)
		return rows
	}
	if got := rows("/api/v1/pods?" + initialTable + "&includeObject=None"); !strings.HasPrefix(got, `[{"cells":["","<unknown>"],"object":{`) {
		t.Errorf("while the API server is away: %s", got)
	}
	w.defines("")
	if got := rows("/apis/messaging.example.com/v1/queues?" + initialTable); !strings.HasPrefix(got, `[{"cells":["",null`) {
		t.Errorf("of a custom resource: %s", got)
	}
	w.printsNothing()
	s := w.watch("/api/v1/pods?watch=1&resourceVersion=100&allowWatchBookmarks=1&timeoutSeconds=4", "Accept", acceptTable)
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 101))
	if first, second := s.next(), s.next(); first.Type != "MODIFIED" || len(first.Object.Columns) != 3 || second.Type != "BOOKMARK" || second.Object.Columns != nil || len(second.Object.Rows) != 1 {
		t.Errorf("a change and a bookmark are %+v and %+v", first, second)
	}
}
