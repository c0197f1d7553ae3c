package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// checkUnique compares, of a src without keys that occur twice, what is found by an Extractor
// that goes to the end and by one that reads no further than it must.
func checkUnique(t *testing.T, list string, src []byte) {
	t.Helper()
	e, err := CompileExtractor(specOf(t, list, "", "").Extract)
	if err != nil {
		t.Fatal(err)
	}
	want, got := valuesOf(t, e, src), valuesOf(t, e.Unique(), src)
	if !slices.EqualFunc(want, got, func(a, b Value) bool { return a.Path == b.Path && a.Kind == b.Kind && bytes.Equal(a.Text, b.Text) }) {
		t.Fatalf("of %q at %s there are\n%v, and without keys twice\n%v", src, list, want, got)
	}
}

// checkUniqueProjection compares what a Projection makes of a src without keys that occur
// twice when it goes to the end, and when it reads no further than it must.
func checkUniqueProjection(t *testing.T, list string, src []byte) {
	t.Helper()
	p, err := CompileProjection(specOf(t, list, "", "").Extract)
	if err != nil {
		return // of these paths there is none
	}
	want, err := p.Append([]byte("before"), src)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Unique().Append([]byte("before"), src); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("of %q at %s there is %q, %v, and with keys that may occur twice %q", src, list, got, err, want)
	}
}

// TestUniqueProjectionStops: what comes after all that is wanted is not looked at.
func TestUniqueProjectionStops(t *testing.T) {
	p, err := CompileProjection(specOf(t, "metadata.name,spec.containers[*].image", "", "").Extract)
	if err != nil {
		t.Fatal(err)
	}
	const broken = `{"kind":"Pod","metadata":{"name":"a","uid":"b"},"spec":{"nodeName":"n","containers":[{"image":"x","tty":true}],"more":!`
	got, err := p.Unique().Append(nil, []byte(broken))
	if want := `{"metadata":{"name":"a"},"spec":{"containers":[{"image":"x"}]}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, err := p.Append(nil, []byte(broken)); err == nil {
		t.Error("one that goes to the end does not see that it is broken")
	}
	if _, err := p.Unique().Append(nil, []byte(`{"metadata":{"name":"a","uid":"b"`)); err == nil {
		t.Error("metadata that is cut off is taken for whole")
	}
}

func valuesOf(t *testing.T, e *Extractor, src []byte) (all []Value) {
	t.Helper()
	err := e.Each(src, func(v Value) bool {
		v.Text = bytes.Clone(v.Text)
		all = append(all, v)
		return true
	})
	if err != nil {
		t.Fatalf("Each(%q) = %v", src, err)
	}
	return all
}

// onceEach is src with each key of it once, nil if it is no object.
func onceEach(src []byte) []byte {
	m, ok := refDecode(src)
	if !ok {
		return nil
	}
	once, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return once
}

func TestUniqueRandom(t *testing.T) {
	tried := 0
	for seed := range uint64(3000) {
		if src := onceEach(generate(seed)); src != nil {
			checkUnique(t, fuzzPaths[seed%uint64(len(fuzzPaths))], src)
			checkUniqueProjection(t, fuzzPaths[seed%uint64(len(fuzzPaths))], src)
			tried++
		}
	}
	if tried < 300 {
		t.Errorf("only %d objects could be read", tried)
	}
	for _, list := range []string{"spec.nodeName", "spec.containers[*].image,status.phase", "spec.containers[*].resources,spec.containers[*].resources.limits.cpu,metadata.name",
		"status,status.phase,status.conditions[1].type", "spec.overhead.cpu,spec.volumes[*].name", "nowhere,metadata.nowhere.else,spec.containers[7].name"} {
		checkUnique(t, list, stored(t))
		checkUniqueProjection(t, list, stored(t))
	}
}

func TestUniqueReadsNoFurther(t *testing.T) {
	e, err := CompileExtractor(paths(t, "spec.containers[*].image", "spec.overhead.cpu"))
	if err != nil {
		t.Fatal(err)
	}
	// There is no overhead, which shows at the end of the spec.
	src := []byte(`{"spec":{"containers":[{"image":"a","x":[{}]},{"image":"b"}],"y":{"z":"}"}},"status":{"cut`)
	if got := valuesOf(t, e.Unique(), src); len(got) != 2 || string(got[1].Text) != "b" {
		t.Errorf("there are %v", got)
	}
	if err := e.Unique().Each(src[:60], func(Value) bool { return true }); err == nil {
		t.Error("a spec that is cut off is taken for whole")
	}
}

func FuzzUnique(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(generate(seed), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint8) {
		if once := onceEach(src); once != nil {
			checkUnique(t, fuzzPaths[int(n)%len(fuzzPaths)], once)
			checkUniqueProjection(t, fuzzPaths[int(n)%len(fuzzPaths)], once)
		}
	})
}
