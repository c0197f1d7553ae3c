package kubeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// withVersion is the JSON of an object with another metadata.resourceVersion:
// the last state of what left a selection carries the version of the change
// that took it out.
func withVersion(raw []byte, version string) ([]byte, error) {
	metadata, err := metadataOf(raw)
	if err != nil {
		return nil, err
	}
	at := bytes.Index(raw, metadata)
	start, end := stringField(metadata, "resourceVersion")
	if at < 0 || start < 0 {
		return nil, fmt.Errorf("object has no resourceVersion")
	}
	quoted, err := json.Marshal(version)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(raw)+len(quoted))
	out = append(out, raw[:at+start]...)
	out = append(out, quoted...)
	return append(out, raw[at+end:]...), nil
}

// stringField finds the value of a field of a valid JSON object, quotes
// included, where it is a string; -1 if there is none.
func stringField(object []byte, name string) (start, end int) {
	quoted := []byte(`"` + name + `"`)
	for i, depth := 0, 0; i < len(object); i++ {
		switch object[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			n := stringEnd(object, i)
			if depth == 1 && bytes.Equal(object[i:n], quoted) {
				if start := valueAfter(object, n); start >= 0 && object[start] == '"' {
					return start, stringEnd(object, start)
				}
			}
			i = n - 1
		}
	}
	return -1, -1
}

// stringEnd is where the string that begins at i ends.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(b))
}

// valueAfter is where the value of a key that ended at i begins; -1 if what
// ended there was no key.
func valueAfter(b []byte, i int) int {
	rest := bytes.TrimLeft(b[i:], " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' {
		return -1
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(rest) == 0 {
		return -1
	}
	return len(b) - len(rest)
}
