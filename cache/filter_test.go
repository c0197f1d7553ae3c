package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/filter"
	"github.com/informerd/informerd/cache/summary"
)

func compile(text string) (*filter.Filter, error) {
	return filter.Compile(text, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
}

func mustFilter(tb testing.TB, text string) *filter.Filter {
	tb.Helper()
	f, err := compile(text)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func names(objects []*cache.Object) []string {
	out := []string{}
	for _, o := range objects {
		out = append(out, o.Key().String())
	}
	return out
}

// TestFilterEqualsSelectors asks the same in CEL, where indexes may help, and
// with selectors.
func TestFilterEqualsSelectors(t *testing.T) {
	s := cache.FilledStore(t, 500)
	for _, test := range []struct {
		cel, labels, fields string
		index               string // that must be used
	}{
		{cel: `object.spec.nodeName == "node-007"`, fields: "spec.nodeName=node-007", index: "node"},
		{cel: `"node-007" == object.spec.nodeName && true`, fields: "spec.nodeName=node-007", index: "node"},
		{cel: `object.spec.nodeName in ["node-007", "node-008"]`, fields: "spec.nodeName in (node-007,node-008)", index: "node"},
		{cel: `object.spec.nodeName == "node-007" || object.spec.nodeName == "node-009"`, fields: "spec.nodeName in (node-007,node-009)", index: "node"},
		{cel: `object.status.phase != "Running"`, fields: "status.phase!=Running", index: "phase"},
		{cel: `object.spec.containers.exists(c, c.image == "registry.example.com/team-03/app-0003:1.3.3")`, fields: "spec.containers[*].image=registry.example.com/team-03/app-0003:1.3.3", index: "image"},
		{cel: `object.metadata.labels.tier == "tier-1"`, labels: "tier=tier-1", index: "label"},
		{cel: `object.metadata.labels["app.kubernetes.io/component"] in ["backend"] && object.metadata.labels.team != "team-01"`, labels: "app.kubernetes.io/component in (backend),team!=team-01", index: "label"},
		{cel: `object.?spec.nodeName.orValue("") == "node-007"`, fields: "spec.nodeName=node-007", index: "node"},
		{cel: `object.?spec.?nodeName.orValue("none") in ["node-007", "node-011"]`, fields: "spec.nodeName in (node-007,node-011)", index: "node"},
		{cel: `object.?spec.nodeName.orValue("node-007") == "node-007"`, fields: "spec.nodeName in (node-007,)"},
		{cel: `object.?status.phase.orValue("") != "Running"`, fields: "status.phase!=Running", index: "phase"},
		{cel: `object.metadata.?labels["tier"].orValue("") == "tier-1"`, labels: "tier=tier-1", index: "label"},
		{cel: `object.spec.containers.exists(c, c.?image.orValue("") == "registry.example.com/team-03/app-0003:1.3.3")`, fields: "spec.containers[*].image=registry.example.com/team-03/app-0003:1.3.3", index: "image"},
		{cel: `object.metadata.namespace.startsWith("team-03")`, fields: "metadata.namespace=team-03", index: "namespace"},
		{cel: `object.spec.nodeName.startsWith("node-007")`, fields: "spec.nodeName=node-007", index: "node"},
		{cel: `has(object.metadata.labels.nothing)`, labels: "nothing", index: "label"},
		{cel: `"tier" in object.metadata.labels`, labels: "tier", index: "label"},
		{cel: `object.metadata.namespace == "team-03"`, fields: "metadata.namespace=team-03", index: "namespace"},
		{cel: `object.spec.restartPolicy == "Always" && object.spec.priority == 0`, fields: "spec.restartPolicy=Always,spec.priority=0"},
	} {
		t.Run(test.cel, func(t *testing.T) {
			got, err := s.Select(context.Background(), cache.Query{Filter: mustFilter(t, test.cel)})
			if err != nil {
				t.Fatal(err)
			}
			selector, err := labels.Parse(test.labels)
			if err != nil {
				t.Fatal(err)
			}
			fields, err := cache.ParseFieldSelector(test.fields)
			if err != nil {
				t.Fatal(err)
			}
			want, err := s.Select(context.Background(), cache.Query{Labels: selector, Fields: fields})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(names(got.Objects), names(want.Objects)) {
				t.Errorf("%d objects, want %d", len(got.Objects), len(want.Objects))
			}
			if used := slices.Contains(got.Plan.Indexes, test.index); used != (test.index != "") {
				t.Errorf("indexes %v, want %q", got.Plan.Indexes, test.index)
			}
		})
	}
}

// A value too long for an index is found all the same.
func TestFilterFindsWhatIsNotIndexed(t *testing.T) {
	s, err := cache.NewStore(cache.PodSpec(), cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	long := "n" + strings.Repeat("x", 2000)
	var objects []*cache.Object
	for name, node := range map[string]string{"a": long, "b": "n1", "c": "m1", "d": ""} {
		o, err := s.Decode([]byte(`{"metadata":{"name":"`+name+`","namespace":"x","resourceVersion":"1"},"spec":{"nodeName":"`+node+`"}}`), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	s.Replace("", objects, "1")
	for expression, want := range map[string]string{
		`object.spec.nodeName.startsWith("n")`:     "x/a x/b",
		`object.spec.nodeName != "n1"`:             "x/a x/c x/d",
		`object.spec.nodeName == "` + long + `"`:   "x/a",
		`object.spec.nodeName in ["n1", "", "zz"]`: "x/b x/d",
	} {
		r, err := s.Select(context.Background(), cache.Query{Filter: mustFilter(t, expression)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(r.Objects), " "); got != want {
			t.Errorf("%.50s: %s, want %s", expression, got, want)
		}
	}
}

func TestFilterFaults(t *testing.T) {
	s := cache.FilledStore(t, 200)
	r, err := s.Select(context.Background(), cache.Query{Filter: mustFilter(t, `object.status.phase == "Running" ? object.spec.missing == 1 : true`)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Objects) == 0 || r.Faults.Count+len(r.Objects) != 200 {
		t.Errorf("%d objects and %d faults of 200", len(r.Objects), r.Faults.Count)
	}
	if r.Faults.First != "no such key: missing" || r.Faults.Key.Name == "" {
		t.Errorf("first fault %q of %v", r.Faults.First, r.Faults.Key)
	}
}

// TestFilterOfIdentity: a filter that needs no JSON finds what one finds that reads it, and
// has the same faults; of aggregated resources, whose keys may occur twice, it reads it.
func TestFilterOfIdentity(t *testing.T) {
	s := cache.FilledStore(t, 500)
	for _, expression := range []string{
		`object.metadata.name != ""`, `object.metadata.name == ""`, `object.metadata.name.endsWith("7") || object.metadata.namespace.endsWith("1")`,
		`object.metadata.name.matches("[13]$") && object.kind == "Pod"`, `object.apiVersion == "v1" && int(object.metadata.resourceVersion) % 3 == 0`,
		`object.metadata.name.endsWith("7") ? object.metadata.name.deeper == 1 : has(object.metadata.namespace)`,
	} {
		bare := mustFilter(t, expression)
		whole := mustFilter(t, "("+expression+") && has(object.metadata)")
		if !bare.OfIdentity() || whole.OfIdentity() {
			t.Fatalf("%s: of identity %v, with more %v", expression, bare.OfIdentity(), whole.OfIdentity())
		}
		got, err := s.Select(t.Context(), cache.Query{Filter: bare})
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.Select(t.Context(), cache.Query{Filter: whole})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(names(got.Objects), names(want.Objects)) || got.Faults != want.Faults {
			t.Errorf("%s: %d objects, %+v; want %d, %+v", expression, len(got.Objects), got.Faults, len(want.Objects), want.Faults)
		}
	}
}

func BenchmarkFilterNames(b *testing.B) { benchFilter(b, `object.metadata.name.endsWith("7")`) }

func benchFilter(b *testing.B, text string) {
	s := cache.FilledStore(b, cache.BenchPods())
	q := cache.Query{Filter: mustFilter(b, text)}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r, err := s.Select(context.Background(), q)
		if err != nil {
			b.Fatal(err)
		}
		n = len(r.Objects)
	}
	b.ReportMetric(float64(n), "objects")
}

func BenchmarkFilterImages(b *testing.B) {
	benchFilter(b, `object.spec.containers.exists(c, c.image.contains("app-0007"))`)
}

func BenchmarkFilterFields(b *testing.B) {
	benchFilter(b, `object.status.phase == "Running" && object.spec.serviceAccountName != ""`)
}

func BenchmarkFilterStatus(b *testing.B) {
	benchFilter(b, `object.status.qosClass == "Burstable" && object.spec.dnsPolicy != ""`)
}

func BenchmarkFilterQuantities(b *testing.B) {
	benchFilter(b, `object.spec.containers.map(c, quantity(c.?resources.?limits.?memory.orValue("0")).asApproximateFloat()).sum() > quantity("0.7Gi").asApproximateFloat()`)
}

func BenchmarkFilterIndexed(b *testing.B) {
	benchFilter(b, `object.spec.nodeName == "node-007" && object.status.qosClass == "Burstable"`)
}

func BenchmarkGroupBy(b *testing.B) {
	q := summary.Query{Grouped: true}
	var err error
	if q.GroupBy, err = summary.ParsePaths("groupBy", "metadata.namespace,spec.containers[*].image"); err != nil {
		b.Fatal(err)
	}
	if q.Aggregates, err = summary.ParseAggregates("count(),sum(spec.containers[*].resources.requests.cpu)"); err != nil {
		b.Fatal(err)
	}
	s := cache.FilledStore(b, cache.BenchPods())
	all, err := s.Select(context.Background(), cache.Query{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		sum, err := summary.Summarize(context.Background(), q, all.Objects)
		if err != nil {
			b.Fatal(err)
		}
		n = len(sum.Groups)
	}
	b.ReportMetric(float64(n), "groups")
}

func BenchmarkSort(b *testing.B) {
	order, err := cache.ParseOrder("-status.startTime,spec.nodeName")
	if err != nil {
		b.Fatal(err)
	}
	s := cache.FilledStore(b, cache.BenchPods())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Select(context.Background(), cache.Query{Sort: order}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFilterNeedsNoIndex: random expressions find the same with and without
// indexes, and over objects that lack fields.
func TestFilterNeedsNoIndex(t *testing.T) {
	indexed := cache.FilledStore(t, 150)
	odd := []string{
		`{"metadata":{"name":"odd-1","namespace":"team-01","resourceVersion":"1"}}`,
		`{"metadata":{"name":"odd-2","namespace":"team-02","resourceVersion":"1","labels":{"tier":""}},"spec":{"nodeName":7,"containers":{}},"status":{"phase":true}}`,
		`{"metadata":{"name":"odd-3","namespace":"team-03","resourceVersion":"1"},"spec":{"nodeName":null,"containers":[{},{"image":"a"}]},"status":"Running"}`,
	}
	spec := cache.PodSpec()
	spec.Indexes = nil
	plain, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var objects []*cache.Object
	for i := range 150 {
		odd = append(odd, string(cache.RealPod(i, i+1)))
	}
	for _, s := range []*cache.Store{indexed, plain} {
		objects = objects[:0]
		for _, raw := range odd {
			o, err := s.Decode([]byte(raw), "v1", "Pod")
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, o)
		}
		s.Replace("", objects, "500")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		text := expression(r, 3)
		q := cache.Query{Filter: mustFilter(t, text)}
		got, err := indexed.Select(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		want, err := plain.Select(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(names(got.Objects), names(want.Objects)) {
			t.Errorf("%s: %d objects by %v, %d without indexes", text, len(got.Objects), got.Plan.Indexes, len(want.Objects))
		}
	}
}

// expression makes a random one of atoms that indexes know about.
func expression(r *rand.Rand, depth int) string {
	atoms := []string{
		`object.spec.nodeName == "node-0%02d"`, `object.spec.nodeName != "node-0%02d"`, `object.spec.nodeName.startsWith("node-0%02d")`,
		`object.?spec.nodeName.orValue("node-003") == "node-0%02d"`, `object.?spec.nodeName.orValue("") != "node-0%02d"`,
		`object.spec.nodeName in ["node-0%02d", "node-100", "7"]`, `object.metadata.namespace == "team-%02d"`,
		`object.metadata.namespace.startsWith("team-%.1d")`, `object.metadata.labels.tier == "tier-%.1d"`,
		`object.?metadata.?labels.tier.orValue("") != "tier-%.1d"`, `has(object.metadata.labels.tier)`, `"team" in object.metadata.labels`,
		`object.spec.containers.exists(c, c.image == "registry.example.com/team-%02[1]d/app-00%02[1]d:1.0.0" || c.?name.orValue("") == "main")`,
		`object.spec.containers.exists(c, c.image == "a")`, `object.status.phase == "Running"`, `object.status.phase != "Running"`,
		`object.status.phase == true`, `object.spec.nodeName == "7"`, `object.metadata.name == "odd-%.1d"`, `has(object.spec)`,
	}
	if depth == 0 || r.IntN(3) == 0 {
		atom := atoms[r.IntN(len(atoms))]
		if strings.Contains(atom, "%") {
			atom = fmt.Sprintf(atom, r.IntN(10))
		}
		return atom
	}
	a, b := expression(r, depth-1), expression(r, depth-1)
	switch r.IntN(5) {
	case 0:
		return "!(" + a + ")"
	case 1, 2:
		return "(" + a + " || " + b + ")"
	default:
		return "(" + a + " && " + b + ")"
	}
}
