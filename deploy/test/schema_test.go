package test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

type schemaNode struct {
	Properties           map[string]*schemaNode `json:"properties"`
	AdditionalProperties any                    `json:"additionalProperties"`
}

// TestSchema: the schema knows the values that there are, no less and no more, so that
// every name that is misspelled is found.
func TestSchema(t *testing.T) {
	var values map[string]any
	var schema schemaNode
	text, err := os.ReadFile(chartFolder + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(chartFolder + "/values.schema.json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // which Helm adds itself
	compare(t, "", values, &schema)
}

// open are values of Kubernetes' own types, which are checked when they are rendered.
var open = []string{".resources"}

func compare(t *testing.T, path string, values map[string]any, schema *schemaNode) {
	t.Helper()
	if schema.Properties == nil {
		return
	}
	if schema.AdditionalProperties != false {
		t.Errorf("the schema lets anything be in %s", path)
	}
	for name, value := range values {
		node := schema.Properties[name]
		if node == nil {
			t.Errorf("the schema does not know %s.%s", path, name)
			continue
		}
		if inner, ok := value.(map[string]any); ok {
			compare(t, path+"."+name, inner, node)
		}
	}
	for name := range schema.Properties {
		if _, ok := values[name]; !ok && !slices.Contains(open, path) {
			t.Errorf("the schema knows %s.%s, and values.yaml does not", path, name)
		}
	}
}
