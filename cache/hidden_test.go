package cache

import (
	"errors"
	"strings"
	"testing"
)

// TestHiddenFields: what a rule takes out cannot be selected by. It would be answered
// as if no object had it.
func TestHiddenFields(t *testing.T) {
	spec := thingSpec
	spec.Drop = []string{"metadata.managedFields", "spec.template", "spec.hosts[*].token"}
	spec.Redact = []string{"data"}
	s := newStore(t, spec)
	s.Replace("", nil, "1")
	for selector, why := range map[string]string{
		"spec.template=x":         "things.example.com drops spec.template",
		"spec.template.spec.node": "drops spec.template",
		"!spec.template":          "drops spec.template",
		"spec.hosts[0].token!=x":  "drops spec.hosts[*].token",
		"metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']=x": "drops metadata.annotations",
		"data.password=secret":    "things.example.com redacts data",
		"data.password!=":         "redacts data",
		"data.password in (a,b)":  "redacts data",
		"data.deep.down":          "redacts data",
		"spec.node=n1,data.a=b":   "redacts data",
		"spec.node=n1":            "",
		"spec.hosts[*].name=web":  "",
		"data.password":           "",
		"!data.password":          "",
		"data":                    "",
		"spec":                    "",
		"metadata.annotations.a=": "",
		"metadata.name=x":         "",
	} {
		fields, err := ParseFieldSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Matcher(Query{Fields: fields})
		bad, refused := errors.AsType[*InvalidError](err)
		switch {
		case why == "" && err != nil:
			t.Errorf("%s: %v", selector, err)
		case why != "" && (!refused || bad.Parameter != "fieldSelector" || !strings.Contains(bad.Message, why)):
			t.Errorf("%s: %v, want an InvalidError with %q", selector, err, why)
		}
	}
}
