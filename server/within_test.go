package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestAskedAgain: what is asked again and again is answered from excerpts of the objects, and
// in the same bytes, also after objects have changed.
func TestAskedAgain(t *testing.T) {
	const filter = "object.spec.nodeName.endsWith('1') && object.spec.containers.exists(c, c.image.contains('4')) || object.spec.wrong.deeper == 1"
	w := newWorld(t)
	at := func(version int) (all []string) {
		for i := range 400 {
			o := pod("a", fmt.Sprintf("pod-%03d", i), fmt.Sprint("web", i%5), fmt.Sprint("n", i%(10+version)), version+i+1)
			o = strings.Replace(o, `"status":{`, `"status":{"number":`+fmt.Sprint(i*version)+`,"text":"`+strings.Repeat("long ", 300)+`",`, 1)
			all = append(all, o)
		}
		return all
	}
	questions := []string{
		"/v1/query?resources=pods&fields=metadata.name,spec.containers[*].image,status.number",
		"/v1/query?resources=pods&output=csv&fields=metadata.name,spec.containers[*].image,spec.none",
		"/v1/query?resources=pods&output=ndjson&fields=spec.containers[0].image,status.number",
		"/v1/query?resources=pods&view=table&fields=metadata.namespace",
		"/v1/query?resources=pods&output=table&fields=metadata.name,spec.nodeName",
		"/v1/query?resources=pods&view=metadata",
		"/v1/query?resources=pods&groupBy=spec.nodeName,status.phase&agg=count(),sum(status.number),min(status.number)",
		"/v1/query?resources=pods&facets=spec.nodeName,metadata.labels.app&fields=metadata.name",
		"/v1/query?resources=pods&fields=metadata.name&filter=" + url.QueryEscape(filter),
		"/v1/query?resources=pods&fields=metadata.name&fieldSelector=spec.nodeName=n3",
		"/v1/resources/pods/objects?fields=status.number,spec.nodeName",
		"/v1/resources/pods/objects?output=yaml&fields=spec.nodeName",
	}
	for version := range 3 {
		w.pods.replace(t, fmt.Sprint(1000*(version+1)), at(1000*version)...)
		// Others than those that are asked again are read as a whole.
		plain := newWorld(t)
		plain.pods.replace(t, fmt.Sprint(1000*(version+1)), at(1000*version)...)
		for _, q := range questions {
			want := bodyOf(t, plain, q)
			for again := range 6 {
				if got := bodyOf(t, w, q); got != want {
					t.Fatalf("%s, for the %d. time: %.500s\nwant %.500s", q, again+1, got, want)
				}
			}
		}
		reader := w.pods.View().Reader(cache.WholeScope())
		for _, c := range reader.Columns() {
			if c.Kept && c.Objects != 400 {
				t.Errorf("%v: it was asked %d times, and kept of %d objects", c.Paths, c.Asked, c.Objects)
			}
		}
	}
}

// TestColumnsGiveWay: what is only kept to answer sooner goes before anybody is refused for
// long.
func TestColumnsGiveWay(t *testing.T) {
	w := newWorld(t)
	var all []string
	for i := range 300 {
		all = append(all, strings.Replace(pod("a", fmt.Sprint("pod-", i), "web", "n1", i+1), `"status":{`, `"status":{"text":"`+strings.Repeat("long ", 300)+`",`, 1))
	}
	w.pods.replace(t, "900", all...)
	ask := func() int {
		for range 5 {
			w.get(t, "/v1/query?resources=pods&groupBy=status.number")
		}
		return int(w.pods.store.Stats().ColumnBytes)
	}
	if kept := ask(); kept < 300 || kept > 300*200 {
		t.Fatalf("%d bytes are kept", kept)
	}
	limit := int64(1 << 20)
	w.memory.limit = func() int64 { return limit }
	if kept := ask(); kept != 0 {
		t.Errorf("%d bytes are kept while memory is short", kept)
	}
	limit = math.MaxInt64
	if kept := ask(); kept != 0 {
		t.Errorf("%d bytes are kept as soon as there is memory again", kept)
	}
}

// bodyOf is an answer, without what is of its world or of the moment.
func bodyOf(t *testing.T, w *world, question string) string {
	t.Helper()
	rec := w.get(t, question)
	if rec.Code != 200 || rec.Body.Len() < 100 {
		t.Fatalf("%s: %d, %.300s", question, rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// TestColumnList: what questions have left is told to those who see all of a resource, and to
// nobody else.
func TestColumnList(t *testing.T) {
	w := newWorld(t)
	var all []string
	for i := range 300 {
		all = append(all, strings.Replace(pod("a", fmt.Sprint("pod-", i), "web", fmt.Sprint("n", i%3), i+1), `"status":{`, `"status":{"text":"`+strings.Repeat("long ", 300)+`",`, 1))
	}
	w.pods.replace(t, "900", all...)
	for range 5 {
		w.get(t, "/v1/query?resources=pods&groupBy=spec.nodeName")
	}
	w.get(t, "/v1/resources/pods/objects?sort=status.phase,spec.none")
	var told struct {
		Items []columnItem
	}
	if err := json.Unmarshal(w.get(t, "/v1/resources/pods/columns").Body.Bytes(), &told); err != nil || len(told.Items) != 2 {
		t.Fatalf("%v, %v", told, err)
	}
	for _, c := range told.Items {
		kept := c.Asked == 5 && c.Kept && c.Objects == 300 && c.Values == 3 && c.Bytes > 1000 && c.Reason == "" && slices.Equal(c.Paths, []string{"spec.nodeName"})
		open := c.Asked == 1 && !c.Kept && c.Objects == 0 && c.Bytes == 0 && c.Reason != "" && slices.Equal(c.Paths, []string{"status.phase", "spec.none"})
		if !kept && !open || time.Since(c.LastAsked.Time) > time.Hour {
			t.Errorf("%+v", c)
		}
	}
	if body := w.get(t, "/v1/resources/pods/objects?groupBy=spec.nodeName&explain=true").Body.String(); !strings.Contains(body, `"columns":["spec.nodeName"]`) {
		t.Errorf("the plan does not name the column: %s", body)
	}
}

// TestLoopBesideASelector: a filter goes through all of a map of which a selector names a field.
func TestLoopBesideASelector(t *testing.T) {
	w := newWorld(t)
	var all []string
	for i := range 400 {
		all = append(all, strings.Replace(pod("a", fmt.Sprintf("pod-%03d", i), "web", "n1", i+1), `"spec":{`, `"spec":{"nodeSelector":{"disk":"ssd","gpu":"yes"},`, 1))
	}
	w.pods.replace(t, "1000", all...)
	question := "/v1/query?resources=pods&fields=metadata.name&fieldSelector=spec.nodeSelector.disk%3Dssd&filter=" + url.QueryEscape("object.spec.nodeSelector.exists(k, k == 'gpu')")
	for again := range 6 {
		if n := strings.Count(bodyOf(t, w, question), `"name":"pod-`); n != 400 {
			t.Errorf("for the %d. time: %d objects of 400", again+1, n)
		}
	}
}
