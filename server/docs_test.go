package server

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

func TestRoutesAndParametersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	w := newWorld(t)
	var walked, documented []string
	err = chi.Walk(w.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == w.methodOf(route) {
			walked = append(walked, route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(doc[strings.Index(doc, "## Routes"):], "## Parameters")
	for line := range strings.Lines(section) {
		row, ok := strings.CutPrefix(line, "| ")
		if !ok {
			continue
		}
		cell, _, _ := strings.Cut(row, " |")
		for route := range strings.SplitSeq(cell, ", ") {
			if strings.HasPrefix(route, "`") {
				documented = append(documented, strings.Trim(route, "`"))
			}
		}
	}
	slices.Sort(walked)
	slices.Sort(documented)
	if !slices.Equal(walked, documented) {
		t.Errorf("routes:     %v\ndocumented: %v", walked, documented)
	}
	for route, parameters := range w.parameters {
		for _, p := range parameters {
			if !strings.Contains(doc, "\n| `"+p+"` |") {
				t.Errorf("docs/api.md does not describe parameter %s of %s", p, route)
			}
		}
	}
}
