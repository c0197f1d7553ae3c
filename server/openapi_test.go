package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
)

func TestOpenAPIIsValid(t *testing.T) {
	w := newWorld(t)
	doc, err := openapi3.NewLoader().LoadFromData(w.get(t, "/v1/openapi.json").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenAPIDescribesRoutesAndParameters(t *testing.T) {
	w := newWorld(t)
	doc := w.describe()
	err := chi.Walk(w.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != w.methodOf(route) || !described(route) {
			return nil
		}
		op := doc.Paths[strings.Replace(route, "*", "{value}", 1)].operation()
		if op.Summary == "" || op.Responses["200"].Description == "" {
			t.Errorf("routeDocs does not describe %s", route)
		}
		for _, name := range w.parameters[route] {
			i := slices.IndexFunc(op.Parameters, func(p openParameter) bool { return p.Name == name && p.In == "query" })
			if i < 0 || op.Parameters[i].Description == "" {
				t.Errorf("parameterDocs does not describe %s of %s", name, route)
			}
		}
		for _, p := range op.Parameters {
			if p.Description == "" {
				t.Errorf("%s of %s has no description", p.Name, route)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for route := range routeDocs {
		if _, ok := w.parameters[route]; !ok {
			t.Errorf("routeDocs describes %s, which is not served", route)
		}
	}
}

// methodOf is what a route is for.
func (w *world) methodOf(route string) string {
	if w.posts[route] {
		return http.MethodPost
	}
	return http.MethodGet
}

// What is answered is of the shape described: no field without a name there.
func TestAnswersAreAsDescribed(t *testing.T) {
	w := newWorld(t)
	for path, schema := range map[string]string{
		with(podObjects, "facets", "kind", "limit", "1"):                           "ObjectList",
		with(podObjects, "groupBy", "kind", "agg", "count(),sum(metadata.name)"):   "GroupList",
		with(podObjects, "explain", "true", "fieldSelector", "spec.priority=1"):    "Explanation",
		with("/v1/query", "filter", "object.spec.nodeName.size() > 0 || object.x"): "ObjectList",
		with(podObjects, "view", "table"):                                          "Table",
		podObjects + "?limit=x":                                                    "Status",
	} {
		var answer any
		decode(t, w.get(t, path).Body, &answer)
		checkShape(t, path, answer, schemas[schema])
	}
}

func checkShape(t *testing.T, at string, value any, schema openSchema) {
	t.Helper()
	if schema.Ref != "" {
		schema = schemas[strings.TrimPrefix(schema.Ref, "#/components/schemas/")]
	}
	switch v := value.(type) {
	case map[string]any:
		if schema.Properties == nil || strings.HasSuffix(at, ".items[]") && schema.Properties["metadata"].Type == "object" {
			return // open: an object, or a map
		}
		for name, member := range v {
			described, ok := schema.Properties[name]
			if !ok {
				t.Errorf("%s.%s is not described", at, name)
			}
			checkShape(t, at+"."+name, member, described)
		}
	case []any:
		if schema.Items == nil {
			t.Errorf("%s is a list, which is not described", at)
			return
		}
		for _, item := range v {
			checkShape(t, at+"[]", item, *schema.Items)
		}
	}
}
