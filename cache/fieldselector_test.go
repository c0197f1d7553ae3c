package cache

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

func TestParseFieldSelector(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		" , ,":                                "",
		"spec.nodeName=n1":                    "spec.nodeName=n1",
		"spec.nodeName==n1":                   "spec.nodeName=n1",
		"spec.nodeName=":                      "spec.nodeName=",
		" spec.nodeName = n1 , a!=b ":         "spec.nodeName=n1,a!=b",
		"a in (x, y ,x),b notin(z)":           "a in (x,y),b notin (z)",
		"a in ()":                             "a in ()",
		"a,!b":                                "a,!b",
		"! a":                                 "!a",
		"in=x":                                "in=x",
		"inner.x":                             "inner.x",
		`a=x\,y\=z\\`:                         `a=x\,y\=z\\`,
		`a in (x\),y\ )`:                      `a in (x\),y\ )`,
		"metadata.annotations['x,y/z=1.0']=v": "metadata.annotations['x,y/z=1.0']=v",
		"spec.containers[*].image in (a,b)":   "spec.containers[*].image in (a,b)",
		"a=b c":                               `a=b\ c`,
	} {
		f, err := ParseFieldSelector(in)
		if err != nil {
			t.Errorf("ParseFieldSelector(%q): %v", in, err)
			continue
		}
		if f.String() != want {
			t.Errorf("ParseFieldSelector(%q) = %q, want %q", in, f, want)
		}
		again, err := ParseFieldSelector(f.String())
		if err != nil || again.String() != f.String() {
			t.Errorf("ParseFieldSelector(%q) = %q, %v: does not read itself back", f, again, err)
		}
	}
}

func TestParseFieldSelectorErrors(t *testing.T) {
	for in, column := range map[string]string{
		"=x":         "column 1:",
		"a=b,!=c":    "column 5:",
		"a=b=c":      "column 4:",
		`a=b\x`:      "column 4:",
		`a=b\`:       "column 4:",
		"a in x":     "column 6:",
		"a in (x":    "column 6:",
		"a in (x) y": "column 10:",
		"a b":        "column 3:",
		"!":          "column 2:",
		"x,a..b=c":   "column 3:",
		"a['x=1":     "column 1:",
	} {
		_, err := ParseFieldSelector(in)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || invalid.Parameter != "fieldSelector" || !strings.HasPrefix(invalid.Message, column) {
			t.Errorf("ParseFieldSelector(%q) = %v, want an InvalidError at %s", in, err, column)
		}
	}
}

// TestNewFieldRequirement: what is given as one condition stays one.
func TestNewFieldRequirement(t *testing.T) {
	for _, c := range []struct {
		path     string
		operator selection.Operator
		values   []string
		want     string // "": an error
	}{
		{"a", selection.Equals, []string{"x,b=y"}, `a=x\,b\=y`},
		{"a", selection.DoubleEquals, []string{" x"}, `a=\ x`},
		{"a", selection.NotEquals, []string{""}, "a!="},
		{"a['=x,b']", selection.NotEquals, []string{"q"}, "a['=x,b']!=q"},
		{"a", selection.In, []string{"y", "x", "y"}, "a in (x,y)"},
		{"a", selection.NotIn, []string{"0", ""}, "a notin (,0)"},
		{"a", selection.DoesNotExist, nil, "!a"},
		{"a['", selection.Equals, []string{"x"}, ""},
		{"", selection.Equals, []string{"x"}, ""},
		{"a,b", selection.Equals, []string{"x"}, ""},
		{"a", selection.Equals, nil, ""},
		{"a", selection.In, nil, ""},
		{"a", selection.Exists, []string{"x"}, ""},
		{"a", selection.GreaterThan, []string{"1"}, ""},
	} {
		r, err := NewFieldRequirement(c.path, c.operator, c.values...)
		var invalid *InvalidError
		switch {
		case c.want == "" && !errors.As(err, &invalid):
			t.Errorf("%q %s %q is %v, %v, want an InvalidError", c.path, c.operator, c.values, r, err)
		case c.want != "" && (err != nil || NewFieldSelector(r).String() != c.want):
			t.Errorf("%q %s %q is %v, %v, want %s", c.path, c.operator, c.values, r, err, c.want)
		}
	}
}

// FuzzParseFieldSelector: what Kubernetes reads means the same here, and what is
// read can be written and read again.
func FuzzParseFieldSelector(f *testing.F) {
	for _, s := range []string{"a=b", "metadata.name!=x,spec.nodeName=", `a=b\,c`, "a in (b,c),!d", "a['b,c']=d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseFieldSelector(s)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("ParseFieldSelector(%q) = %v, want an InvalidError", s, err)
			}
			return
		}
		again, err := ParseFieldSelector(got.String())
		if err != nil || again.String() != got.String() {
			t.Fatalf("ParseFieldSelector(%q) = %q, read again %q, %v", s, got, again, err)
		}
		sameAsKubernetes(t, s, got)
	})
}

func sameAsKubernetes(t *testing.T, s string, got FieldSelector) {
	if strings.ContainsAny(s, "[]'\"{}$! \t\r\n()") {
		return // our extensions, and white space, which it takes as it stands
	}
	theirs, err := fields.ParseSelector(s)
	if err != nil {
		return
	}
	var want, have []string
	for _, r := range theirs.Requirements() {
		want = append(want, strings.TrimPrefix(r.Field, ".")+string(r.Operator)+r.Value)
	}
	for _, r := range got.requirements {
		if r.Operator == selection.Exists {
			return
		}
		have = append(have, r.Path.String()+string(r.Operator)+r.Values[0])
	}
	slices.Sort(want)
	slices.Sort(have)
	if len(want) != len(have) {
		t.Errorf("ParseFieldSelector(%q) = %q, Kubernetes reads %q", s, have, want)
	}
}
