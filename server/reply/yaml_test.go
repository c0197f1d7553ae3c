package reply

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// TestYAML: each character comes back from YAML as it went in, whatever is around it.
func TestYAML(t *testing.T) {
	for c := rune(0); c <= 0x1ffff; c++ {
		ordinary := c > 0x3100 && c < 0xfe00 || c > 0x10010
		if !utf8.ValidRune(c) || ordinary && c%997 != 0 {
			continue
		}
		for _, text := range []string{string(c), "a" + string(c) + "b", string(c) + " : #\n" + string(c), "line\n" + strings.Repeat("x", 90) + " " + string(c)} {
			checkYAML(t, map[string]any{"k": text, text: "v"})
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add("\u007f", "\u0085\u2028")
	f.Fuzz(func(t *testing.T, key, text string) {
		if utf8.ValidString(key) && utf8.ValidString(text) {
			checkYAML(t, map[string]any{key: []any{text}})
		}
	})
}

func checkYAML(t *testing.T, want any) {
	t.Helper()
	var plain strings.Builder
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(want); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{plain.String(), unescaped(plain.String())} {
		text, err := YAML([]byte(in))
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		back, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%q becomes %q: %v", in, text, err)
		}
		var got any
		if err := json.Unmarshal(back, &got); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		if b, _ := json.Marshal(want); string(a) != string(b) {
			t.Fatalf("%q becomes %q, which is %q", in, text, back)
		}
	}
}

// unescaped writes what encoding/json escapes of its own accord, and need not be.
func unescaped(s string) string {
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029", `\u007f`, "\u007f").Replace(s)
}
