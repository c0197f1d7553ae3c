package cache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// oddValues are JSON values that are amounts, times, text, several of these, or
// none, depending on who reads them.
var oddValues = []string{
	`0`, `-0`, `1`, `1.0`, `2`, `3`, `-1.5`, `2.5`, `0.1`, `0.10000000000000001`, `1e3`, `1E+2`, `1e300`, `9007199254740992`, `9007199254740993`, `9007199254740992.0`,
	`9223372036854775807`, `9223372036854775808`, `0.` + strings.Repeat("0", 1100) + `1`,
	`""`, `"0"`, `"1"`, `"2"`, `"1500m"`, `"1.5"`, `"1Ki"`, `"1024"`, `"1Gi"`, `"P"`, `"-"`, `"1e3"`, `"0.5n"`, `"1n"`, `"100000Ei"`, `"` + strings.Repeat("0", 1100) + `2"`, `"` + strings.Repeat("0", 40) + `2"`,
	`"2026-10-31T23:00:00Z"`, `"2026-11-01T00:00:00+01:00"`, `"2026-10-31T23:00:00.000000001Z"`, `"2026-11-01T00:00:00Z"`, `"2026-10-31T9:00:00Z"`, `"2026-11-01T00:00:00.` + strings.Repeat("0", 1100) + `1Z"`, `1793487600`, `"soon"`,
	`"a"`, `"ab"`, `"b"`, `"` + strings.Repeat("a", 1100) + `"`, `"true"`, `true`, `false`, `null`, `{}`, `{"v":1}`, `[]`, `[1,"a"]`,
}

// oddThing is an object with some of oddValues.
func oddThing(r *rand.Rand, i, version int) string {
	value := func() string { return oddValues[r.IntN(len(oddValues))] }
	parts := make([]string, r.IntN(3))
	for n := range parts {
		parts[n] = pick(r, `{"v":`+value()+`}`, `{"v":`+value()+`,"w":1}`, `{}`, value())
	}
	created := pick(r, `"2026-10-31T23:00:00Z"`, `"2026-10-31T23:59:59.5Z"`, `"2026-11-01T00:00:00Z"`, `"2026-11-01T02:00:00+01:00"`, `"1970-01-01T00:00:00Z"`, `"1969-01-01T00:00:00Z"`, `"2200-01-01T00:00:00Z"`, `null`, `"soon"`)
	return fmt.Sprintf(`{"metadata":{"name":"%s-%d","namespace":"%s","uid":"u%d","resourceVersion":"%d","creationTimestamp":%s},"spec":{"v":%s,"parts":%s%s}}`,
		pick(r, "a", "b", "ab"), i, pick(r, "x", "xy", "z"), i, version, created, value(),
		pick(r, "["+strings.Join(parts, ",")+"]", "["+strings.Join(parts, ",")+"]", value()), pick(r, "", `,"w":`+value()))
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// operandsOf are the things that a comparison compares, and constants for them.
var comparisons = []struct{ left, right []string }{
	{[]string{"%s"}, []string{"0", "1", "2", "-1", "1.0", "2.5", "0.1", "9007199254740992", "9007199254740993", "9223372036854775807", "9007199254740992.0", "1e300", `""`, `"a"`, `"ab"`, `"b"`, `"1"`, `"2026"`}},
	{[]string{"quantity(%s)"}, []string{`quantity("0")`, `quantity("2")`, `quantity("1500m")`, `quantity("1Ki")`, `quantity("1n")`, `quantity("100000Ei")`}},
	{[]string{"timestamp(%s)", `timestamp(%s) + duration("1h")`}, []string{"now", `now - duration("1h")`, `timestamp("2026-10-31T23:00:00Z")`, `timestamp("2026-10-31T23:00:00.000000001Z")`, `timestamp("1970-01-01T00:00:00Z")`}},
	{[]string{"now - timestamp(%s)"}, []string{`duration("0s")`, `duration("1h")`, `duration("3600s")`, `duration("-10s")`, `duration("9000h")`}},
}

// comparison makes a random one of the value at a path.
func comparison(r *rand.Rand, path string) string {
	c := pick(r, comparisons...)
	left, right := fmt.Sprintf(pick(r, c.left...), path), pick(r, c.right...)
	op := pick(r, "<", "<=", ">", ">=", "==")
	switch {
	case strings.HasPrefix(left, "quantity"):
		return pick(r, left+".isGreaterThan("+right+")", right+".isLessThan("+left+")", left+".compareTo("+right+") "+op+" 0", "0 "+op+" "+left+".compareTo("+right+")")
	case strings.HasPrefix(right, `"`) && r.IntN(2) == 0:
		return left + ".startsWith(" + right + ")"
	case r.IntN(6) == 0 && left == path:
		return path + " in [" + right + ", " + right + "]"
	default:
		return pick(r, left+" "+op+" "+right, right+" "+op+" "+left)
	}
}

func rangeExpression(r *rand.Rand) string {
	path := pick(r, "object.spec.v", "object.spec.v", "object.?spec.w.orValue("+pick(r, "0", "1", `"a"`, `"1500m"`, `"2026-11-01T00:00:00Z"`)+")",
		"object.metadata.creationTimestamp", "object.metadata.name", "object.metadata.namespace")
	text := comparison(r, path)
	switch r.IntN(5) {
	case 0:
		text = "object.spec.parts.exists(p, " + comparison(r, pick(r, "p.v", "p.v", "p")) + ")"
	case 1:
		text = "age(object) " + pick(r, "<", "<=", ">", ">=") + ` duration("` + pick(r, "0s", "1h", "90m", "-1h") + `")`
	}
	switch r.IntN(4) {
	case 0:
		return text + pick(r, " && ", " || ") + comparison(r, path)
	case 1:
		return text + pick(r, " && ", " || ", " || !") + "(" + rangeExpression(r) + ")"
	}
	return text
}

// oddSpec has indexes of the values that oddThing gives.
func oddSpec() cache.Spec {
	return cache.Spec{
		Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}},
		Kind:     "Thing", Namespaced: true, Watch: true,
		Indexes: map[string]string{"v": "spec.v", "w": "spec.w", "part": "spec.parts[*].v"},
	}
}

// oddStores are two Stores with the same objects, with and without indexes. The
// first has come to them by changes.
func oddStores(tb testing.TB, things []string) (indexed, plain *cache.Store) {
	tb.Helper()
	spec := oddSpec()
	for _, s := range []**cache.Store{&indexed, &plain} {
		var err error
		if *s, err = cache.NewStore(spec, cache.StoreOptions{}); err != nil {
			tb.Fatal(err)
		}
		var objects []*cache.Object
		for _, raw := range things {
			o, err := (*s).Decode([]byte(raw), "example.com/v1", "Thing")
			if err != nil {
				tb.Fatal(err)
			}
			objects = append(objects, o)
		}
		(*s).Replace("", objects, "1")
		spec.Indexes = nil
	}
	return indexed, plain
}

// TestRangesNeedNoIndex: comparisons find the same with and without indexes,
// whatever the values are.
func TestRangesNeedNoIndex(t *testing.T) {
	used := map[string]int{}
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 11))
		var things []string
		for i := range 100 {
			things = append(things, oddThing(r, i, i+1))
		}
		indexed, plain := oddStores(t, things)
		for i := range 200 {
			if i%4 == 0 { // values come and go
				o, err := indexed.Decode([]byte(oddThing(r, r.IntN(100), 1000+i)), "example.com/v1", "Thing")
				if err != nil {
					t.Fatal(err)
				}
				kind := pick(r, cache.Modified, cache.Modified, cache.Deleted)
				indexed.Apply("", kind, o)
				plain.Apply("", kind, o)
			}
			text := rangeExpression(r)
			q := cache.Query{Filter: mustFilter(t, text)}
			compareSelect(t, indexed, plain, q, used)
		}
	}
	for _, index := range []string{"v", "w", "part", "namespace", "metadata.creationTimestamp"} {
		if used[index] == 0 {
			t.Errorf("no question used %s, of %v", index, used)
		}
	}
}

// compareSelect asks both stores, and the Matcher of the first about every
// object.
func compareSelect(t *testing.T, indexed, plain *cache.Store, q cache.Query, used map[string]int) {
	t.Helper()
	got, err := indexed.Select(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Select(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names(got.Objects), names(want.Objects)) {
		t.Errorf("%s, sorted by %s: %v by %v, without indexes %v", q.Filter, q.Sort, names(got.Objects), got.Plan.Indexes, names(want.Objects))
	}
	for _, name := range got.Plan.Indexes {
		used[name]++
	}
	m, err := indexed.Matcher(q)
	if err != nil {
		t.Fatal(err)
	}
	all, err := indexed.Select(context.Background(), cache.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all.Objects {
		ok, _ := m.Match(context.Background(), o) // an error is no match
		if ok != slices.Contains(names(want.Objects), o.Key().String()) {
			t.Errorf("%s: Match(%s) = %v", q.Filter, o.Key(), ok)
		}
	}
}

// TestIndexValuesInParts: the values of an index are listed in order, as a whole
// and in parts.
func TestIndexValuesInParts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var things []string
	for i := range 200 {
		things = append(things, oddThing(r, i, i+1))
	}
	s, _ := oddStores(t, things)
	for _, index := range []string{"v", "part", "namespace"} {
		for _, prefix := range []string{"", "1", "a", "2026-", "x"} {
			whole, _, err := s.IndexValues(index, prefix, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.IsSortedFunc(whole, func(a, b cache.IndexValue) int { return strings.Compare(a.Value, b.Value) }) {
				t.Errorf("%s: %v is out of order", index, whole)
			}
			parts, _, err := s.IndexValues(index, prefix, 3)
			for next := parts; err == nil && len(next) > 0; parts = append(parts, next...) {
				next, _, err = s.IndexValuesAfter(index, prefix, parts[len(parts)-1].Value, 3)
				if len(next) > 3 {
					t.Errorf("%s: %d values, want 3 at most", index, len(next))
				}
			}
			if err != nil || !slices.Equal(parts, whole) {
				t.Errorf("%s, prefix %q: in parts %v, want %v (%v)", index, prefix, parts, whole, err)
			}
			if early, _, err := s.IndexValuesAfter(index, prefix, "", 0); err != nil || prefix != "" && !slices.Equal(early, whole) {
				t.Errorf("%s, prefix %q, after what is before it: %v, want %v (%v)", index, prefix, early, whole, err)
			}
		}
	}
}

var hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// FuzzRange: a comparison finds an object by its index if and only if it finds
// it without.
func FuzzRange(f *testing.F) {
	for i, v := range oddValues {
		for kind := range uint8(4) {
			f.Add(v, kind, uint8(i), strconv.Itoa(i-20))
			f.Add(v, kind, uint8(i), strings.Trim(v, `"`))
		}
	}
	f.Fuzz(func(t *testing.T, value string, kind, op uint8, constant string) {
		if hugeExponent.MatchString(value) || hugeExponent.MatchString(constant) {
			return // which resource.ParseQuantity computes in full
		}
		if len(value) > 4<<10 || json.Unmarshal([]byte(value), new(any)) != nil {
			return
		}
		operator := []string{"<", "<=", ">", ">=", "=="}[op%5]
		text := []string{
			fmt.Sprintf("object.spec.v %s %s", operator, constant),
			fmt.Sprintf("object.spec.v %s %q", operator, constant),
			fmt.Sprintf("quantity(object.spec.v).compareTo(quantity(%q)) %s 0", constant, operator),
			fmt.Sprintf("timestamp(object.spec.v) %s timestamp(%q)", operator, constant),
		}[kind%4]
		expression, err := compile(text)
		if err != nil {
			return
		}
		indexed, plain := oddStores(t, []string{`{"metadata":{"name":"a","namespace":"x","resourceVersion":"1"},"spec":{"v":` + value + `}}`})
		compareSelect(t, indexed, plain, cache.Query{Filter: expression}, map[string]int{})
	})
}
