package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// What the documentation shows must work.
func TestDocumentedExamples(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
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
