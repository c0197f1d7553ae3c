package mirror

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

// testOdd: what jsonb cannot hold does not keep the others from being mirrored, and is said.
func testOdd(t *testing.T, s *postgres.Server) {
	// What the database refuses depends on how it is set up.
	s.Exec(`ALTER DATABASE postgres SET max_stack_depth = '200kB'`)
	defer s.Exec(`ALTER DATABASE postgres RESET max_stack_depth`)
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	long := strings.Repeat("x", 100_000)
	var longName string // which does not get smaller by being compressed
	for range 500 {
		longName += fmt.Sprintf("%016x", rand.Uint64())
	}
	cases := []struct {
		key           cache.Key
		labels, extra string
		altered       string // how altered begins
		want          string // of the path data,v
	}{
		{cache.Key{Namespace: "a", Name: "plain"}, "{}", `,"data":{"v":"\\u0000 \\\\u0000"}`, "", `"\\u0000 \\\\u0000"`},
		{cache.Key{Namespace: "a", Name: "nul"}, `{"a\u0000":"b"}`, `,"data":{"v":"a\u0000\\\u0000b"}`, `\u0000`, `"a` + "\uFFFD" + `\\` + "\uFFFD" + `b"`},
		{cache.Key{Namespace: "a", Name: "high"}, "{}", `,"data":{"v":"\ud83d\ude80 \uD83D"}`, `\u0000`, `"🚀 ` + "\uFFFD" + `"`},
		{cache.Key{Namespace: "a", Name: "low"}, "{}", `,"data":{"v":"\ude80\ud83d\ud83d\ude80"}`, `\u0000`, `"` + "\uFFFD\uFFFD" + `🚀"`},
		{cache.Key{Namespace: "a", Name: "deep"}, "{}", `,"data":{"v":` + deep + `}`, "all but its identity is left out: ", ""},
		{cache.Key{Namespace: "a", Name: "number"}, "{}", `,"data":{"v":1.7976931348623157e308}`, "", ""},
		{cache.Key{Namespace: "a", Name: "exact"}, "{}", `,"data":{"v":9007199254740993}`, "", `9007199254740993`},
		{cache.Key{Namespace: "a", Name: "long"}, `{"` + long + `":"` + long + `"}`, `,"data":{"v":"` + long + `"}`, "", `"` + long + `"`},
		{cache.Key{Namespace: "a", Name: longName}, "{}", "", "", ""},
		{cache.Key{Namespace: "a", Name: "nolabels"}, "null", "", "", ""},
		{cache.Key{Name: "cluster"}, "{}", "", "", ""},
	}
	w := newWorld(t, podSpec)
	for i := range 50 {
		w.put(cache.Key{Namespace: "b", Name: fmt.Sprintf("n%d", i)}, "{}", "")
	}
	altered := 0
	for _, c := range cases {
		w.put(c.key, c.labels, c.extra)
		if c.altered != "" {
			altered++
		}
	}
	r := newRig(t, s, w)
	r.begin()
	r.compared()
	if st := r.mirror.Status(); st.Written != uint64(50+len(cases)) || st.Altered != uint64(altered) || st.Failures != 0 {
		t.Errorf("%+v, %d are altered", st, altered)
	}
	for _, c := range cases {
		name := c.key.Name[:min(len(c.key.Name), 20)]
		const where = ` FROM mirror_objects WHERE namespace = $1 AND name = $2`
		if got := r.value(`SELECT coalesce(altered, '')`+where, c.key.Namespace, c.key.Name); !strings.HasPrefix(got, c.altered) || c.altered == "" && got != "" {
			t.Errorf("%s: altered %q, want %q", name, got, c.altered)
		}
		if got := r.value(`SELECT coalesce((object #> '{data,v}')::text, '')`+where, c.key.Namespace, c.key.Name); c.want != "" && got != c.want {
			t.Errorf("%s: %.200q, want %.200q", name, got, c.want)
		}
		if got := r.value(`SELECT object #>> '{metadata,uid}'`+where, c.key.Namespace, c.key.Name); got == "" {
			t.Errorf("%s has no UID", name)
		}
	}
	r.end()
	r.begin()
	r.compared()
	if st := r.mirror.Status(); st.Written != 0 || st.Deleted != 0 {
		t.Errorf("it is written again: %+v", st)
	}
}

// views are the resources that there is a view of.
func views() (all []cache.Spec) {
	for _, name := range []string{
		"pods", "nodes", "namespaces", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "services",
		"endpointslices.discovery.k8s.io", "persistentvolumeclaims", "configmaps", "events",
	} {
		spec := podSpec
		spec.Redact = nil
		gr := schema.ParseGroupResource(name)
		spec.GVR = gr.WithVersion("v1")
		all = append(all, spec)
	}
	return all
}

// fragments are what odd objects are made of: the words that views look for, with values of
// any sort.
func oddValue(r *rand.Rand, depth int) string {
	keys := []string{
		"spec", "status", "containers", "initContainers", "containerStatuses", "conditions", "resources", "requests", "cpu", "memory", "replicas",
		"name", "type", "restartCount", "data", "endpoints", "template", "lastTimestamp", "completionTime", "ports", "selector", "count", "nodeInfo", "allocatable",
	}
	switch n := r.IntN(12); {
	case n < 6 && depth > 0:
		var parts []string
		for _, i := range r.Perm(len(keys))[:r.IntN(9)] {
			parts = append(parts, quote(keys[i])+":"+oddValue(r, depth-1))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case n < 8 && depth > 0:
		var parts []string
		for range r.IntN(3) {
			parts = append(parts, oddValue(r, depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return []string{`""`, `"1"`, "null", "true", "1.5", "1e300", "-3", `"Ready"`, `"1Ki"`, `"2026-13-99T00:00:00Z"`, `"2026-02-03T04:05:06Z"`, `"x"`}[r.IntN(12)]
}

// testViews: no view fails, whatever the objects are, and there is one row of each.
func testViews(t *testing.T, s *postgres.Server) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 2))
	var worlds []*world
	for _, spec := range views() {
		w := newWorld(t, spec)
		for i := range 40 {
			extra := `,"spec":` + oddValue(rnd, 5) + `,"status":` + oddValue(rnd, 5) + `,"data":` + oddValue(rnd, 1) + `,"endpoints":` + oddValue(rnd, 2) + `,"count":` + oddValue(rnd, 1) + `,"lastTimestamp":` + oddValue(rnd, 0)
			w.put(cache.Key{Namespace: "a", Name: fmt.Sprintf("n%d", i)}, `{"app":"a"}`, extra)
		}
		worlds = append(worlds, w)
	}
	r := newRig(t, s, worlds...)
	r.begin()
	for _, w := range worlds {
		r.settle(w)
		view := "mirror_" + w.spec.GVR.Resource
		// All columns are computed, which a count does not do.
		if got := r.value(`SELECT count(*) || '/' || count(DISTINCT name) || '/' || min(cluster) FROM (SELECT v.*, v::text AS row FROM ` + view + ` v OFFSET 0) x WHERE length(row) > 10`); got != "40/40/east" {
			t.Errorf("seed %d: %s has %s", seed, view, got)
		}
	}
	_ = r.value(`SELECT count(*)::text FROM (SELECT v::text FROM mirror_containers v OFFSET 0) x`)
}

// testQuantities: quantities and times are read as Kubernetes and Go read them.
func testQuantities(t *testing.T, s *postgres.Server) {
	w := filled(t, 1)
	r := newRig(t, s, w)
	r.begin()
	r.settle(w)
	c := r.connect()
	ctx := context.Background()
	for _, q := range []string{
		"0", "1", "100m", "1.5", "+2", "-3", "0.5Gi", "128Mi", "1Ki", "2Ti", "1Pi", "1Ei", "5k", "5M", "5G", "5T", "5P", "1E", "7n", "7u", "1e3", "1E3", "1.5e-3", ".5", "5.",
	} {
		want := resource.MustParse(q)
		var same bool
		err := c.QueryRow(ctx, `SELECT mirror_quantity($1) = $2::text::numeric`, q, want.AsDec().String()).Scan(&same)
		if err != nil || !same {
			t.Errorf("quantity %s is not %s: %v", q, want.AsDec(), err)
		}
	}
	for _, q := range []string{"", "x", "1 Gi", "1KiB", "1e", "1e999", "Gi", ".", "1i", "1ki", "--1", "0x10", "1_0", "\n1", "1\n"} {
		var null bool
		if err := c.QueryRow(ctx, `SELECT mirror_quantity($1) IS NULL AND mirror_number($1) IS NULL`, q).Scan(&null); err != nil || !null {
			t.Errorf("quantity %q is one: %v", q, err)
		}
	}
	var texts []string
	var want []*time.Time
	for day := range 5000 { // all days of every month, in leap years and others, and those that are none
		text := fmt.Sprintf("20%02d-%02d-%02dT23:59:58Z", 20+day/400%12, day%13+1, day%32)
		texts, want = append(texts, text), append(want, nil)
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			want[day] = &at
		}
	}
	rows, err := c.Query(ctx, `SELECT t, mirror_time(t) FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) ORDER BY n`, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; rows.Next(); i++ {
		var text string
		var at *time.Time
		if err := rows.Scan(&text, &at); err != nil {
			t.Fatal(err)
		}
		if (at == nil) != (want[i] == nil) || at != nil && !at.Equal(*want[i]) {
			t.Errorf("%s is %v, want %v", text, at, want[i])
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
}
