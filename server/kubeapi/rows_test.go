package kubeapi

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestRowsAreBounded: random rows of two resources are put, and what is found is what was put
// last for that object of that resource. As many as a generation has are found for sure, and
// no more than two generations are held.
func TestRowsAreBounded(t *testing.T) {
	const most = 20
	rng := rand.New(rand.NewPCG(1, 2))
	kept := &rows{most: most}
	resources := []cache.Resource{{Cluster: "a"}, {Cluster: "b"}}
	var objs []*cache.Object
	w := newWorld(t)
	for n := range 3 * most {
		objs = append(objs, w.pods.decode(t, pod("ns", fmt.Sprint("p", n), "web", "n1", 101)))
	}
	idOf := func(n int) string { return string(appendRowID(nil, objs[n])) }
	type id struct{ resource, object int }
	last := map[id]*row{}
	var order []id // the last put at the end
	for step := range 2000 {
		r := rng.IntN(len(resources))
		for range 1 + rng.IntN(5) {
			of := id{r, rng.IntN(len(objs))}
			last[of] = &row{version: fmt.Sprint(step), cells: printedCells(strings.Repeat("x", rng.IntN(9)))}
			kept.put(resources[r], heading{}, map[string]*row{idOf(of.object): last[of]})
			order = append(slices.DeleteFunc(order, func(other id) bool { return other == of }), of)
		}
		for r, resource := range resources {
			_, found := kept.get(resource, objs)
			for n, p := range found {
				of := id{r, n}
				if p != nil && p != last[of] {
					t.Fatalf("step %d: %v is %+v, %+v was put last", step, of, p, last[of])
				}
				if p == nil && slices.Contains(order[max(0, len(order)-most):], of) {
					t.Fatalf("step %d: %v was put only just, and is gone", step, of)
				}
			}
		}
		held := 0
		for _, g := range []generation{kept.young, kept.old} {
			n, bytes := 0, 0
			for _, of := range g.of {
				n += len(of)
				for id, p := range of {
					bytes += p.bytes(id)
				}
			}
			if n != g.len || bytes != g.bytes {
				t.Fatalf("step %d: %d rows of %d bytes, %d of %d counted", step, n, bytes, g.len, g.bytes)
			}
			held += n
		}
		if held > 2*most {
			t.Fatalf("step %d: %d rows are held", step, held)
		}
	}
}

// TestLargeRowsAreBounded: rows are also kept by their bytes.
func TestLargeRowsAreBounded(t *testing.T) {
	kept, large := &rows{}, &row{cells: printedCells(strings.Repeat("x", bytesKept/2))}
	for n := range 100 {
		kept.put(cache.Resource{}, heading{}, map[string]*row{fmt.Sprint(n): large})
	}
	if n := kept.young.len + kept.old.len; n > 4 {
		t.Errorf("%d rows of %d bytes are held", n, len(large.cells))
	}
}

// many makes pods, so many in each of some namespaces, which the upstream prints, and returns
// a table of all of them.
func (w *world) many(namespaces, each int) (uri string) {
	var printed [][4]string
	for n := range namespaces * each {
		namespace, name := fmt.Sprintf("ns-%03d", n/each), fmt.Sprintf("p%04d", n)
		w.pods.apply(w.t, cache.Added, pod(namespace, name, "many", "n1", 101+n))
		printed = append(printed, [4]string{namespace, name, "uid-" + namespace + "-" + name, fmt.Sprint(101 + n)})
	}
	w.prints("printed", printed...)
	return "/api/v1/pods?labelSelector=app%3Dmany"
}

// printed is how many rows of a table the upstream printed, of how many.
func (t table) printed() (shown, of int) {
	for _, r := range t.Rows {
		if r.Cells[1] == "printed" {
			shown++
		}
	}
	return shown, len(t.Rows)
}

// paged reads all pages and returns what printed says of them together.
func (w *world) paged(uri string, limit int) (shown, of int) {
	next := ""
	for page := 0; page == 0 || next != ""; page++ {
		var got table
		w.into(&got, fmt.Sprintf("%s&limit=%d&continue=%s", uri, limit, next), "Accept", acceptTable)
		n, all := got.printed()
		shown, of, next = shown+n, of+all, got.Metadata.Continue
	}
	return shown, of
}

// TestTableOfMoreThanIsKept: of a resource with more objects than rows are kept of, all are
// shown as they are printed, and the API server is asked for nothing twice, and for no more
// than the namespaces of what is shown. Only a whole list of namespaces with few objects
// each is asked for at once, and has no more rows than two generations.
func TestTableOfMoreThanIsKept(t *testing.T) {
	const most = 60
	for name, test := range map[string]struct {
		namespaces, each, limit int // limit of a page, 0: none
		shown, requests         int
		uri                     string
	}{
		"some namespaces":                {10, 20, 0, 200, 10, `/namespaces/ns-\d+/pods\?`},
		"some namespaces, pages":         {10, 20, 20, 200, 10, `/namespaces/ns-\d+/pods\?`},
		"one namespace":                  {1, 100, 0, 100, 1, `/namespaces/ns-000/pods\?`},
		"one namespace, pages":           {1, 100, 20, 100, 1, `/namespaces/ns-000/pods\?`},
		"many small namespaces":          {600, 2, 0, 2 * most, 1, `/pods\?`},
		"many small namespaces, pages":   {100, 2, 40, 200, 200, `/namespaces/ns-\d+/pods/p\d+\?`},
		"many filled namespaces":         {20, 100, 0, 2000, 20, `/namespaces/ns-\d+/pods\?`},
		"one more than is asked at once": {2, 31, 0, 62, 2, `/namespaces/ns-\d+/pods\?`},
		"as many as are asked at once":   {1, most - 3, 0, most - 3, 1, `/namespaces/ns-000/pods\?`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.rows.most = most
			uri, all := w.many(test.namespaces, test.each), test.namespaces*test.each
			if shown, of := w.paged(uri, cmp.Or(test.limit, all)); shown != test.shown || of != all {
				t.Errorf("%d of %d rows are as they are printed, want %d of %d", shown, of, test.shown, all)
			}
			asked := w.upstream.requests()
			slices.Sort(asked)
			if len(asked) != test.requests || len(slices.Compact(slices.Clone(asked))) != len(asked) {
				t.Errorf("%d requests, want %d: %v", len(asked), test.requests, asked)
			}
			for _, uri := range asked {
				if !regexp.MustCompile(`^GET /api/v1` + test.uri).MatchString(uri) {
					t.Errorf("asked %s, want %s", uri, test.uri)
				}
			}
		})
	}
}

// TestTableOfSomeThatCannotBePrinted: what is wrong with the rows of one namespace is not with
// those after it; when the API server is away, it is asked no more.
func TestTableOfSomeThatCannotBePrinted(t *testing.T) {
	for code, test := range map[int]struct{ shown, requests int }{403: {150, 4}, 200: {150, 4}, 500: {50, 2}} {
		w := newWorld(t)
		w.rows.most = 40
		uri := w.many(4, 50)
		whole := w.upstream.answer
		w.upstream.set(func(r *http.Request) *http.Response {
			if strings.Contains(r.URL.Path, "/ns-001/") {
				return jsonResponse(code, `{"kind":"Table","rows":[{"cells"`)
			}
			return whole(r)
		})
		if shown, of := w.paged(uri, 200); shown != test.shown || of != 200 || len(w.upstream.requests()) != test.requests {
			t.Errorf("%d: %d of %d rows are as they are printed, want %d; asked %v", code, shown, of, test.shown, w.upstream.requests())
		}
	}
}

// TestTableLeavesInTime: rows that the API server prints slowly are not waited for for ever:
// the answer leaves with those that have come. What comes later is there for the next one.
func TestTableLeavesInTime(t *testing.T) {
	w := newWorld(t)
	w.rows.most = 40
	uri := w.many(10, 20)
	whole := w.upstream.answer
	synctest.Test(t, func(t *testing.T) {
		defer w.pods.store.Close()
		w.upstream.set(func(r *http.Request) *http.Response {
			time.Sleep(8 * time.Second) // of the bubble's clock
			return whole(r)
		})
		began := time.Now()
		if shown, of := w.paged(uri, 200); shown != 60 || of != 200 || time.Since(began) != printTimeout {
			t.Errorf("after %v %d of %d rows are as they are printed", time.Since(began), shown, of)
		}
		time.Sleep(time.Minute) // what was begun last ends
		before := len(w.upstream.requests())
		if shown, _ := w.paged(uri, 200); shown != 140 || !strings.Contains(w.upstream.requests()[before], "/ns-004/") {
			t.Errorf("then %d rows are as they are printed; asked %v", shown, w.upstream.requests()[before:])
		}
		time.Sleep(time.Minute)
	})
}

// TestTableOfOthers: a row is of one object only. Aggregated API servers may give several the
// same UID, or none; an object may have the name of another that is gone.
func TestTableOfOthers(t *testing.T) {
	w := newWorld(t)
	pod := func(name, uid string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"c","name":%q,"uid":%q,"resourceVersion":"101"}}`, name, uid)
	}
	row := func(name, uid, cell string) string {
		return fmt.Sprintf(`{"cells":[%q,%q],"object":{"metadata":{"namespace":"c","name":%q,"uid":%q,"resourceVersion":"101"}}}`, name, cell, name, uid)
	}
	w.pods.replace(t, "101", pod("one", "u"), pod("two", "u"), pod("three", ""), pod("four", ""), pod("five", "new"))
	body := `{"kind":"Table","columnDefinitions":[{"name":"Name"},{"name":"Extra"}],"rows":[` + strings.Join([]string{
		row("one", "u", "1"), row("two", "u", "2"), row("three", "", "3"), row("four", "", "4"), row("five", "old", "wrong"),
	}, ",") + `]}`
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(200, body) })
	for range 2 {
		var got table
		w.into(&got, "/api/v1/namespaces/c/pods", "Accept", acceptTable)
		cells := map[any]any{}
		for _, r := range got.Rows {
			cells[r.Cells[0]] = r.Cells[1]
		}
		if want := map[any]any{"one": "1", "two": "2", "three": "3", "four": "4", "five": "<unknown>"}; !maps.Equal(cells, want) {
			t.Errorf("rows are %v, want %v", cells, want)
		}
	}
}

// TestTableOfWhatIsSelected: of a copy of some objects no others are asked for.
func TestTableOfWhatIsSelected(t *testing.T) {
	w := newWorld(t)
	w.pods.spec.LabelSelector, w.pods.spec.FieldSelector = "tier in (a,b)", "status.phase!=Failed"
	w.get(w.many(1, 20)+"&limit=500", "Accept", acceptTable)
	asked := w.upstream.requests()
	if len(asked) != 1 {
		t.Fatalf("asked %v", asked)
	}
	uri, err := url.Parse(strings.TrimPrefix(asked[0], "GET "))
	if err != nil {
		t.Fatal(err)
	}
	if q := uri.Query(); q.Get("labelSelector") != "tier in (a,b),app=many" || q.Get("fieldSelector") != "status.phase!=Failed" {
		t.Errorf("asked for %v", q)
	}
}

// TestTableOfNamespaces: where informerd may read some namespaces only, it does not ask for all of
// them together.
func TestTableOfNamespaces(t *testing.T) {
	w := newWorld(t)
	var names []string
	printed := map[string][][4]string{}
	for n := range 30 {
		name := fmt.Sprintf("ns-%03d", n)
		names = append(names, name)
		for i := range 50 {
			pod := fmt.Sprint("p", i)
			printed[name] = append(printed[name], [4]string{name, pod, "uid-" + name + "-" + pod, "101"})
		}
	}
	w.pods.store.SetSources(names)
	var all [][4]string
	for name, pods := range printed {
		var objs []*cache.Object
		for _, p := range pods {
			objs = append(objs, w.pods.decode(t, pod(p[0], p[1], "many", "n1", 101)))
		}
		w.pods.store.Replace(name, objs, "101")
		all = append(all, pods...)
	}
	w.prints("printed", all...)
	if shown, of := w.paged("/api/v1/pods?labelSelector=app%3Dmany", 1500); shown != 1500 || of != 1500 {
		t.Errorf("%d of %d rows are as they are printed", shown, of)
	}
	asked := w.upstream.requests()
	if len(asked) != 30 || slices.ContainsFunc(asked, func(uri string) bool { return !strings.Contains(uri, "/namespaces/ns-") }) {
		t.Errorf("asked %v", asked)
	}
}
