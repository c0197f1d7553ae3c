// Package documents holds the documents to the code: what they name is there.
package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the top of the project, seen from here.
const root = "../.."

var (
	namedTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	namedFile = regexp.MustCompile("`((?:cache|cmd|deploy|discovery|persist|server|test|web)/[A-Za-z0-9_./-]+\\.[a-z]+)`")
	aTest     = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\)`)
)

// TestNamed: a promise that names the test that holds it, or the file that keeps it,
// is worth nothing when that was renamed.
func TestNamed(t *testing.T) {
	tests, documents := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "node_modules" || path != root && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".md") {
			documents[path] = string(text)
			return nil
		}
		for _, found := range aTest.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, text := range documents {
		for _, found := range namedTest.FindAllStringSubmatch(text, -1) {
			seen++
			if !tests[found[1]] {
				t.Errorf("%s names %s, and there is no such test", path, found[1])
			}
		}
		for _, found := range namedFile.FindAllStringSubmatch(text, -1) {
			seen++
			if _, err := os.Stat(filepath.Join(root, found[1])); err != nil && !made(found[1]) {
				t.Errorf("%s names %s: %v", path, found[1], err)
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d names in %d documents, the expressions find too few", seen, len(documents))
	}
}

// made are files that a run leaves behind.
func made(path string) bool { return strings.HasPrefix(path, "test/results/") }

// TestDependencies: of each module that the program needs itself ARCHITECTURE.md says why.
func TestDependencies(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Dependencies\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no Dependencies")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	needed := 0
	for _, found := range required.FindAllStringSubmatch(string(mod), -1) {
		needed++
		if name := major.ReplaceAllString(found[1], ""); !strings.Contains(table, name[strings.LastIndex(name, "/")+1:]) {
			t.Errorf("ARCHITECTURE.md does not say why there is %s", found[1])
		}
	}
	if needed < 10 {
		t.Errorf("%d modules are needed: go.mod is not read as it should be", needed)
	}
}

var (
	// required is a line of go.mod that is not about what others need.
	required = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)
	major    = regexp.MustCompile(`/v\d+$`)
)
