package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// nested is JSON that is so deep.
func nested(depth int) []byte {
	return []byte(strings.Repeat(`{"a":[`, depth) + "1" + strings.Repeat("]}", depth))
}

// TestIndented: what is nested as objects are is indented as by encoding/json, what is
// nested to cost memory is not.
func TestIndented(t *testing.T) {
	for name, src := range map[string]string{
		"object": `{"a":{"b":[1,2,{"c":"x, {\"[\\"}]},"d":[]}`, "number": `1`, "empty": `{}`, "spaces": " {\"a\" :\n 1} \n",
		"deep": string(nested(50)), "wide": "[" + strings.Repeat(`{"a":1},`, 100_000) + "1]",
	} {
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSpace([]byte(src)), "    ", indent); err != nil {
			t.Fatal(err)
		}
		got, err := AppendIndented([]byte("before"), []byte(src), "    ")
		if err != nil || string(got) != "before"+want.String() {
			t.Errorf("%s: %.300q, %v", name, got, err)
		}
	}
	for _, depth := range []int{2_000, 4_900} {
		src := nested(depth)
		got, err := AppendIndented(nil, src, "")
		if err != nil || !bytes.Equal(got, src) {
			t.Errorf("%d deep: %d bytes from %d, %v", depth, len(got), len(src), err)
		}
		if _, err := YAML(src); !errors.Is(err, ErrTooDeep) {
			t.Errorf("%d deep as YAML: %v", depth, err)
		}
	}
	if _, err := AppendIndented(nil, []byte(`{"a"`), ""); err == nil {
		t.Error("half of an object was indented")
	}
}

// FuzzIndented: no text is taken for structure.
func FuzzIndented(f *testing.F) {
	f.Add(`{"a":"\\","b":["{"]}`)
	f.Fuzz(func(t *testing.T, src string) {
		if !json.Valid([]byte(src)) || len(src) > 1000 {
			return
		}
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSpace([]byte(src)), "", indent); err != nil {
			t.Fatal(err)
		}
		// Lines are counted as they are: an estimate that is too small lets memory be
		// taken, one much too large takes indentation away.
		if tooDeep([]byte(src), 0) != (want.Len()-len(src) > indentFree && want.Len() > maxIndent*len(src)) && want.Len() > 4*indentFree {
			t.Errorf("%d bytes of %d", want.Len(), len(src))
		}
		if got, err := AppendIndented(nil, []byte(src), ""); err != nil || want.Len() < indentFree && string(got) != want.String() {
			t.Errorf("%q, %v; want %q", got, err, want.String())
		}
	})
}
