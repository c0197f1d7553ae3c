package reply

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const indent = "  "

// Indentation costs as much for each line as the line is deep: an object of 20 KB that
// is 9,000 deep becomes 240 MB. What would be more than so many times its size, and
// more than indentFree, is left on one line, or refused as YAML, which has no such form.
const (
	maxIndent  = 16
	indentFree = 256 << 10
)

// AppendIndented appends valid JSON for people. Lines but the first begin with prefix. JSON
// that is nested so deeply that the indentation would be most of it stays on one line.
func AppendIndented(dst, src []byte, prefix string) ([]byte, error) {
	src = bytes.TrimSpace(src)
	if quick, ok := quickIndented(dst, src, prefix, max(indentFree, maxIndent*len(src))); ok {
		return quick, nil
	}
	out := bytes.NewBuffer(dst)
	var err error
	if tooDeep(src, len(prefix)) {
		err = json.Compact(out, src)
	} else {
		err = json.Indent(out, src, prefix, indent)
	}
	if err != nil {
		return dst, fmt.Errorf("indent JSON: %w", err)
	}
	return out.Bytes(), nil
}

// tooDeep reports whether the lines of src, each as deep as it is, are more than they
// may be.
func tooDeep(src []byte, prefix int) bool {
	limit := max(indentFree, maxIndent*len(src))
	size, depth := 0, 0
	for i := 0; i < len(src) && size <= limit; i++ {
		switch src[i] {
		case '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			size += prefix + depth*len(indent)
		case '}', ']':
			depth--
			size += prefix + depth*len(indent)
		case ',':
			size += prefix + depth*len(indent)
		}
	}
	return size > limit
}

// AppendYAMLItem appends JSON as an element of a list in YAML that is not indented
// itself.
func AppendYAMLItem(dst, json []byte) ([]byte, error) {
	text, err := YAML(json)
	if err != nil {
		return dst, err
	}
	mark := "- "
	for line := range bytes.Lines(text) {
		if len(line) > 1 { // an empty line is part of a block of text
			dst = append(dst, mark...)
		}
		dst = append(dst, line...)
		mark = indent
	}
	return dst, nil
}
