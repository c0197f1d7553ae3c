package filter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPlain: what is answered without cel-go is answered as cel-go does, of objects that have
// what is asked for and of those that do not.
func TestPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	texts := []string{"", "web", "we", "b", "é", `\"`, `\\`, "null", "3"}
	var expression func(depth int) string
	expression = func(depth int) string {
		path := "object." + pick("a", "a.b", "a['b']", "a['b-c']", "c", "none", "a.b.c")
		switch n := r.IntN(8); {
		case depth > 0 && n < 2:
			return "(" + expression(depth-1) + pick(" && ", " || ") + expression(depth-1) + ")"
		case depth > 0 && n == 2:
			return "!(" + expression(depth-1) + ")"
		case n < 5:
			return path + pick(" == ", " != ") + `"` + pick(texts...) + `"`
		case n == 5:
			return `"` + pick(texts...) + `"` + pick(" == ", " != ") + path
		case n == 6 && r.IntN(3) == 0:
			return pick("has(object.a)", "object.c in ['web']", "object.a.b > 'a'")
		}
		return path + pick(".startsWith(", ".endsWith(", ".contains(") + `"` + pick(texts...) + `")`
	}
	var value func(depth int) string
	value = func(depth int) string {
		if depth > 0 && r.IntN(3) > 0 {
			return fmt.Sprintf(`{%s:%s,"b-c":%s,"b":%s}`, pick(`"\u0062"`, `"x"`), value(0), value(depth-1), value(depth-1))
		}
		if r.IntN(5) == 0 {
			return pick("3", "null", "true", "[]", "{}")
		}
		return `"` + pick(append(texts, `\u0077eb`, `w\u00e9b`)...) + `"`
	}
	plain, known := 0, 0
	for range 4000 {
		text := expression(3)
		f, err := Compile(text, noon)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if f.plain.plain == nil {
			continue
		}
		plain++
		quick := f.plain
		for range 8 {
			raw := fmt.Sprintf(`{"c":%s,"a":%s%s}`, value(1), value(2), pick("", `,"c":"web"`))
			if _, ok := quick.of([]byte(raw)); ok {
				known++
			}
			f.plain = quick
			got := evaluated(f, []byte(raw))
			f.plain = plainAnswer{}
			if want := evaluated(f, []byte(raw)); got != want {
				t.Fatalf("%s of %s: %s, want %s", text, raw, got, want)
			}
		}
	}
	if plain < 1000 || known < 2000 {
		t.Errorf("%d expressions are plain, %d answers known", plain, known)
	}
}

// TestNotPlain: what is not about texts alone is left to cel-go.
func TestNotPlain(t *testing.T) {
	for _, text := range []string{
		"object.spec.replicas == 3", "has(object.a)", "object.a == object.b", "'a' == 'a'", "object.a[0] == 'x'", "object.a.matches('x')",
		"object.?a.orValue('x') == 'x'", "object.a == 'x' && object.b > 2", "object.items.exists(object, object.a == 'x')", "object.a.startsWith(object.b)", "object == 'x'",
	} {
		f, err := Compile(text, noon)
		if err != nil && !strings.Contains(text, "object == ") {
			t.Fatalf("%s: %v", text, err)
		}
		if err == nil && f.plain.plain != nil {
			t.Errorf("%s is answered without cel-go", text)
		}
	}
}

// TestPlainIsBounded: many comparisons, and large objects, are for cel-go, which bounds what it
// takes; of others it costs as much as there are comparisons.
func TestPlainIsBounded(t *testing.T) {
	small, large := []byte(`{"a":"x"}`), []byte(`{"a":"`+strings.Repeat("x", maxPlain)+`"}`)
	for n := range 3 * mostPlain {
		f, err := Compile(strings.Repeat("object.a.contains('z') || ", n)+"object.a == 'x'", noon)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := f.plain.of(small); known != (n < mostPlain) {
			t.Errorf("%d comparisons are answered without cel-go: %v", n+1, known)
		}
		if _, known := f.plain.of(large); known {
			t.Error("a large object is looked at without cel-go")
		}
		if ok, cost, err := f.Match(t.Context(), small); !ok || err != nil || n < mostPlain && cost != uint64(n+1)*plainCost {
			t.Errorf("%d comparisons: %v at cost %d, %v", n+1, ok, cost, err)
		}
	}
}

func BenchmarkPlain(b *testing.B) {
	f, err := Compile("object.metadata.name != ''", noon)
	if err != nil {
		b.Fatal(err)
	}
	object := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-7d4b9c8f6d-x2x7k","namespace":"shop","uid":"f3a5463f-0850-448c-a518-c1a943d1b921","resourceVersion":"96923"}}`)
	for name, plain := range map[string]plainAnswer{"plain": f.plain, "cel": {}} {
		b.Run(name, func(b *testing.B) {
			f.plain = plain
			for b.Loop() {
				if ok, _, err := f.Match(b.Context(), object); !ok || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
