// Package arrows holds the direction of the project's imports: the layout is
// the architecture, and a package that reaches against it fails here.
package arrows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/informerd/informerd/"

// allowed lists, for each room, those it may import. A room is a top-level folder,
// or one of rooms with a name of its own.
var allowed = map[string][]string{
	"cache":         {},
	"cache/replica": {"cache"},
	"discovery":     {},
	"web":           {},
	"persist":       {"cache"},
	"server":        {"cache"},
	"cmd":           {"cache", "cache/replica", "cmd/informerd/terminal", "discovery", "persist", "server", "web"},
	// What asks over HTTP knows no more than any other client.
	"cmd/informerd/terminal": {},
	"test":                   {"cache", "cache/replica", "discovery", "persist", "server", "web"},
}

// rooms are folders below the top level that are rooms of their own.
var rooms = []string{"cache/replica", "cmd/informerd/terminal"}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports ","}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		from, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		folder := room(from)
		may, ok := allowed[folder]
		if !ok {
			t.Errorf("%s: no arrows are drawn for folder %q", from, folder)
			continue
		}
		seen++
		for imported := range strings.SplitSeq(imports, ",") {
			to := room(imported)
			if to != "" && to != folder && !slices.Contains(may, to) {
				t.Errorf("%s imports %s: %s may import only %v", from, imported, folder, may)
			}
		}
	}
	if seen < 10 {
		t.Errorf("saw %d packages, which cannot be all", seen)
	}
}

// room is the room of a package of the module, "" for others.
func room(path string) string {
	rest, ok := strings.CutPrefix(path, module)
	if !ok {
		return ""
	}
	for _, r := range rooms {
		if rest == r || strings.HasPrefix(rest, r+"/") {
			return r
		}
	}
	folder, _, _ := strings.Cut(rest, "/")
	return folder
}

// sees are the files that may read all there is of something: it is no secret.
var sees = []string{
	"server/kubeapi/customtable.go", // how custom resources are printed
}

// TestReadersAreTold: no answer is made from all objects. That no copy can be had as a
// whole is the compiler's business: the key to it is in cache/internal.
func TestReadersAreTold(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir("../../server", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "access" {
			return fs.SkipDir // who sees what is decided there
		}
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, "../../"))
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if ok && (s.Sel.Name == "WholeScope" || s.Sel.Name == "WholeSight" || s.Sel.Name == "NewStore") {
				found[name] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range found {
		if !slices.Contains(sees, name) {
			t.Errorf("%s reads all there is", name)
		}
	}
	for _, name := range sees {
		if !found[name] {
			t.Errorf("%s reads nothing as a whole: it need not be listed", name)
		}
	}
}
