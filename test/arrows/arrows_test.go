// Package arrows holds the direction of the project's imports: the layout is
// the architecture, and a package that reaches against it fails here.
package arrows

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/informerd/informerd/"

// allowed lists, for each top-level folder, those it may import.
var allowed = map[string][]string{
	"cache":     {},
	"discovery": {},
	"web":       {},
	"persist":   {"cache"},
	"server":    {"cache"},
	"cmd":       {"cache", "discovery", "persist", "server", "web"},
	"test":      {"cache", "discovery", "persist", "server", "web"},
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports ","}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		from, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		folder := top(from)
		may, ok := allowed[folder]
		if !ok {
			t.Errorf("%s: no arrows are drawn for folder %q", from, folder)
			continue
		}
		seen++
		for imported := range strings.SplitSeq(imports, ",") {
			to := top(imported)
			if to != "" && to != folder && !slices.Contains(may, to) {
				t.Errorf("%s imports %s: %s may import only %v", from, imported, folder, may)
			}
		}
	}
	if seen < 5 {
		t.Errorf("saw %d packages, which cannot be all", seen)
	}
}

// top is the top-level folder of a package of the module, "" for others.
func top(path string) string {
	rest, ok := strings.CutPrefix(path, module)
	if !ok {
		return ""
	}
	folder, _, _ := strings.Cut(rest, "/")
	return folder
}
