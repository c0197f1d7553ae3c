package rawjson

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProjection(t *testing.T) {
	for name, tc := range map[string]struct{ paths, src, want string }{
		"nesting":        {"metadata.name,status.phase", `{"kind":"P","metadata":{"uid":1,"name":"a"},"status":{"phase":"R","x":1}}`, `{"metadata":{"name":"a"},"status":{"phase":"R"}}`},
		"missing":        {"a.b,c", `{"a":{"x":1}}`, `{"a":{}}`},
		"nothing":        {"a.b", `{"a":1,"b":2}`, `{}`},
		"null":           {"a.b", `{"a":null}`, `{}`},
		"null itself":    {"a", `{"a":null}`, `{"a":null}`},
		"array":          {"a[*].b", `{"a":[{"b":1,"c":2},{"c":3},5,[6]]}`, `{"a":[{"b":1},{},null,null]}`},
		"index":          {"a[1].b", `{"a":[{"b":1},{"b":2,"c":1},{"b":3}]}`, `{"a":[null,{"b":2}]}`},
		"index and star": {"a[1].b,a[*].c", `{"a":[{"b":1},{"b":2,"c":1},{"c":3}]}`, `{"a":[{},{"b":2,"c":1},{"c":3}]}`},
		"whole wins":     {"a.b,a", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		"last wins":      {"a.b", `{"a":{"b":1},"a":{"c":2}}`, `{"a":{}}`},
		"escaped key":    {"a['x/y']", `{"\u0061":{"x\/y":1}}`, `{"a":{"x/y":1}}`},
		"not an array":   {"a[*].b", `{"a":{"b":1}}`, `{}`},
		"empty array":    {"a[*].b", `{"a":[ ]}`, `{"a":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := CompileProjection(specOf(t, tc.paths, "", "").Extract)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.Append(nil, []byte(tc.src)); err != nil || string(got) != tc.want {
				t.Errorf("Append() = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

var fuzzPaths = []string{
	"metadata.name,status,a[*].b",
	"a[1].b,a[*].c,b[*],spec.a.b,['ü']",
	"a,a.b,data.a,b[0],b[2].a,['\ufffd'],['']",
	"metadata.labels.a,metadata.annotations['k8s.io/initial-events-end'],spec[*][*].a,status.b.c",
}

func checkProjection(t *testing.T, list string, src []byte) {
	t.Helper()
	ps := specOf(t, list, "", "").Extract
	p, err := CompileProjection(ps)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Append([]byte("x"), src)
	m, ok := refDecode(src)
	if ok != (err == nil) {
		t.Fatalf("Append(%q) = %v, but the reference accepts: %v", src, err, ok)
	}
	if err != nil {
		if string(out) != "x" {
			t.Fatalf("Append(%q) leaves %q after an error", src, out)
		}
		return
	}
	var all [][]step
	for _, p := range ps {
		all = append(all, p.steps())
	}
	got, ok := refDecode(out[1:])
	if !ok || !json.Valid(out[1:]) {
		t.Fatalf("Append(%q) = %q does not decode", src, out[1:])
	}
	if diff := cmp.Diff(refProject(m, all), any(got)); diff != "" {
		t.Fatalf("Append(%q) = %q (-want +got):\n%s", src, out[1:], diff)
	}
}

func TestProjectionRandom(t *testing.T) {
	for seed := range uint64(3000) {
		checkProjection(t, fuzzPaths[seed%uint64(len(fuzzPaths))], generate(seed))
	}
	for _, src := range hardObjects {
		for _, list := range fuzzPaths {
			checkProjection(t, list, []byte(src))
		}
	}
}

func FuzzProjection(f *testing.F) {
	for _, src := range hardObjects {
		f.Add([]byte(src), uint8(1))
	}
	for seed := range uint64(40) {
		f.Add(generate(seed), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint8) {
		checkProjection(t, fuzzPaths[int(n)%len(fuzzPaths)], src)
	})
}
