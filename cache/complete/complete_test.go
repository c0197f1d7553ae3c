package complete

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pods is a store of n pods; one in ten has a volume, each tenth is of tier b.
func pods(t testing.TB, n int) *cache.Reader {
	t.Helper()
	return new(cache.View).Hold(podStore(t, n)).Reader(cache.WholeScope())
}

func podStore(t testing.TB, n int) *cache.Store {
	t.Helper()
	spec := cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}, Kind: "Pod", Namespaced: true,
		Indexes: map[string]string{"node": "spec.nodeName"}}
	store, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var objects []*cache.Object
	for i := range n {
		more, tier := "", "a"
		if i%10 == 0 {
			more, tier = `,"volumes":[{"name":"v","configMap":{"name":"c"}}]`, "b"
		}
		o, err := store.Decode(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-%d","namespace":"ns-%d","uid":"u%d","resourceVersion":"%d",
			"labels":{"app.kubernetes.io/name":"web","tier":%q},"annotations":{"it's\\":"x"}},"spec":{"nodeName":"node-%d","priority":%d,"containers":[{"image":"web:%d","env":[{"name":"A"}]}]%s},"status":null}`,
			i, i%3, i, i+1, tier, i%4, i%2, i%2, more), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	store.Replace("", objects, "100000")
	return store
}

func text(a *Answer) string {
	var out []string
	for _, i := range a.Items {
		out = append(out, fmt.Sprintf("%s %s %d", i.Value, i.Kind, i.Objects))
	}
	return strings.Join(out, "\n")
}

func TestPaths(t *testing.T) {
	store := pods(t, 20)
	a, err := Paths(t.Context(), store, nil, Query{Prefix: "spec."})
	if err != nil {
		t.Fatal(err)
	}
	want := `spec.containers array 20
spec.nodeName string 20
spec.priority number 20
spec.volumes array 2
spec.containers[*] object 20
spec.volumes[*] object 2
spec.containers[*].env array 20
spec.containers[*].image string 20
spec.volumes[*].configMap object 2
spec.volumes[*].name string 2
spec.containers[*].env[*] object 20
spec.volumes[*].configMap.name string 2
spec.containers[*].env[*].name string 20`
	if text(a) != want || a.Sampled != 20 || a.Objects != 20 || a.Truncated {
		t.Errorf("paths:\n%s\n%+v\nwant:\n%s", text(a), a, want)
	}
	if a, err = Paths(t.Context(), store, nil, Query{Prefix: "metadata.annotations["}); err != nil || text(a) != `metadata.annotations['it\'s\\'] string 20` {
		t.Errorf("a key to quote: %s, %v", text(a), err)
	}
	if a, err = Paths(t.Context(), store, nil, Query{Prefix: "stat"}); err != nil || text(a) != "status null 20" {
		t.Errorf("null: %s, %v", text(a), err)
	}
	if a, err = Paths(t.Context(), store, nil, Query{Limit: 2}); err != nil || len(a.Items) != 2 || !a.Truncated {
		t.Errorf("limit: %s, %v", text(a), err)
	}
	if a, err = Paths(t.Context(), pods(t, 1000), nil, Query{Limit: 1}); err != nil || a.Sampled != pathSample || a.Objects != 1000 {
		t.Errorf("sample: %+v, %v", a, err)
	}
	if a, err = Paths(t.Context(), pods(t, 0), nil, Query{}); err != nil || len(a.Items) != 0 {
		t.Errorf("no objects: %s, %v", text(a), err)
	}
}

// TestPathsParse: whatever is proposed is a path, and selects something.
func TestPathsParse(t *testing.T) {
	store := pods(t, 10)
	a, err := Paths(t.Context(), store, nil, Query{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := store.Select(t.Context(), cache.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range a.Items {
		p, err := rawjson.ParsePath(i.Value)
		if err != nil || p.String() != i.Value {
			t.Errorf("%s parses as %q, %v", i.Value, p, err)
			continue
		}
		extractor, err := rawjson.CompileExtractor([]rawjson.Path{p})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range objects.Objects {
			raw, err := o.JSON()
			if err != nil {
				t.Fatal(err)
			}
			has := false
			if err := extractor.Each(raw, func(rawjson.Value) bool { has = true; return false }); err != nil {
				t.Fatal(err)
			}
			if has {
				found++
			}
		}
		if found != i.Objects {
			t.Errorf("%s: %d objects have it, %d proposed", i.Value, found, i.Objects)
		}
	}
}

func TestValues(t *testing.T) {
	store := pods(t, 100)
	for path, want := range map[string]string{
		"spec.nodeName":                             "node-0  25\nnode-1  25\nnode-2  25\nnode-3  25",
		"metadata.namespace":                        "ns-0  34\nns-1  33\nns-2  33",
		"metadata.labels":                           "app.kubernetes.io/name  100\ntier  100",
		"metadata.labels.tier":                      "a  90\nb  10",
		"spec.containers[*].image":                  "web:0  50\nweb:1  50",
		"spec.priority":                             "0  50\n1  50",
		"spec.volumes":                              "",
		"spec.volumes[*].name":                      "v  10",
		"metadata.labels.tier.deeper":               "",
		"metadata.labels['app.kubernetes.io/name']": "web  100",
	} {
		p, err := rawjson.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Values(t.Context(), store, p, Query{})
		if err != nil || text(a) != want {
			t.Errorf("%s:\n%s, %v\nwant:\n%s", path, text(a), err, want)
		}
		if indexed := strings.HasPrefix(path, "spec.n") || strings.HasPrefix(path, "metadata.") && !strings.HasSuffix(path, "deeper"); (a.Objects == 0) != indexed {
			t.Errorf("%s: sampled %d of %d", path, a.Sampled, a.Objects)
		}
		if a, err = Values(t.Context(), store, p, Query{Prefix: "node-3"}); err != nil || len(a.Items) > 1 || path == "spec.nodeName" && len(a.Items) != 1 {
			t.Errorf("%s with a prefix: %s, %v", path, text(a), err)
		}
	}
}

func TestResources(t *testing.T) {
	var all []*cache.View
	store := podStore(t, 3)
	for _, line := range []string{"pods Pod po", "pods.metrics.k8s.io PodMetrics -", "poddisruptionbudgets.policy PodDisruptionBudget pdb", "services Service svc", "deployments.apps Deployment deploy"} {
		f := strings.Fields(line)
		all = append(all, (&cache.View{Spec: cache.Spec{Resource: cache.Resource{GVR: schema.ParseGroupResource(f[0]).WithVersion("v1")},
			Kind: f[1], Singular: strings.ToLower(f[1]), ShortNames: f[2:]}}).Hold(store))
	}
	for prefix, want := range map[string][]string{
		"po":      {"pods", "poddisruptionbudgets.policy", "pods.metrics.k8s.io"},
		"Pods":    {"pods", "pods.metrics.k8s.io"},
		"sv":      {"services"},
		"deploy":  {"deployments.apps"},
		"podm":    {"pods.metrics.k8s.io"},
		"nothing": nil,
	} {
		var got []string
		for _, i := range Resources(all, cache.WholeSight(), Query{Prefix: prefix}).Items {
			if i.Objects != 3 {
				t.Errorf("%s: %d objects, want 3", i.Value, i.Objects)
			}
			got = append(got, i.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", prefix, got, want)
		}
	}
}

func BenchmarkPaths(b *testing.B) {
	store := pods(b, 20_000)
	for b.Loop() {
		if _, err := Paths(b.Context(), store, nil, Query{Prefix: "spec."}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValues(b *testing.B) {
	store := pods(b, 20_000)
	p, err := rawjson.ParsePath("spec.containers[*].image")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Values(b.Context(), store, p, Query{}); err != nil {
			b.Fatal(err)
		}
	}
}

const document = `{"openapi":"3.0.0","components":{"schemas":{
 "api.Meta":{"type":"object","properties":{"name":{"type":"string"},"managedFields":{"type":"array","items":{"type":"object"}}}},
 "api.Pod":{"type":"object","properties":{"metadata":{"allOf":[{"$ref":"#/components/schemas/api.Meta"}],"default":{}},
   "spec":{"$ref":"#/components/schemas/api.Spec"},"broken":{"$ref":"#/components/schemas/api.Gone"}},
   "x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Pod"}]},
 "api.Spec":{"type":"object","properties":{"nodeName":{"type":"string"},"replicas":{"type":"integer"},"on":{"type":"boolean"},
   "a.b":{"type":"object","additionalProperties":{"type":"string"}},"port":{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]},
   "within":{"type":"array","items":{"$ref":"#/components/schemas/api.Spec"}}}},
 "api.DeleteOptions":{"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Pod"},{"group":"apps","version":"v1","kind":"X"}]}}}}`

func TestPathsOfSchema(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	possible, err := ParseSchema([]byte(document), kind, []string{"metadata.managedFields"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Paths(t.Context(), pods(t, 0), possible, Query{})
	if err != nil {
		t.Fatal(err)
	}
	want := `metadata object 0
spec object 0
metadata.name string 0
spec.nodeName string 0
spec.on bool 0
spec.port string 0
spec.replicas number 0
spec.within array 0
spec['a.b'] object 0` // a schema within itself ends where it begins again
	if text(a) != want || a.Sampled != 0 {
		t.Errorf("paths:\n%s\nwant:\n%s", text(a), want)
	}
	if a, err = Paths(t.Context(), pods(t, 20), possible, Query{Prefix: "spec.", Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	if all := text(a); !strings.HasPrefix(all, "spec.containers array 20\nspec.nodeName string 20\n") || !strings.HasSuffix(all, "\nspec.on bool 0\nspec.port string 0\nspec.replicas number 0\nspec.within array 0") ||
		strings.Count(all, "spec.nodeName ") != 1 {
		t.Errorf("beside objects:\n%s", all)
	}
	for _, bad := range []string{"", "{}", "[]"} {
		if _, err := ParseSchema([]byte(bad), kind, nil); err == nil {
			t.Errorf("ParseSchema(%q) does not fail", bad)
		}
	}
}
