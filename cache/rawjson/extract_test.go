package rawjson

import (
	"bytes"
	"testing"
)

// checkEach compares an Extractor with the reference, and also one that does not
// take for granted that src is valid: that one must refuse what the reference does.
func checkEach(t *testing.T, list string, src []byte) {
	t.Helper()
	s := specOf(t, list, "", "")
	trusting, err := CompileExtractor(s.Extract)
	if err != nil {
		t.Fatal(err)
	}
	p := *trusting.program
	p.valid = false
	m, ok := refDecode(src)
	for _, e := range []*Extractor{trusting, {&p}} {
		var got []Value
		err = e.Each(src, func(v Value) bool {
			v.Text = bytes.Clone(v.Text)
			got = append(got, v)
			return true
		})
		if ok != (err == nil) && (ok || e != trusting) {
			t.Fatalf("Each(%q) = %v, but the reference accepts: %v", src, err, ok)
		}
		if ok {
			checkValues(t, src, s, m, got)
		}
	}
}

func TestExtractRandom(t *testing.T) {
	for seed := range uint64(3000) {
		checkEach(t, fuzzPaths[seed%uint64(len(fuzzPaths))], generate(seed))
	}
	for _, src := range hardObjects {
		for _, list := range fuzzPaths {
			checkEach(t, list, []byte(src))
		}
	}
}

func TestExtractStops(t *testing.T) {
	src := []byte(`{"a":[1,2,3],"b":{"c":"x"},"d":[0`)
	e, err := CompileExtractor(paths(t, "a[1]", "b.c"))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Each(src, func(Value) bool { t.Error("yielded"); return true }); err == nil {
		t.Error("Each() accepts what is cut off")
	}
	// Unique reads no further than it must.
	n := 0
	if err := e.Unique().Each(src, func(v Value) bool { n++; return true }); err != nil || n != 2 {
		t.Errorf("Each() = %v after %d values, want 2", err, n)
	}
	n = 0
	if err := e.Each([]byte(`{"a":[1,2],"b":{"c":1}}`), func(Value) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("Each() = %v after %d values, want it to stop after 1", err, n)
	}
	if _, err := CompileExtractor([]Path{{}}); err == nil {
		t.Error("CompileExtractor() accepts the empty path")
	}
}

func FuzzExtract(f *testing.F) {
	for _, src := range hardObjects {
		f.Add([]byte(src), uint8(1))
	}
	for seed := range uint64(40) {
		f.Add(generate(seed), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint8) {
		checkEach(t, fuzzPaths[int(n)%len(fuzzPaths)], src)
	})
}
