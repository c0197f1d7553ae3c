package summary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

func objects(t testing.TB, raw ...string) []*cache.Object {
	t.Helper()
	s, err := cache.NewStore(cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "things"}}, Kind: "Thing"}, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var out []*cache.Object
	for i, body := range raw {
		o, err := s.Decode([]byte(fmt.Sprintf(`{"metadata":{"name":"o%d"},%s}`, i, body)), "v1", "Thing")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func query(t testing.TB, groupBy, agg, facets string) Query {
	t.Helper()
	q := Query{Grouped: groupBy != "" || agg != ""}
	var err error
	if groupBy != "" {
		if q.GroupBy, err = ParsePaths("groupBy", groupBy); err != nil {
			t.Fatal(err)
		}
	}
	if agg != "" {
		if q.Aggregates, err = ParseAggregates(agg); err != nil {
			t.Fatal(err)
		}
	}
	if facets != "" {
		if q.Facets, err = ParsePaths("facets", facets); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// rows writes groups as key,key:value,value.
func rows(groups []Group) string {
	var out []string
	for _, g := range groups {
		var cells [2][]string
		for _, v := range g.Keys {
			cells[0] = append(cells[0], text(v.JSON()))
		}
		for _, v := range g.Values {
			cells[1] = append(cells[1], text(v.JSON()))
		}
		out = append(out, strings.Join(cells[0], ",")+":"+strings.Join(cells[1], ","))
	}
	return strings.Join(out, " ")
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(string(b), `"`)
}

func TestSummarize(t *testing.T) {
	objs := objects(t,
		`"ns":"a","n":1,"cpu":[{"r":"500m"},{"r":"1"}],"mem":"1Gi","at":"2026-01-02T00:00:00Z","img":["x","y","x"]`,
		`"ns":"a","n":2.5,"cpu":[{"r":"250m"}],"mem":"512Mi","at":"2025-12-31T00:00:00Z","img":["y"]`,
		`"ns":"b","n":10,"cpu":[{"r":2}],"at":"soon","img":[]`,
		`"n":"many","big":9223372036854775807`,
		`"ns":1,"big":1,"ok":true`,
		`"ns":"1"`,
	)
	for _, test := range []struct{ groupBy, agg, want string }{
		{"", "count()", ":6"},
		{"", "count(),count(img[*]),sum(cpu[*].r),avg(n),min(n),max(n)", ":6,4,3750m,4.5,1,many"},
		{"ns", "count()", "1:1 1:1 a:2 b:1 null:1"},
		{"ns", "sum(cpu[*].r)", "1:null 1:null a:1750m b:2 null:null"},
		{"ns", "avg(mem)", "1:null 1:null a:768Mi b:null null:null"},
		{"ns", "min(at),max(at)", "1:null,null 1:null,null a:2025-12-31T00:00:00Z,2026-01-02T00:00:00Z b:soon,soon null:null,null"},
		{"img[*]", "count()", "x:1 y:2 null:4"},
		{"ns,img[*]", "count(),sum(n)", "1,null:1,null 1,null:1,null a,x:1,1 a,y:2,3.5 b,null:1,10 null,null:1,null"},
		{"", "sum(big)", ":9.223372036854776e+18"},
		{"ok", "count()", "true:1 null:5"},
		{"nowhere", "min(mem),max(mem)", "null:512Mi,1Gi"},
	} {
		s, err := Summarize(context.Background(), query(t, test.groupBy, test.agg, ""), objs)
		if err != nil {
			t.Fatal(err)
		}
		if got := rows(s.Groups); got != test.want {
			t.Errorf("groupBy=%s agg=%s:\n%s, want\n%s", test.groupBy, test.agg, got, test.want)
		}
	}
}

func TestIgnoredValuesAreCounted(t *testing.T) {
	s, err := Summarize(context.Background(), query(t, "", "sum(n),count(n)", ""), objects(t, `"n":1`, `"n":"x"`, `"n":true`, `"n":null`))
	if err != nil {
		t.Fatal(err)
	}
	if got := rows(s.Groups); got != ":1,3" || s.Ignored[0] != 2 || s.Ignored[1] != 0 {
		t.Errorf("%s, ignored %v", got, s.Ignored)
	}
}

func TestNoObjects(t *testing.T) {
	for groupBy, want := range map[string]string{"": ":0", "ns": ""} {
		s, err := Summarize(context.Background(), query(t, groupBy, "count()", ""), nil)
		if err != nil || rows(s.Groups) != want {
			t.Errorf("groupBy=%s: %q, %v", groupBy, rows(s.Groups), err)
		}
	}
}

func TestFacets(t *testing.T) {
	s, err := Summarize(context.Background(), query(t, "", "", "ns,img[*]"), objects(t, `"ns":"b","img":["x","x"]`, `"ns":"a","img":["x","y"]`, `"ns":"b"`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Facets {
		for _, c := range f.Values {
			got = append(got, fmt.Sprintf("%s=%s:%d", f.Path, text(c.Value.JSON()), c.Objects))
		}
	}
	if want := "ns=b:2 ns=a:1 img[*]=x:2 img[*]=y:1 img[*]=null:1"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestOrder(t *testing.T) {
	q := query(t, "ns", "count(),sum(cpu)", "")
	objs := objects(t, `"ns":"a","cpu":"2"`, `"ns":"b","cpu":"500m"`, `"ns":"c"`, `"ns":"c"`)
	for sort, want := range map[string]string{
		"-sum(cpu)":    "a:1,2 b:1,500m c:2,null",
		"sum( cpu )":   "b:1,500m a:1,2 c:2,null",
		"-count(),-ns": "c:2,null b:1,500m a:1,2",
		"['ns']":       "a:1,2 b:1,500m c:2,null",
	} {
		o, err := q.ParseOrder(sort)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Summarize(context.Background(), q, objs)
		if err != nil {
			t.Fatal(err)
		}
		o.Sort(s.Groups)
		if got := rows(s.Groups); got != want {
			t.Errorf("sort=%s: %s, want %s", sort, got, want)
		}
	}
}

func TestTooMany(t *testing.T) {
	var list []string
	for i := range 70 {
		list = append(list, fmt.Sprint(i))
	}
	long := strings.Join(list, ",")
	_, err := Summarize(context.Background(), query(t, "a[*],b[*]", "count()", ""), objects(t, fmt.Sprintf(`"a":[%s],"b":[%s]`, long, long)))
	if cost, ok := errors.AsType[*cache.CostError](err); !ok || cost.Parameter != "groupBy" {
		t.Errorf("error %v", err)
	}
}

var mistakes = map[string]string{
	"":                  "agg: column 1: want a call",
	"count":             "agg: column 1: want a call",
	"count(),":          "agg: column 9: want a call",
	"count(),median(a)": `agg: column 9: there is no function "median"; there are count, sum`,
	"sum()":             "agg: column 5: sum needs a path",
	"sum(a..b)":         `agg: path "sum(a..b)", column 7`,
	"sum(a),sum( a )":   "agg: column 8: sum(a) is named twice",
	"sum(a)x":           "agg: column 1: want a call",
}

func TestMistakes(t *testing.T) {
	for text, want := range mistakes {
		_, err := ParseAggregates(text)
		if bad, ok := errors.AsType[*cache.InvalidError](err); !ok || bad.Parameter != "agg" || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := ParsePaths("groupBy", "a,b,a"); err == nil || !strings.Contains(err.Error(), "named twice") {
		t.Errorf("a path twice: %v", err)
	}
	if _, err := query(t, "a", "count()", "").ParseOrder("-b"); err == nil || !strings.Contains(err.Error(), "they have a, count()") {
		t.Errorf("an unknown column: %v", err)
	}
}

func FuzzParseAggregates(f *testing.F) {
	for text := range mistakes {
		f.Add(text)
	}
	f.Add("count(),sum(a[*].b['c,d'])")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseAggregates(text)
		if err != nil {
			return
		}
		for _, a := range all {
			again, err := ParseAggregates(a.String())
			if err != nil || again[0] != a {
				t.Errorf("%s reads back as %v, %v", a, again, err)
			}
		}
	})
}

func FuzzSummarize(f *testing.F) {
	f.Add("500m", "1e3", "2026-01-02T00:00:00Z")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		raw, err := json.Marshal(map[string]any{"v": []string{a, b, c}})
		if err != nil {
			return
		}
		q := query(t, "v[*]", "count(v[*]),sum(v[*]),min(v[*]),max(v[*]),avg(v[*])", "v[*]")
		s, err := Summarize(context.Background(), q, objects(t, strings.Trim(string(raw), "{}")))
		if err != nil {
			t.Fatal(err)
		}
		_ = rows(s.Groups)
	})
}

// TestUnique compares with the way that reads every object to its end, on objects that have
// no key twice, and with more values than are remembered.
func TestUnique(t *testing.T) {
	amounts := []string{`"500m"`, `"1"`, `2`, `2.5`, `"1.5G"`, `"2026-01-02T00:00:00Z"`, `"x"`, `true`, `null`, `{"a":1}`, `[1]`, `"500m"`, `"9999999999999999999"`, `-3`, `"-100m"`, `1e3`}
	var raw []string
	for i := range 2 * maxReads {
		raw = append(raw, fmt.Sprintf(`"spec":{"node":"n%d","c":[{"r":%s},{"r":%s}],"only%d":%s,"mem":"%dMi"},"status":{"phase":"p%d","uid":"%d%s"}`,
			i%50, amounts[i%len(amounts)], amounts[i*7%len(amounts)], i%9, amounts[i%5], i%11, i%3, i, strings.Repeat("x", i%200)))
	}
	objs := objects(t, raw...)
	for _, test := range []struct{ groupBy, agg, facets string }{
		{"", "count(),sum(spec.c[*].r),avg(spec.c[*].r),min(spec.c[*].r),max(spec.c[*].r),count(spec.c[*].r)", ""},
		{"spec.node", "sum(spec.c[*].r),sum(spec.only1),avg(spec.only3),sum(spec.mem)", "status.phase"},
		{"status.phase,spec.c[0].r", "count(),sum(spec.c[1].r)", "spec.c[*].r,spec"},
		{"status.uid", "count(),max(status.uid)", ""},
	} {
		q := query(t, test.groupBy, test.agg, test.facets)
		want := model(t, q, objs)
		for _, q.Unique = range []bool{false, true} {
			got, err := Summarize(context.Background(), q, objs)
			if err != nil {
				t.Fatal(err)
			}
			if rows(got.Groups) != rows(want.Groups) || !slices.Equal(got.Ignored, want.Ignored) || !reflect.DeepEqual(got.Facets, want.Facets) {
				t.Errorf("groupBy=%s agg=%s, unique %v:\n%.2000s, want\n%.2000s", test.groupBy, test.agg, q.Unique, rows(got.Groups), rows(want.Groups))
			}
		}
	}
}

// model reads one object after the other to its end, and remembers nothing of any.
func model(t *testing.T, q Query, objects []*cache.Object) *Summary {
	t.Helper()
	p, err := compile(q)
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(p)
	c.reads = newReads(0)
	for _, o := range objects {
		json, err := o.AppendJSON(nil)
		if err == nil {
			err = addByItself(c, json)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c.summary()
}

// addByItself counts one object as if there had been none before.
func addByItself(c *collector, json []byte) error {
	if err := c.read(json, true); err != nil {
		return err
	}
	return c.count(1, everySet)
}

// TestManyAtOnce: what many objects have in common counts as if they came one by one.
func TestManyAtOnce(t *testing.T) {
	values := []string{`"500m"`, `2`, `2.5`, `0.1`, `-3`, `0`, `9223372036854775807`, `4611686018427387904`, `-9223372036854775808`, `1e3`,
		`"1.5G"`, `"100n"`, `"-3Mi"`, `"x"`, `true`, `null`, `"2026-01-02T00:00:00Z"`, `["1","x",2.5,"1"]`, `[1,1]`, `[]`,
		`[4611686018427387904,1,-4611686018427387904]`, `[0.1,0.2,"5m"]`, `[9007199254740993,1,-9007199254740993]`, `["100m","2",7,8]`}
	q := query(t, "k[*]", "count(),count(v),sum(v),avg(v),min(v),max(v),sum(v[*]),avg(v[*]),count(v[*])", "v,v[*]")
	p, err := compile(q)
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range values {
		for j, other := range values {
			at, one, same := newCollector(p), newCollector(p), newCollector(p)
			for _, part := range []struct {
				json  string
				times int
			}{
				{`{"k":"a","v":` + value + `}`, 1 + 6*(i%3)}, {`{"k":["a","b"],"v":` + other + `}`, 3 + j%5}, {`{"k":"b","v":` + value + `}`, 2},
			} {
				if err := at.add([]byte(part.json), part.times, everySet); err != nil {
					t.Fatal(err)
				}
				for range part.times {
					if err := errors.Join(addByItself(one, []byte(part.json)), same.add([]byte(part.json), 1, everySet)); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := one.summary()
			for _, c := range []*collector{at, same} {
				if err := c.flush(); err != nil {
					t.Fatal(err)
				}
				if got := c.summary(); rows(got.Groups) != rows(want.Groups) || !slices.Equal(got.Ignored, want.Ignored) || !reflect.DeepEqual(got.Facets, want.Facets) {
					t.Errorf("%s and %s: %s\nwant %s", value, other, rows(got.Groups), rows(want.Groups))
				}
			}
		}
	}
}
