package rawjson

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	for _, c := range []struct{ paths, object, want string }{
		{"a.b", `{"a":{"b":1,"c":2},"d":3}`, `{"a":{"b":1}}`},
		{"a.b", `{"a":{"c":2}}`, `{"a":{}}`},
		{"a.b", `{"d":1}`, `{}`},
		{"a.b,c", `{"a":{"b":1},"c":[2],"d":{"and what comes then is not read"`, `{"a":{"b":1},"c":[2]}`},
		{"a.b,a.c", `{"a":{"b":1,"c":2,"d":3},"d":4`, `{"a":{"b":1,"c":2}}`},
		{"a.b", `{"a":5}`, `{"a":5}`},
		{"a.b", `{"a":null}`, `{"a":null}`},
		{"a.b", `{"a":[{"b":1,"c":2}]}`, `{"a":[{"b":1,"c":2}]}`},
		{"a[*].b", `{"a":[{"b":1,"c":2},3,{"c":4},[5]]}`, `{"a":[{"b":1},3,{},[5]]}`},
		{"a[*].b", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{"a[*],a.b", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{"a.b,a[*].c", `{"a":[{"b":1,"c":2}],"d":1}`, `{"a":[{"c":2}]}`},
		{"a[1].b", `{"a":[{"b":1,"c":2}],"d":1}`, `{"a":[{"b":1,"c":2}]}`},
		{"a,a.b", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{"a.b,a.d.e", ` { "a" : { "b" : [ 1 ] , "c" : 2, "d" : { "f":1 , "e" : {"x": "}"} } } } `, `{"a":{"b":[ 1 ],"d":{"e":{"x": "}"}}}}`},
		{"a.b", `{"\u0061":{"b":"\"}","c":1}}`, `{"\u0061":{"b":"\"}"}}`},
	} {
		if got := string(NewExcerpt(paths(t, strings.Split(c.paths, ",")...)).Append(nil, []byte(c.object))); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.paths, c.object, got, c.want)
		}
	}
}

// TestExcerptSaysTheSame: whatever paths lead to in an object they lead to in its excerpt.
func TestExcerptSaysTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(8); {
		case depth == 0 || n < 2:
			return []any{nil, true, json.Number("1e3"), "text", `"}`, "é"}[random.IntN(6)]
		case n < 4:
			all := []any{}
			for range random.IntN(3) {
				all = append(all, value(depth-1))
			}
			return all
		}
		object := map[string]any{}
		for range random.IntN(4) {
			object[string(rune('a'+random.IntN(3)))] = value(depth - 1)
		}
		return object
	}
	for range 20_000 {
		var all []string
		for range 1 + random.IntN(3) {
			path := string(rune('a' + random.IntN(3)))
			for range random.IntN(4) {
				path += []string{".a", ".b", ".c", "[*]", "[0]"}[random.IntN(5)]
			}
			all = append(all, path)
		}
		object, err := json.Marshal(map[string]any{"a": value(3), "b": value(3), "d": value(2)})
		if err != nil {
			t.Fatal(err)
		}
		ps := paths(t, all...)
		excerpt := NewExcerpt(ps).Append(nil, object)
		if !json.Valid(excerpt) || len(excerpt) > len(object) {
			t.Fatalf("%v of %s: %s", all, object, excerpt)
		}
		e, err := CompileExtractor(ps)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*Extractor{e, e.Unique()} {
			if got, want := textsOf(t, e, excerpt), textsOf(t, e, object); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v of %s: %v, in %s: %v", all, object, want, excerpt, got)
			}
		}
	}
}

func textsOf(t *testing.T, e *Extractor, object []byte) (all []string) {
	t.Helper()
	err := e.Each(object, func(v Value) bool {
		text := string(v.Text)
		if v.Kind == Object || v.Kind == Array {
			var decoded any
			if err := json.Unmarshal(v.Text, &decoded); err != nil {
				t.Fatal(err)
			}
			text = fmt.Sprint(decoded)
		}
		all = append(all, fmt.Sprintf("%d %v %s", v.Path, v.Kind, text))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
