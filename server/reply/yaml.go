package reply

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// ErrTooDeep says that something cannot be written as YAML within bounds.
var ErrTooDeep = errors.New("an object is nested too deeply for YAML: ask for JSON")

// YAML is JSON as YAML. sigs.k8s.io/yaml reads the JSON as YAML, too, where some
// characters may not occur that JSON allows, and others are line breaks within a text:
// they are escaped before.
//
// It returns ErrTooDeep for JSON that is nested so deeply that its indentation would be
// most of it.
func YAML(json []byte) ([]byte, error) {
	if tooDeep(json, 0) {
		return nil, ErrTooDeep
	}
	text, err := yaml.JSONToYAML(escaped(json))
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return text, nil
}

// escaped is JSON without characters that mean something else in YAML. It returns json
// itself where there are none.
func escaped(json []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(json); {
		if json[i] < 0x7f {
			i++
			continue
		}
		c, n := utf8.DecodeRune(json[i:])
		if isForeign(c) {
			out = fmt.Appendf(append(out, json[from:i]...), `\u%04x`, c)
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return json
	}
	return append(out, json[from:]...)
}

// isForeign reports the characters from DEL on that YAML 1.2 does not let stand for
// themselves (section 5.1), the byte order mark, and the line breaks of YAML 1.1.
func isForeign(c rune) bool {
	switch {
	case c >= 0x7f && c <= 0x9f, c == '\u2028', c == '\u2029', c == '\ufeff', c == 0xfffe, c == 0xffff:
		return true
	}
	return false
}
