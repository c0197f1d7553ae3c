package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// What the documentation shows must work.
func TestDocumentedExamples(t *testing.T) {
	for _, file := range []string{"configuration.md", "handlers.md"} {
		t.Run(file, func(t *testing.T) { testExamples(t, "../../../docs/"+file) })
	}
}

func testExamples(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(examples) == 0 {
		t.Fatal("no examples found")
	}
	for _, e := range examples {
		if _, err := config.Parse("example", e[1]); err != nil {
			t.Errorf("%v in:\n%s", err, e[1])
		}
	}
}

// TestDocumentedWorkers: docs/handlers.md shows each worker as its file has it, which tests run.
func TestDocumentedWorkers(t *testing.T) {
	text, err := os.ReadFile("../../../docs/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	const dir = "../../../docs/workers"
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 4 {
		t.Fatal(err, files)
	}
	for _, f := range files {
		worker, err := os.ReadFile(dir + "/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n"+string(worker)+"```\n") {
			t.Errorf("docs/handlers.md does not show %s as it is", f.Name())
		}
	}
}
