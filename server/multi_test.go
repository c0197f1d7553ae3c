package server

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// kindsList is what tests read of an answer about many resources.
type kindsAnswered struct {
	Kind     string
	Metadata struct {
		Continue           string
		RemainingItemCount int
		Resources          []kindState
	}
	Items []struct {
		Kind, APIVersion string
		Metadata         struct{ Namespace, Name string }
	}
}

func (a kindsAnswered) String() string {
	var names []string
	for _, i := range a.Items {
		names = append(names, i.Kind+"/"+i.Metadata.Name)
	}
	return strings.Join(names, " ")
}

func (a kindsAnswered) states() string {
	var states []string
	for _, r := range a.Metadata.Resources {
		text := r.Resource + ":" + string(r.State)
		if !r.Answered {
			text += "!"
		}
		states = append(states, text)
	}
	return strings.Join(states, " ")
}

func TestQueryManyKinds(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		parameters []string
		want       string
		states     string
	}{
		{nil, "Node/n1 Pod/one Pod/two Pod/three", "events:unwatched! nodes:live pods:live secrets:forbidden!"},
		{[]string{"resources", "pods,nodes"}, "Node/n1 Pod/one Pod/two Pod/three", "nodes:live pods:live"},
		{[]string{"resources", "p*"}, "Pod/one Pod/two Pod/three", "pods:live"},
		{[]string{"resources", "pods,secrets"}, "Pod/one Pod/two Pod/three", "pods:live secrets:forbidden!"},
		{[]string{"filter", `object.metadata.name.startsWith("t") || object.kind == "Node"`}, "Node/n1 Pod/two Pod/three", "events:unwatched! nodes:live pods:live secrets:forbidden!"},
		{[]string{"labelSelector", "app=web", "fields", "metadata.name"}, "Pod/one Pod/three", "events:unwatched! nodes:live pods:live secrets:forbidden!"},
		{[]string{"resources", "pods,nodes", "sort", "-metadata.name"}, "Pod/two Pod/three Pod/one Node/n1", "nodes:live pods:live"},
		{[]string{"resources", "pods,nodes", "index", "node:n2"}, "Pod/two", "nodes:live! pods:live"},
		{[]string{"resources", "pods", "namespace", "none"}, "", "pods:live"},
	} {
		var got kindsAnswered
		h := w.getJSON(t, with("/v1/query", c.parameters...), &got)
		if got.Kind != "List" || got.String() != c.want || got.states() != c.states {
			t.Errorf("%v: %s %q\n%s", c.parameters, got.Kind, got, got.states())
		}
		if missing := strings.Contains(c.states, "!"); (h.Get("Informerd-Unanswered") != "") != missing {
			t.Errorf("%v: Informerd-Unanswered %q", c.parameters, h.Get("Informerd-Unanswered"))
		}
	}
}

func TestQueryManyKindsMistakes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		parameters []string
		code       int
		message    string
	}{
		{[]string{"resources", "pots"}, 404, "column 1"},
		{[]string{"resources", "pods,,nodes"}, 400, "column 6: a name is missing"},
		{[]string{"resources", "pods,*.batch"}, 404, "column 6: no resource is called like *.batch"},
		{[]string{"resources", "[a"}, 400, "not a glob"},
		{[]string{"resources", "secrets"}, 503, "secrets is forbidden"},
		{[]string{"resources", "events"}, 503, "events is unwatched"},
		{[]string{"resources", "pods,nodes", "index", "colour:red"}, 400, "there is no index"},
		{[]string{"resourceVersion", "5"}, 400, "unknown parameter"},
		{[]string{"cluster", "west"}, 400, "west"},
		{[]string{"continue", "rubbish"}, 400, "no token"},
	} {
		rec := w.get(t, with("/v1/query", c.parameters...))
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.message) {
			t.Errorf("%v: %d %s", c.parameters, rec.Code, rec.Body)
		}
	}
}

func TestQueryManyKindsPages(t *testing.T) {
	w := newWorld(t)
	var all []string
	token := ""
	for range 10 {
		var got kindsAnswered
		parameters := []string{"resources", "nodes,pods", "limit", "3", "sort", "metadata.name"}
		if token != "" {
			parameters = append(parameters, "continue", token)
		}
		w.getJSON(t, with("/v1/query", parameters...), &got)
		all = append(all, strings.Fields(got.String())...)
		if got.states() != "nodes:live pods:live" {
			t.Errorf("states %s", got.states())
		}
		w.pods.apply(t, cache.Deleted, pod("a", "two", "db", "n2", 300))
		if token = got.Metadata.Continue; token == "" {
			break
		}
		if other := w.get(t, with("/v1/query", "resources", "pods", "limit", "3", "sort", "metadata.name", "continue", token)); other.Code != 400 {
			t.Errorf("a token is good for other resources: %d", other.Code)
		}
	}
	if want := "Node/n1 Pod/one Pod/three Pod/two"; strings.Join(all, " ") != want {
		t.Errorf("%v, want %s", all, want)
	}
}

func TestQueryManyKindsNotModified(t *testing.T) {
	w := newWorld(t)
	tag := w.get(t, "/v1/query").Header().Get("ETag")
	if rec := w.get(t, "/v1/query", "If-None-Match", tag); tag == "" || rec.Code != http.StatusNotModified {
		t.Errorf("tag %q: %d", tag, rec.Code)
	}
	w.pods.set(cache.Stale, "watch is down")
	if rec := w.get(t, "/v1/query", "If-None-Match", tag); rec.Code != 200 || !strings.Contains(rec.Header().Get("Warning"), "pods is stale") {
		t.Errorf("another state: %d %v", rec.Code, rec.Header())
	}
}

func TestGroups(t *testing.T) {
	w := sorted(t)
	for _, c := range []struct {
		path string
		want string
	}{
		{with(podObjects, "groupBy", "metadata.namespace", "agg", "count(),sum(spec.containers[*].resources.requests.memory)"),
			`[{"group":{"metadata.namespace":"a"},"values":{"count()":2,"sum(spec.containers[*].resources.requests.memory)":"1600Mi"}},{"group":{"metadata.namespace":"b"},"values":{"count()":2,"sum(spec.containers[*].resources.requests.memory)":null}}]`},
		{with(podObjects, "groupBy", "spec.priority", "sort", "-count()", "limit", "1"), `[{"group":{"spec.priority":9},"values":{"count()":2}}]`},
		{with(podObjects, "agg", "avg(spec.priority)", "filter", "object.metadata.namespace == 'a'"), `[{"group":{},"values":{"avg(spec.priority)":9.5}}]`},
		{with("/v1/query", "groupBy", "kind"), `[{"group":{"kind":"Node"},"values":{"count()":1}},{"group":{"kind":"Pod"},"values":{"count()":4}}]`},
	} {
		var got struct {
			Kind     string
			Metadata listMeta
			Items    []any
		}
		w.getJSON(t, c.path, &got)
		if text := encoded(t, got.Items); text != c.want || got.Kind != "GroupList" {
			t.Errorf("%s: %s %s", c.path, got.Kind, text)
		}
		if cut := strings.Contains(c.path, "limit"); got.Metadata.Truncated != cut {
			t.Errorf("%s: metadata %+v", c.path, got.Metadata)
		}
	}
	rows, err := csv.NewReader(w.get(t, with(podObjects, "groupBy", "metadata.namespace", "agg", "max(spec.priority)", "output", "csv")).Body).ReadAll()
	if want := [][]string{{"metadata.namespace", "max(spec.priority)"}, {"a", "10"}, {"b", "9"}}; err != nil || !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("csv %v, %v", rows, err)
	}
}

func TestFacets(t *testing.T) {
	w := sorted(t)
	for _, path := range []string{podObjects, "/v1/query"} {
		var got struct {
			Facets []facet
			Items  []any
		}
		w.getJSON(t, with(path, "facets", "spec.priority", "limit", "1", "fieldSelector", "metadata.namespace"), &got)
		want := `[{"path":"spec.priority","values":[{"value":9,"objects":2},{"value":10,"objects":1},{"value":null,"objects":1}]}]`
		if text := encoded(t, got.Facets); text != want || len(got.Items) != 1 {
			t.Errorf("%s: %s and %d items", path, text, len(got.Items))
		}
	}
}

func TestGroupMistakes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		field, message string
		parameters     []string
	}{
		{"groupBy", "column 1", []string{"groupBy", ""}},
		{"groupBy", "column 3", []string{"groupBy", "a..b"}},
		{"agg", "there is no function", []string{"agg", "median(a)"}},
		{"facets", "column 3", []string{"facets", "a["}},
		{"sort", "they have kind, count()", []string{"groupBy", "kind", "sort", "metadata.name"}},
		{"fields", "groups instead", []string{"groupBy", "kind", "fields", "a"}},
		{"continue", "groups instead", []string{"groupBy", "kind", "continue", "a"}},
		{"facets", "come with the first", []string{"facets", "kind", "continue", "a"}},
		{"facets", "no place", []string{"facets", "kind", "output", "csv"}},
		{"resourceVersion", "watch=true", []string{"groupBy", "kind", "watch", "true", "resourceVersion", "5"}},
		{"sort", "watch=true", []string{"facets", "kind", "watch", "true", "sort", "kind"}},
		{"explain", "watch=true", []string{"explain", "true", "watch", "true"}},
		{"explain", "found before", []string{"explain", "true", "continue", "x"}},
		{"explain", "a plan is JSON", []string{"explain", "true", "output", "csv"}},
		{"explain", "output=yaml", []string{"explain", "true", "output", "yaml"}},
	} {
		s := wantStatus(t, w.get(t, with(podObjects, c.parameters...)), http.StatusBadRequest, "BadRequest", c.message)
		if s.Details.Causes[0].Field != c.field {
			t.Errorf("%v: field %s", c.parameters, s.Details.Causes[0].Field)
		}
	}
}

func TestExplain(t *testing.T) {
	w := newWorld(t)
	var got struct {
		Kind  string
		Items []explanation
	}
	w.getJSON(t, with(podObjects, "explain", "true", "filter", `object.spec.nodeName == "n1" && object.status.phase == "Running"`), &got)
	if len(got.Items) != 1 || got.Kind != "Explanation" {
		t.Fatalf("%+v", got)
	}
	e := got.Items[0]
	if e.Resource != "pods" || e.Objects != 3 || !slices.Equal(e.Indexes, []string{"node"}) || e.Candidates != 2 || e.Scanned != 2 || e.Matched != 2 {
		t.Errorf("%+v", e)
	}
	want := advice{"status.phase", "- match: [pods]\n  indexes: {\"status.phase\": \"status.phase\"}"}
	if len(e.Advice) != 1 || e.Advice[0] != want {
		t.Errorf("advice %q", e.Advice)
	}
	for _, c := range []struct {
		parameters                 []string
		indexes                    []string
		candidates, scanned, match int
		sortedBy                   string
		advice                     []string
	}{
		{[]string{"filter", `object.spec.nodeName > "n1"`}, []string{"node"}, 1, 1, 1, "", nil},
		{[]string{"filter", `object.spec.containers.exists(c, c.image.startsWith("registry.example/"))`}, []string{"image"}, 3, 3, 3, "", nil},
		{[]string{"filter", `object.spec.containers.exists(c, c.image < "registry")`}, []string{"image"}, 0, 0, 0, "", nil},
		{[]string{"filter", `object.?spec.priority.orValue(0) > 0`}, nil, 3, 3, 0, "", []string{"spec.priority"}},
		{[]string{"filter", `object.?spec.priority.orValue(0) >= 0`, "sort", "-spec.priority"}, nil, 3, 3, 3, "", []string{"spec.priority"}}, // to sort
		{[]string{"sort", "-spec.priority"}, nil, 3, 0, 3, "", []string{"spec.priority"}},
		{[]string{"sort", "-spec.nodeName", "limit", "1"}, nil, 3, 0, 3, "node", nil},
		{[]string{"sort", "-spec.nodeName", "limit", "1", "labelSelector", "app=web"}, []string{"label"}, 2, 0, 2, "node", nil},
		{[]string{"sort", "spec.nodeName,metadata.name", "limit", "1"}, nil, 3, 0, 3, "", nil},
	} {
		var got struct{ Items []explanation }
		w.getJSON(t, with(podObjects, append(c.parameters, "explain", "true")...), &got)
		e := got.Items[0]
		var advised []string
		for _, a := range e.Advice {
			advised = append(advised, a.Path)
		}
		if !slices.Equal(e.Indexes, c.indexes) || e.Candidates != c.candidates || e.Scanned != c.scanned || e.Matched != c.match || e.SortedBy != c.sortedBy || !slices.Equal(advised, c.advice) {
			t.Errorf("%v: %+v", c.parameters, e)
		}
	}
	var many struct {
		Items    []explanation
		Metadata listMeta
	}
	w.getJSON(t, with("/v1/query", "explain", "true", "fieldSelector", "metadata.name=one,metadata.namespace=a"), &many)
	if len(many.Items) != 2 || many.Items[1].Candidates != 1 || len(many.Metadata.Resources) != 4 {
		t.Errorf("%+v", many)
	}
}

func FuzzGroupParameters(f *testing.F) {
	f.Add("metadata.namespace", "count(),sum(a)", "-count()")
	f.Fuzz(func(t *testing.T, groupBy, agg, sort string) {
		rec := sorted(t).get(t, with(podObjects, "groupBy", groupBy, "agg", agg, "sort", sort))
		if rec.Code != http.StatusOK && rec.Code != http.StatusBadRequest && rec.Code != http.StatusUnprocessableEntity && rec.Code != http.StatusRequestURITooLong {
			t.Errorf("%q %q %q: %d %s", groupBy, agg, sort, rec.Code, rec.Body)
		}
	})
}
