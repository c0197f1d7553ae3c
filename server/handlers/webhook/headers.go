package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// headers are those whose values are in files.
type headers map[string]*sinkconf.File

func newHeaders(m *sinkconf.Mistakes, paths map[string]string) headers {
	h := headers{}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		field := "headerFiles." + name
		canonical := http.CanonicalHeaderKey(name)
		if mistake := headerMistake(name); mistake != "" {
			m.Add(field, "%s", mistake)
			continue
		}
		if h[canonical] != nil {
			m.Add(field, "is given twice, in letters of different case")
			continue
		}
		if paths[name] == "" {
			m.Add(field, "is empty: name a file with the header's value")
			continue
		}
		h[canonical] = m.File(field, paths[name])
		if _, err := h[canonical].Content(); err != nil {
			continue // said already
		}
		if _, err := value(h[canonical]); err != nil {
			m.Note(field, err)
		}
	}
	return h
}

// set puts all of them into to.
func (h headers) set(to http.Header) error {
	for name, f := range h {
		v, err := value(f)
		if err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
		to.Set(name, v)
	}
	return nil
}

const maxValue = 16 << 10

func value(f *sinkconf.File) (string, error) {
	text, err := f.Text()
	switch {
	case err != nil:
		return "", err
	case len(text) > maxValue:
		return "", fmt.Errorf("file %s is too long for a header: at most 16 KiB", f.Path)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "", fmt.Errorf("file %s has line breaks or control characters, which cannot be in a header: one line", f.Path)
	}
	return text, nil
}
