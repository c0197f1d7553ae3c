package rawjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// read builds what encoding/json would.
func (l Lazy) read() any {
	switch l.Kind() {
	case Object:
		m := map[string]any{}
		for parts := l.Parts(); ; {
			key, plain, value, ok := parts.Next()
			if !ok {
				return m
			}
			m[KeyText(key, plain)] = value.read()
		}
	case Array:
		list := []any{}
		for parts := l.Parts(); ; {
			_, _, value, ok := parts.Next()
			if !ok {
				return list
			}
			list = append(list, value.read())
		}
	case String:
		return l.Text()
	case Bool:
		return l.Text() == "true"
	case Null:
		return nil
	}
	n, f, integer := l.Number()
	if integer {
		return float64(n)
	}
	return f
}

var lazyDocuments = []string{
	`{}`, `[]`, ` [ ] `, ` { "a" : [ 1 , 2.5 , -3e2, "x\ny\u00e9", true , false , null , { } , [ [ ] ] ] , "b\"c" : { "d" : "" } } `,
	`"text"`, `12345678901234567890`, `-0`, `{"a":{"b":{"c":[{"d":[1,[2,[3]]]}]}},"e":"f"}`,
}

func TestLazyReadsWhatJSONDoes(t *testing.T) {
	for _, doc := range append(lazyDocuments, string(testPod())) {
		checkLazy(t, []byte(doc))
	}
}

// What is passed over may hold anything that looks like its end, at any place in
// the blocks it is read in.
func TestLazyPassesOver(t *testing.T) {
	for n := range 200 {
		pad := strings.Repeat("p", n)
		for _, inner := range []string{`]}`, `\\`, `\"}`, `{[`, `\\\"]`, `\u007d\"}`, ``} {
			checkLazy(t, []byte(`{"a":{"b":["`+pad+inner+`",{"}":[]}],"`+inner+`":{}},"c":[["]`+inner+`"],[]],"d":"`+pad+`"}`))
		}
	}
}

func checkLazy(t *testing.T, doc []byte) {
	t.Helper()
	var want any
	if err := json.Unmarshal(doc, &want); err != nil {
		t.Fatal(err)
	}
	l := NewLazy(doc)
	if got := l.read(); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nreads as %v", doc, got)
	}
	checkTexts(t, l)
	var again any
	if err := json.Unmarshal(l.Raw(), &again); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("%s\nis, raw, %s", doc, l.Raw())
	}
}

// checkTexts holds that texts that are appended are the same.
func checkTexts(t *testing.T, l Lazy) {
	t.Helper()
	if l.Kind() != Object && l.Kind() != Array {
		if got, want := string(l.AppendText([]byte("before"))), "before"+l.Text(); got != want {
			t.Errorf("the text %q of %s is appended as %q", want, l.Raw(), got)
		}
		return
	}
	for parts := l.Parts(); ; {
		key, plain, v, ok := parts.Next()
		if !ok {
			return
		}
		if got, want := string(AppendKeyText([]byte("before"), key, plain)), "before"+KeyText(key, plain); got != want {
			t.Errorf("the text %q of key %s is appended as %q", want, key, got)
		}
		checkTexts(t, v)
	}
}

func FuzzLazy(f *testing.F) {
	for _, doc := range lazyDocuments {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var v any
		if json.Unmarshal(doc, &v) != nil {
			return
		}
		checkLazy(t, doc)
	})
}

// TestPartsPassed: who walks through the parts of parts need not have them read again.
func TestPartsPassed(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, ` { "a" : { "b" : [ 1 , { } , [ ] , "]}" ] , "c" : "\\\"" } , "d" : -1.5e3 , "e" : null } `, `[[[[]],[{}]],{"a":[{"b":{"c":[1,2,3]}}]}]`,
	} {
		raw := NewLazy([]byte(text))
		var walk func(l Lazy) int
		walk = func(l Lazy) int {
			if k := l.Kind(); k != Object && k != Array {
				return 0
			}
			parts := l.Parts()
			if parts.End() != 0 {
				t.Errorf("%s: an end before it is reached", l)
			}
			for {
				_, _, v, ok := parts.Next()
				if !ok {
					return parts.End()
				}
				n := walk(v)
				if raw := len(v.Raw()); n != 0 && n != raw {
					t.Errorf("%s: it is %d bytes long, not %d", v, raw, n)
				}
				parts.Passed(n)
			}
		}
		if n := walk(raw); n != len(raw.Raw()) {
			t.Errorf("%s: %d bytes, want %d", text, n, len(raw.Raw()))
		}
	}
}

// TestFirst: of names that occur twice the first counts, and where one leads nowhere there is
// nothing.
func TestFirst(t *testing.T) {
	src := []byte(`{"a":{"b":1,"\u0063":"x","b":2},"d":[{"b":3}],"a":{"b":4,"e":5},"f":null}`)
	for path, want := range map[string]string{
		"a b": "1", "a c": `"x"`, "a e": "", "d b": "", "f b": "", "f": "null", "g": "", "a b x": "", "": string(src),
	} {
		got := NewLazy(src).First(strings.Fields(path)...)
		if want == "" && got != nil || want != "" && (len(got) == 0 || string(got.Raw()) != want) {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}
