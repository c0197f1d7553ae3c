package client

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// decode makes of a Value what encoding/json makes of it.
func decode(v Value) (any, error) {
	switch v.Kind() {
	case '{':
		out := map[string]any{}
		return out, v.Members(func(name []byte, value Value) (err error) {
			out[string(name)], err = decode(value)
			return err
		})
	case '[':
		out := []any{}
		return out, v.Elements(func(value Value) error {
			one, err := decode(value)
			out = append(out, one)
			return err
		})
	case '"':
		return v.Text(), nil
	case 't', 'f', 'n':
		var out any
		return out, v.Decode(&out)
	}
	return json.Number(v.Text()), nil
}

// FuzzValue: whatever is JSON is read as encoding/json does, and nothing else makes it fall.
func FuzzValue(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, ` { "a" : [ 1 , "b\"" , null, true, {"c":{}}, [] ] , "" : -1.5e3 } `, `{"a":"\\","b":"\\\"","c":"é\u00e9"}`,
		`{"a":1,"a":2}`, `[1,2`, `{"a"}`, `{"a":}`, `[,]`, `{1:2}`, `["a]`, `[}`, `{"a":1]`, `[1 2]`, ``, `null`,
		`{"a":"\\\\\\\"}]","long enough for words":["[{\\",{"é]}":"\\\\"}],"more":{"a":{"b":{}}}}`, `["1234567\\"",{"12345\\\\":[]}]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := NewValue([]byte(text))
		if !json.Valid([]byte(text)) {
			_ = v.Members(func(_ []byte, value Value) error { return value.Elements(func(Value) error { return nil }) })
			_ = v.Elements(func(value Value) error { return value.Members(func([]byte, Value) error { return nil }) })
			return
		}
		if v.Kind() != '{' && v.Kind() != '[' {
			return
		}
		if raw, err := NewValue([]byte(text)).Raw(); err != nil || string(raw) != strings.Trim(text, " \n\t\r") {
			t.Fatalf("%q: it is passed as %q (%v)", text, raw, err)
		}
		got, err := decode(v)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		// Of bytes that are no text encoding/json makes another sign.
		if bytes.ContainsRune([]byte(text), '\uFFFD') {
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, want %#v", text, got, want)
		}
	})
}

func TestValueThatIsNone(t *testing.T) {
	ignore := func(Value) error { return nil }
	for _, text := range []string{``, `[`, `[1`, `[1,`, `[1 2]`, `["a`, `[{]`, `{}`, `1`, `[,]`, `[1,]`} {
		if err := NewValue([]byte(text)).Elements(ignore); err == nil {
			t.Errorf("%s was read as an array", text)
		}
	}
	for _, text := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a" 1}`, `{1:1}`, `{"a":1,}`, `[]`, `{"a":1 "b":2}`} {
		if err := NewValue([]byte(text)).Members(func([]byte, Value) error { return nil }); err == nil {
			t.Errorf("%s was read as an object", text)
		}
	}
}

// TestNested: where an object or array ends is found wherever it begins, whatever its strings
// have in them, and of one that is cut off it is known that it is.
func TestNested(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var random func(depth int) any
	random = func(depth int) any {
		switch n := r.IntN(8); {
		case depth > 0 && n < 2:
			a := make([]any, r.IntN(5))
			for i := range a {
				a[i] = random(depth - 1)
			}
			return a
		case depth > 0 && n < 5:
			o := map[string]any{}
			for range r.IntN(4) {
				o[random(0).(string)] = random(depth - 1)
			}
			return o
		default:
			var b strings.Builder
			for range r.IntN(12) {
				b.WriteString([]string{"a", `\`, `"`, "{", "}", "[", "]", "<", "|", "\n", "é", ",", "bcdefghi"}[r.IntN(13)])
			}
			return b.String()
		}
	}
	for range 20_000 {
		raw, err := json.Marshal([]any{random(4)})
		if err != nil {
			t.Fatal(err)
		}
		before, after := strings.Repeat("x", r.IntN(9)), strings.Repeat(`"]`, r.IntN(9))
		text := []byte(before + string(raw) + after)
		if end, err := nested(text, len(before)); err != nil || end != len(before)+len(raw) {
			t.Fatalf("%s: %d, %v, want %d", text, end, err, len(before)+len(raw))
		}
		cut := len(before) + r.IntN(len(raw))
		if end, err := nested(text[:cut], len(before)); err == nil {
			t.Fatalf("%s ends at %d", text[:cut], end)
		}
	}
}

func BenchmarkNested(b *testing.B) {
	row := []byte(`{"resource":"pods","cells":["tax-worker-zzltxcgnb-zr49p","2/2","Running","0","17h","10.128.32.140","bench-node-364","\u003cnone\u003e","\u003cnone\u003e"],"object":{"metadata":{"namespace":"bench-19"}}}`)
	b.SetBytes(int64(len(row)))
	for b.Loop() {
		if end, _ := nested(row, 0); end != len(row) {
			b.Fatal(end)
		}
	}
}
