package shape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache/internal/delta"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/test/standin"
)

func excerptOf(t testing.TB, paths ...string) *rawjson.Excerpt {
	t.Helper()
	parsed, err := rawjson.ParsePaths(strings.Join(paths, ","))
	if err != nil {
		t.Fatal(err)
	}
	return rawjson.NewExcerpt(parsed)
}

// beside is what Shape says of object beside base, which must be what is read of the object, if it
// says anything.
func beside(t testing.TB, s *Shape, enc *delta.Encoder, e *rawjson.Excerpt, base, object []byte) (ok bool) {
	t.Helper()
	enc.Reset(base)
	d, _ := enc.Append(nil, object, math.MaxInt)
	if out, err := delta.Apply(nil, base, d, len(object)); err != nil || !bytes.Equal(out, object) {
		t.Fatalf("%s beside %s is %s (%v)", object, base, out, err)
	}
	s.Take(e, base)
	got, ok := s.Append([]byte("before"), object, read(t, d))
	if want := e.Append([]byte("before"), object); ok && !bytes.Equal(got, want) {
		t.Fatalf("the excerpt of\n%s beside\n%s is\n%s and not\n%s", object, base, got, want)
	}
	if !ok && string(got) != "before" {
		t.Fatalf("of %s beside %s nothing is said, and yet %s", object, base, got)
	}
	return ok
}

func read(t testing.TB, d []byte) *delta.Steps {
	t.Helper()
	var s delta.Steps
	if !s.Read(d) {
		t.Fatalf("%q is no delta", d)
	}
	return &s
}

// podsOf are n pods as a Store has them.
func podsOf(t testing.TB, n int) (all [][]byte) {
	t.Helper()
	drop, err := rawjson.ParsePaths("metadata.managedFields")
	if err != nil {
		t.Fatal(err)
	}
	program, err := rawjson.Compile(rawjson.Spec{Drop: drop})
	if err != nil {
		t.Fatal(err)
	}
	pods := standin.NewPods(n)
	var doc rawjson.Document
	for i := range n {
		if err := program.Run(pods.AppendItem(nil, i, i+1), &doc); err != nil {
			t.Fatal(err)
		}
		all = append(all, doc.AppendJSON(nil, "v1", "Pod"))
	}
	return all
}

func TestShape(t *testing.T) {
	for _, c := range []struct {
		base, object string
		ok           bool
	}{
		{`{"a":{"b":"one of them"},"c":"and what follows"}`, `{"a":{"b":"one of those"},"c":"and what follows"}`, true},
		{`{"a":{"b":"one of them"},"c":"and what follows"}`, `{"a":{"b":""},"c":"and what follows"}`, true},
		{`{"a":{"b":""},"c":"and what follows here"}`, `{"a":{"b":"one of them"},"c":"and what follows here"}`, true},
		{`{"a":{"b":"one","d":"what follows"},"c":"and so on"}`, `{"a":{"b":"one","d":"what will follow"},"c":"and so long"}`, true},
		{`{"a":{"b":[6]},"c":"and what follows"}`, `{"a":{"b":[]},"c":"and what follows"}`, false},
		{`{"a":{"b":"x","c":"y","d":7},"c":1}`, `{"a":{"b":"zz","c":"","d":123},"c":22}`, true},
		{`{"a":{"b":"a\nb","c":"y","d":7},"c":1}`, `{"a":{"b":"a\tb","c":"","d":123},"c":22}`, false},
		{`7 `, `"x" `, false},
		{`7 `, `88 `, false},
		{`12 `, `3 `, false},
		{`1234567890123 `, `991234567890123 `, false},
		{`{"a":{"b":"x\u0061"},"c":"and what follows"}`, `{"a":{"b":"x\u0062"},"c":"and what follows"}`, false},
		{`{"a":{"b":"111111111111"},"c":"and what follows"}`, `{"a":{"b":"11111111111111"},"c":"and what follows"}`, true},
		{`{"a":{"b":"one of them"},"c":"and what follows"}`, `{"a":{"b":"one of \"\"m"},"c":"and what follows"}`, false},
		{`{"a":{"b":"one of them"},"c":"and what follows"}`, `{"a":{"b":"one of \\em"},"c":"and what follows"}`, false},
		{`{"a":{"b":"one of \\em"},"c":"and what follows"}`, `{"a":{"b":"one of them"},"c":"and what follows"}`, true},
		{`{"a":{"b":"one of them"},"c":"and what follows"}`, `{"a":{"d":"one of them"},"c":"and what follows"}`, false},
		{`{"x":{"b":"one of them"},"a":{"b":"what follows"}}`, `{"a":{"b":"one of them"},"x":{"b":"what follows"}}`, false},
		{`{"a":{"b":12345678},"c":"and what follows"}`, `{"a":{"b":12345679},"c":"and what follows"}`, true},
		{`{"a":{"b":6},"c":"and what follows"}`, `{"a":{"b":4},"c":"and what follows"}`, true},
		{`{"a":{"b":6},"c":"and what follows"}`, `{"a":{"b":64},"c":"and what follows"}`, true},
		{`{"a":{"b":64},"c":"and what follows"}`, `{"a":{"b":4},"c":"and what follows"}`, true},
		{`{"a":{"b":6},"c":"and what follows"}`, `{"a":{"b":6e2},"c":"and what follows"}`, false},
		{`{"a":{"b":6.5},"c":"and what follows"}`, `{"a":{"b":6.7},"c":"and what follows"}`, false},
		{`{"a":{"b":6},"c":"and what follows"}`, `{"a":{"b":true},"c":"and what follows"}`, false},
		{`{"a":{"b":[6]},"c":"and what follows"}`, `{"a":{"b":[6,7]},"c":"and what follows"}`, false},
		{`{"a":{"b":"a \n of them"},"c":"and what follows"}`, `{"a":{"b":"a \t of them"},"c":"and what follows"}`, false},
		{`{"a":{"b":"a \n of them\n"},"c":"and what follows"}`, `{"a":{"b":"a \n of those\n"},"c":"and what follows"}`, true},
		{`{"a":{"b":"one of them","b1":1},"c":"and what follows"}`, `{"a":{"b":"one of them"},"c":"and what follows"}`, false},
		{`{"a":{"b":"one of them"},"c":"and what follows"}`, `{"a":{"b":"one of them"},"c":"and what follows","d":1}`, false},
		{`{"a":{"b":"one of them"},"c":"and what follows"}`, `{"b":{"b":"one of them"},"c":"and what follows"}`, false},
		{`{"a":{"b":["one of them","and another one"]},"c":1}`, `{"a":{"b":["one of them","x","and another one"]},"c":1}`, false},
		{`{"a":{"b":["one of them","and another one"]},"c":1}`, `{"a":{"b":["one of them","another one"]},"c":1}`, true},
	} {
		if ok := beside(t, &Shape{}, &delta.Encoder{}, excerptOf(t, "a.b"), []byte(c.base), []byte(c.object)); ok != c.ok {
			t.Errorf("%s beside %s: %v", c.object, c.base, ok)
		}
	}
	if _, ok := (&Shape{}).Append(nil, []byte(`{}`), nil); ok {
		t.Error("the shape of nothing is one")
	}
}

// TestShapeOfPods: of the pods of a ReplicaSet most are read without being looked at.
func TestShapeOfPods(t *testing.T) {
	var s Shape
	var enc delta.Encoder
	e := excerptOf(t, "metadata.name", "spec.nodeName", "spec.containers[*].resources.requests.cpu", "status.podIP", "status.conditions", "metadata.labels")
	const of = 40 // a ReplicaSet
	all := podsOf(t, 2000)
	read := 0
	for i := range 2000 {
		if i%of == 0 {
			continue
		}
		if beside(t, &s, &enc, e, all[i-i%of], all[i]) {
			read++
		}
	}
	t.Logf("%d of %d", read, 2000-2000/of)
	if read < 1900 {
		t.Errorf("%d of 1950 have the shape of their sibling", read)
	}
}

// TestRandomShapes: of whatever is different what is said is right.
func TestRandomShapes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "a", "aa", "10.0.0.7", "10.0.0.77", "a text that is long enough to be copied", `\"`, `\u0061`, "é", `"},{"`, "11111111111111111"}
	var value func(depth int) string
	value = func(depth int) string {
		switch n := random.IntN(8); {
		case depth == 0 || n < 4:
			if random.IntN(4) == 0 {
				return []string{"null", "true", "1", "10", "-1.5e3", "[]", "{}"}[random.IntN(7)]
			}
			text := texts[random.IntN(len(texts))]
			if text == `"},{"` {
				text = `\"},{\"`
			}
			return `"` + text + `"`
		case n < 6:
			var all []string
			for range random.IntN(4) {
				all = append(all, value(depth-1))
			}
			return "[" + strings.Join(all, ",") + "]"
		}
		var all []string
		for _, k := range random.Perm(4)[:random.IntN(5)] {
			all = append(all, fmt.Sprintf(`"%c":%s`, 'a'+k, value(depth-1)))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	var s Shape
	var enc delta.Encoder
	same := 0
	for range 50_000 {
		base := fmt.Sprintf(`{"a":%s,"b":%s,"c":%s}`, value(3), value(3), value(2))
		object := change(random, base, texts)
		var all []string
		for range 1 + random.IntN(3) {
			path := string(rune('a' + random.IntN(3)))
			for range random.IntN(3) {
				path += []string{".a", ".b", ".c", "[*]", "[0]"}[random.IntN(5)]
			}
			all = append(all, path)
		}
		if json.Valid([]byte(object)) && beside(t, &s, &enc, excerptOf(t, all...), []byte(base), []byte(object)) {
			same++
		}
	}
	if same < 1000 {
		t.Errorf("%d had a shape", same)
	}
}

// change replaces some pieces by others.
func change(random *rand.Rand, object string, texts []string) string {
	for range 1 + random.IntN(3) {
		at := random.IntN(len(object))
		end := min(at+random.IntN(12), len(object))
		text := texts[random.IntN(len(texts))]
		object = object[:at] + text[:random.IntN(len(text)+1)] + object[end:]
		if len(object) == 0 {
			return "{}"
		}
	}
	return object
}

// held reports whether a Store would hold this JSON.
func held(text []byte) bool {
	program, err := rawjson.Compile(rawjson.Spec{})
	var doc rawjson.Document
	return err == nil && json.Valid(text) && program.Run(text, &doc) == nil
}

func FuzzShape(f *testing.F) {
	f.Add([]byte(`{"a":{"b":"one of them"},"c":"and what follows"}`), []byte(`{"a":{"b":"one of those"},"c":"and what follows"}`), "a.b")
	f.Add([]byte(`{"a":{"b":"x"}}`), []byte(`{"a":{"b":"y"}}`), "a")
	f.Fuzz(func(t *testing.T, base, object []byte, path string) {
		p, err := rawjson.ParsePath(path)
		if err != nil || p.IsZero() || !held(base) || !held(object) || len(base) > delta.MaxBase {
			return
		}
		beside(t, &Shape{}, &delta.Encoder{}, rawjson.NewExcerpt([]rawjson.Path{p}), base, object)
	})
}

func BenchmarkShape(b *testing.B) {
	all := podsOf(b, 2)
	base, object := all[0], all[1]
	e := excerptOf(b, "spec.containers[*].resources.requests.cpu")
	var enc delta.Encoder
	enc.Reset(base)
	d, _ := enc.Append(nil, object, math.MaxInt)
	steps := read(b, d)
	var s Shape
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			s.Take(e, base)
		}
	})
	s.Take(e, base)
	var dst []byte
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			var ok bool
			if dst, ok = s.Append(dst[:0], object, steps); !ok {
				b.Fatal("it has another shape")
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			dst = e.Append(dst[:0], object)
		}
	})
}
