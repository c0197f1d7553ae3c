package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/cmd/informerd/config"
)

func TestReferencesAndTexts(t *testing.T) {
	got, err := config.Parse("f", []byte(`
references:
- {edge: paints, from: widgets.example.com, path: "spec.colors[*]", to: configmaps}
- {edge: signs, from: widgets.example.com, path: spec.key.name, to: secrets, namespacePath: spec.key.namespace}
- {edge: follows, from: pods, path: spec.leader}
search:
  texts:
    configmaps: [data.note, "data['a.b']"]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []graph.Rule{
		{Edge: "paints", From: "widgets.example.com", Path: "spec.colors[*]", To: "configmaps"},
		{Edge: "signs", From: "widgets.example.com", Path: "spec.key.name", To: "secrets", NamespacePath: "spec.key.namespace"},
		{Edge: "follows", From: "pods", Path: "spec.leader"},
	}
	if !slices.Equal(got.References, want) {
		t.Errorf("references = %+v, want %+v", got.References, want)
	}
	texts := map[string][]string{"configmaps": {"data.note", "data['a.b']"}}
	if !maps.EqualFunc(got.Search.Texts, texts, slices.Equal) {
		t.Errorf("texts = %v, want %v", got.Search.Texts, texts)
	}
}

func TestReferenceMistakes(t *testing.T) {
	for text, want := range map[string][]string{
		"references: x":                       {`references`},
		"references: [x]":                     {`references[0]: is "x", needs keys and values`},
		"references: [{edge: e, from: pods}]": {"references[0]: needs path"},
		"references: [{edge: e, from: pods, path: a, too: x}]":                          {`did you mean "to"?`},
		"references: [{edge: 'e e', from: pods, path: a}]":                              {"references[0].edge: bad name"},
		"references: [{edge: e, from: '*', path: a, to: Pods}]":                         {"references[0].from: bad resource", "references[0].to: bad resource"},
		"references: [{edge: e, from: pods, path: a..b}]":                               {"references[0].path"},
		"references: [{edge: e, from: pods, path: 'a[*]', to: pods, namespacePath: b}]": {"references[0]: a[*] with its namespace"},
		"search: {texts: {Pods: [a], pods: [a..b], nodes: x}}":                          {"search.texts.Pods: bad resource", "search.texts.pods[0]", "search.texts.nodes"},
		"search: {text: {}}": {`did you mean "texts"?`},
	} {
		_, err := config.Parse("f", []byte(text))
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		for _, message := range want {
			if !strings.Contains(err.Error(), message) {
				t.Errorf("%s: %v, want %q in it", text, err, message)
			}
		}
	}
}
