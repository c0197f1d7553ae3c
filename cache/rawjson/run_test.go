package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

var fuzzSpecs = []struct{ extract, drop, redact string }{
	{extract: "spec.a,a[*].b,a[*],a[0],a[1].b,status,b,kind,metadata.labels.a,metadata.name,spec"},
	{drop: "metadata.managedFields,spec.a,a[*].b,b,a[1].c,['']", extract: "status.a,a,spec"},
	{drop: "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'],data.a", redact: "data,stringData,a,status.b,b[*].c"},
	{drop: "metadata.annotations,metadata.labelz,spec,status"},
	{extract: "metadata.ownerReferences[0].name,metadata.ownerReferences[*].uid,metadata.ownerReferences[1],metadata.annotations,metadata.labels.a,metadata.labels.b"},
	{extract: manyFields("", 70) + ",a.b,status[0].c", drop: "spec.a," + manyFields("spec.", 20), redact: manyFields("data.", 80) + ",data.a,data.b"},
	{redact: "metadata.annotations,spec[*],a[1],['ü'],['\ufffd']", extract: "metadata.labels"},
}

// manyFields returns so many paths that lookups and duplicates are handled
// differently.
func manyFields(prefix string, n int) string {
	var list []string
	for i := range n {
		list = append(list, prefix+"k"+strconv.Itoa(i))
	}
	return strings.Join(list, ",")
}

func specOf(t testing.TB, extract, drop, redact string) Spec {
	t.Helper()
	list := func(s string) []Path {
		if s == "" {
			return nil
		}
		p, err := ParsePaths(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return Spec{Extract: list(extract), Drop: list(drop), Redact: list(redact)}
}

type compiled struct {
	spec    Spec
	program *Program
}

func compiledSpecs(t testing.TB) []compiled {
	var out []compiled
	for _, s := range fuzzSpecs {
		spec := specOf(t, s.extract, s.drop, s.redact)
		out = append(out, compiled{spec, compile(t, spec)})
	}
	return out
}

// checkRun holds Run and AppendJSON against the reference.
func checkRun(t *testing.T, c compiled, src []byte) {
	t.Helper()
	s, p := c.spec, c.program
	var d Document
	err := p.Run(src, &d)
	want, ok := refDecode(src)
	if ok != (err == nil) {
		t.Fatalf("Run(%q) = %v, but the reference accepts: %v", src, err, ok)
	}
	if err != nil {
		if out := d.AppendJSON(nil, "v", "k"); len(out) > 0 {
			t.Fatalf("AppendJSON() = %q after a failed Run", out)
		}
		return
	}
	if !json.Valid(src) {
		t.Fatalf("Run(%q) accepts what is not valid", src)
	}
	if id, got := refIdentity(want), identityOf(&d); !reflect.DeepEqual(id, got) {
		diff := cmp.Diff(id, got)
		t.Fatalf("Run(%q): identity (-want +got):\n%s", src, diff)
	}
	checkValues(t, src, s, want, d.Values)
	for _, def := range [][2]string{{"dv", "d\"k"}, {"", ""}, {"", "k"}} {
		out := d.AppendJSON([]byte("x"), def[0], def[1])
		if !json.Valid(out[1:]) {
			t.Fatalf("Run(%q): AppendJSON() = %q is not valid", src, out[1:])
		}
		stored, ok := refDecode(out[1:])
		if !ok {
			t.Fatalf("Run(%q): AppendJSON() = %q does not decode", src, out[1:])
		}
		want, _ := refDecode(src)
		refStored(want, s, def[0], def[1])
		if !reflect.DeepEqual(want, stored) {
			diff := cmp.Diff(want, stored)
			t.Fatalf("Run(%q): AppendJSON() = %q (-want +got):\n%s", src, out[1:], diff)
		}
		checkNoLeak(t, s, src, out[1:])
	}
}

// checkNoLeak looks for redacted content with a decoder that forgets no
// duplicates.
func checkNoLeak(t *testing.T, s Spec, src, out []byte) {
	t.Helper()
	for _, p := range s.Redact {
		steps := p.steps()
		if len(steps) != 1 || steps[0].kind != stepField {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		dec.Token()
		for dec.More() {
			key, _ := dec.Token()
			var raw json.RawMessage
			if dec.Decode(&raw) != nil {
				return
			}
			if key != steps[0].name || raw[0] != '{' {
				continue
			}
			inner := json.NewDecoder(bytes.NewReader(raw))
			inner.Token()
			for inner.More() {
				k, _ := inner.Token()
				var v json.RawMessage
				if inner.Decode(&v) == nil && string(v) != `""` {
					t.Fatalf("Run(%q): %v.%v leaks %s", src, key, k, v)
				}
			}
		}
	}
}

func checkValues(t *testing.T, src []byte, s Spec, m map[string]any, got []Value) {
	t.Helper()
	var want []any
	var wantPaths []int
	for i, p := range s.Extract {
		for _, v := range refValues(m, p.steps()) {
			want = append(want, v)
			wantPaths = append(wantPaths, i)
		}
	}
	got = grouped(got)
	if len(got) != len(want) {
		t.Fatalf("%q: %d values, want %d: %v, want %v", src, len(got), len(want), got, want)
	}
	for i, v := range got {
		if v.Path != wantPaths[i] {
			t.Fatalf("%q: value %d is of path %d, want %d", src, i, v.Path, wantPaths[i])
		}
		checkValue(t, src, v, want[i])
	}
}

func checkValue(t *testing.T, src []byte, v Value, want any) {
	t.Helper()
	kind, got := Null, any(nil)
	switch want.(type) {
	case string:
		kind, got = String, string(v.Text)
	case bool:
		kind = Bool
	case int64, float64:
		kind = Number
	case map[string]any:
		kind = Object
	case []any:
		kind = Array
	}
	if v.Kind != kind {
		t.Fatalf("%q: kind %v, want %v", src, v.Kind, kind)
	}
	if v.Text == nil && kind >= Object {
		return // parts are dropped
	}
	if kind != String {
		if err := kjson.Unmarshal(v.Text, &got); err != nil {
			t.Fatalf("%q: text %q: %v", src, v.Text, err)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: value %v, want %v", src, got, want)
	}
}

func TestRunRandom(t *testing.T) {
	n := uint64(2500)
	if testing.Short() {
		n = 500
	}
	specs := compiledSpecs(t)
	for seed := range n {
		checkRun(t, specs[seed%uint64(len(specs))], generate(seed))
	}
}

var hardObjects = []string{
	``, ` `, `null`, `[]`, `"x"`, `1`, `{}`, ` { } `, `{}x`, `{}{}`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`,
	`{"a":"\ud83d\ude00\ud83d","b":"\u00e9\n\/"}`,
	`{"metadata":{"name":"a"},"metadata":{"namespace":"b"}}`,
	`{"metad\u0061ta":{"n\u0061me":"a"}}`,
	`{"metadata":{"labels":{"a":"1","a":null,"b":"\u0062"}}}`,
	`{"metadata":{"labels":{"a":1,"a":"x"}}}`,
	`{"metadata":{"labels":["a"]}}`,
	`{"metadata":{"labels":{"a":1}}}`,
	`{"metadata":null}`,
	`{"metadata":{"annotations":{"k8s.io/initial-events-end":"true","a":1}}}`,
	`{"metadata":{"annotations":{"k8s.io/initial-events-end":"true","a":1,"a":"x"}}}`,
	`{"metadata":{"ownerReferences":[{"uid":"u","controller":true},{"uid":5,"uid":"v"}]}}`,
	`{"metadata":{"ownerReferences":[{"uid":"u"},5]}}`,
	`{"kind":1,"apiVersion":null}`,
	`{"a":1e999}`, `{"a":1e308}`, `{"a":123456789012345678901234567890}`, `{"a":-}`, `{"a":01}`, `{"a":1.}`, `{"a":tru}`,
	"{\"a\":\"\xff\xfe\"}", "{\"\xff\":1}", "{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":"\u12"}`,
	`{"data":{"a":"x"},"data":{"b":{"c":[1,2]}},"d\u0061ta":"y"}`,
	`{"a":[{"b":1,"c":2},{"b":3,"c":4},5,[6]],"b":[{"c":{"d":1}}]}`,
	`{"spec":{"a":1,"b":2,"a":3},"status":{"a":[],"b":{"x":1}}}`,
}

func TestRunHard(t *testing.T) {
	for _, src := range hardObjects {
		for _, s := range compiledSpecs(t) {
			checkRun(t, s, []byte(src))
		}
	}
}

func TestRunDepth(t *testing.T) {
	for _, depth := range []int{63, 64, 65, 66, 127, 128, 129, 130, 9999, 10000, 10001, 300000} {
		for _, pair := range []string{"[]", "{}"} {
			open := pair[:1]
			if open == "{" {
				open = `{"a":`
			}
			for _, closed := range []int{depth - 1, depth - 2} {
				src := `{"spec":` + strings.Repeat(open, depth-1) + "1" + strings.Repeat(pair[1:], closed) + "}"
				var d Document
				err := compile(t, specOf(t, "spec.a", "", "")).Run([]byte(src), &d)
				if want := json.Valid([]byte(src)); want != (err == nil) {
					t.Errorf("depth %d %s closed %d: Run() = %v, valid: %v", depth, pair, closed, err, want)
				}
			}
		}
	}
}

func TestManyLabels(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"metadata":{"labels":{"z":5`)
	for i := range 300 {
		b.WriteString(`,"k` + string(rune('a'+i%100)) + `":"` + string(rune('a'+i%7)) + `"`)
	}
	src := b.String()
	c := compiled{program: compile(t, Spec{})}
	checkRun(t, c, []byte(src+`}}}`))
	checkRun(t, c, []byte(src+`,"z":"x"}}}`))
}

// Time must stay linear in the input, whatever it is.
func TestRunNotQuadratic(t *testing.T) {
	p := compile(t, specOf(t, "a[*],b", "metadata.managedFields,b.c", "data"))
	for _, part := range []string{`"b":1`, `"metadata":{"name":"x"}`, `"data":{"a":"b"}`, `"metadata":{"managedFields":1}`, `"\u0061":[1]`} {
		src := "{" + strings.Repeat(part+",", 2<<20/len(part)) + part + "}"
		var d Document
		if err := p.Run([]byte(src), &d); err != nil {
			t.Fatal(err)
		}
		d.AppendJSON(nil, "", "")
	}
}

func FuzzRun(f *testing.F) {
	for _, src := range hardObjects {
		f.Add([]byte(src), uint8(0))
	}
	for seed := range uint64(60) {
		f.Add(generate(seed), uint8(seed))
	}
	f.Add(testPod(), uint8(1))
	specs := compiledSpecs(f)
	f.Fuzz(func(t *testing.T, src []byte, n uint8) {
		checkRun(t, specs[int(n)%len(specs)], src)
	})
}
