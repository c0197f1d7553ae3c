package server

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// sorted is a world with pods that differ in what they can be sorted by.
func sorted(t *testing.T) *world {
	w := newWorld(t)
	w.pods.replace(t, "200",
		`{"metadata":{"name":"p1","namespace":"a","uid":"1","resourceVersion":"9","creationTimestamp":"2026-01-03T00:00:00Z"},"spec":{"priority":10,"containers":[{"name":"x","resources":{"requests":{"memory":"1Gi"}}},{"name":"y","resources":{"requests":{"memory":"64Mi"}}}]}}`,
		`{"metadata":{"name":"p2","namespace":"a","uid":"2","resourceVersion":"10","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"priority":9,"containers":[{"name":"x","resources":{"requests":{"memory":"512Mi"}}}]}}`,
		`{"metadata":{"name":"p3","namespace":"b","uid":"3","resourceVersion":"11","creationTimestamp":"2026-01-02T00:00:00Z"},"spec":{"containers":[{"name":"\"q\", x"}]}}`,
		`{"metadata":{"name":"p4","namespace":"b","uid":"4","resourceVersion":"12","creationTimestamp":"2026-01-02T00:00:00Z"},"spec":{"priority":9}}`,
	)
	return w
}

func TestSort(t *testing.T) {
	w := sorted(t)
	for order, want := range map[string]string{
		"spec.priority":                                  "p2 p4 p1 p3",
		"-spec.priority":                                 "p1 p2 p4 p3",
		"-spec.priority,-metadata.name":                  "p1 p4 p2 p3",
		"metadata.creationTimestamp,-metadata.namespace": "p2 p3 p4 p1",
		"metadata.resourceVersion":                       "p1 p2 p3 p4",
		"spec.containers[*].resources.requests.memory":   "p1 p2 p3 p4",
		"-spec.containers[*].resources.requests.memory":  "p1 p2 p3 p4",
		"-metadata.uid":                                  "p4 p3 p2 p1",
		"nowhere,-metadata.name":                         "p4 p3 p2 p1",
	} {
		var got podList
		w.getJSON(t, with(podObjects, "sort", order), &got)
		if got.names() != want {
			t.Errorf("sort=%s: %s, want %s", order, got.names(), want)
		}
	}
}

// Pages of a sorted list are cut out of one version.
func TestSortedPages(t *testing.T) {
	w := sorted(t)
	var names []string
	token := ""
	for {
		var got podList
		parameters := []string{"sort", "-metadata.name", "limit", "1"}
		if token != "" {
			parameters = append(parameters, "continue", token)
		}
		w.getJSON(t, with(podObjects, parameters...), &got)
		names = append(names, got.names())
		if remaining := got.Metadata.RemainingItemCount; remaining != nil && *remaining != int64(4-len(names)) {
			t.Errorf("%d remain", *remaining)
		}
		w.pods.apply(t, "DELETED", pod("a", got.names(), "", "", 300+len(names)))
		if token = got.Metadata.Continue; token == "" {
			break
		}
		if rec := w.get(t, with(podObjects, "sort", "metadata.name", "limit", "1", "continue", token)); rec.Code != 400 {
			t.Errorf("a token is good for another order: %d", rec.Code)
		}
	}
	if want := []string{"p4", "p3", "p2", "p1"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestCountNone(t *testing.T) {
	w := newWorld(t)
	var got podList
	w.getJSON(t, with(podObjects, "limit", "1", "count", "none"), &got)
	if got.Metadata.RemainingItemCount != nil || got.Metadata.Continue == "" {
		t.Errorf("metadata %+v", got.Metadata)
	}
}

func TestOutputs(t *testing.T) {
	w := sorted(t)
	lines := w.get(t, with(podObjects, "output", "ndjson", "fields", "metadata.name", "limit", "2"))
	if want := "{\"metadata\":{\"name\":\"p1\"}}\n{\"metadata\":{\"name\":\"p2\"}}\n"; lines.Body.String() != want {
		t.Errorf("ndjson: %s", lines.Body)
	}
	if h := lines.Header(); h.Get("Content-Type") != "application/x-ndjson" || h.Get("Informerd-Continue") == "" {
		t.Errorf("ndjson: headers %v", h)
	}

	var whole, fromYAML any
	w.getJSON(t, podObjects, &whole)
	text := w.get(t, with(podObjects, "output", "yaml"))
	if err := yaml.Unmarshal(text.Body.Bytes(), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if a, b := encoded(t, whole), encoded(t, fromYAML); a != b {
		t.Errorf("yaml holds %s\nnot %s", b, a)
	}
	if empty := w.get(t, with(podObjects, "output", "yaml", "namespace", "none")); !strings.HasSuffix(empty.Body.String(), "items: []\n") {
		t.Errorf("empty yaml: %s", empty.Body)
	}

	rows, err := csv.NewReader(w.get(t, with(podObjects, "output", "csv", "fields",
		"metadata.name,spec.containers[*].name,spec.priority,spec.containers[0].resources")).Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"metadata.name", "spec.containers[*].name", "spec.priority", "spec.containers[0].resources"},
		{"p1", "x;y", "10", `{"requests":{"memory":"1Gi"}}`},
		{"p2", "x", "9", `{"requests":{"memory":"512Mi"}}`},
		{"p3", `"q", x`, "", ""},
		{"p4", "", "9", ""},
	}
	if !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("csv %q", rows)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestViewMetadata(t *testing.T) {
	w := newWorld(t)
	var got podList
	w.getJSON(t, with(podObjects, "view", "metadata", "limit", "1"), &got)
	if got.Kind != "PartialObjectMetadataList" || got.APIVersion != partialVersion || got.Items[0].Kind != "PartialObjectMetadata" ||
		got.Items[0].Metadata.Name != "one" || got.Items[0].Spec != nil {
		t.Errorf("%+v", got)
	}
}

func TestShapeMistakes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ parameter, value, message string }{
		{"sort", "", "column 1"},
		{"sort", "a,-", "column 4"},
		{"sort", "a,b..c", "column 5"},
		{"sort", "a,-a", "named twice"},
		{"sort", "a,b,c,d,e,f,g,h,i", "at most 8"},
		{"fields", "a,a", "named twice"},
		{"output", "xml", "json, yaml, csv, ndjson and table"},
		{"output", "", "json, yaml, csv, ndjson and table"},
		{"view", "half", "not one of: full, metadata, table"},
		{"count", "some", "not one of: exact, none"},
	} {
		rec := w.get(t, with(podObjects, c.parameter, c.value))
		s := wantStatus(t, rec, http.StatusBadRequest, "BadRequest", c.message)
		if s.Details.Causes[0].Field != c.parameter {
			t.Errorf("%s=%s: field %s", c.parameter, c.value, s.Details.Causes[0].Field)
		}
	}
	for _, path := range []string{
		with(podObjects, "watch", "true", "sort", "a"),
		with(podObjects, "watch", "true", "output", "csv"),
		with(podObjects, "output", "csv", "pretty", "true"),
		with(podObjects, "view", "metadata", "fields", "spec"),
		with(podObjects, "view", "metadata", "output", "csv"),
	} {
		wantStatus(t, w.get(t, path), http.StatusBadRequest, "BadRequest", "not possible")
	}
}

func FuzzSortParameter(f *testing.F) {
	f.Add("a.b,-c[*].d['e,f']")
	f.Fuzz(func(t *testing.T, text string) { fuzzParameter(t, "sort", text) })
}

// fuzzParameter: whatever a parameter says, the answer is a list or a mistake.
func fuzzParameter(t *testing.T, name, text string) {
	rec := sorted(t).get(t, with(podObjects, name, text))
	if rec.Code != http.StatusOK && rec.Code != http.StatusBadRequest && rec.Code != http.StatusRequestURITooLong && rec.Code != http.StatusUnprocessableEntity {
		t.Errorf("%s=%q: %d %s", name, text, rec.Code, rec.Body)
	}
}
