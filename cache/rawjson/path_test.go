package rawjson

import (
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for in, want := range map[string]string{
		"spec.nodeName":                   "spec.nodeName",
		".spec.color":                     "spec.color",
		"$.spec.color":                    "spec.color",
		"{.spec.color}":                   "spec.color",
		"{$.spec.color}":                  "spec.color",
		" {.spec.color} ":                 "spec.color",
		"spec.containers[*].image":        "spec.containers[*].image",
		"a[0].b":                          "a[0].b",
		"a[007]":                          "a[7]",
		"a['b']":                          "a.b",
		`a["b"].c`:                        "a.b.c",
		"metadata.annotations['x/y']":     "metadata.annotations['x/y']",
		`metadata.annotations["x.io/y"]`:  "metadata.annotations['x.io/y']",
		`.metadata.annotations.x\.io/y`:   "metadata.annotations['x.io/y']",
		`a['it\'s \\ "x"']`:               `a['it\'s \\ "x"']`,
		"a['']":                           "a['']",
		"['a b'].c":                       "['a b'].c",
		"[0]":                             "[0]",
		"{['a']}":                         "a",
		"a['ü'].b-c_d":                    "a['ü'].b-c_d",
		"metadata.labels.kubernetes/name": "metadata.labels['kubernetes/name']",
	} {
		p, err := ParsePath(in)
		if err != nil {
			t.Errorf("ParsePath(%q): %v", in, err)
			continue
		}
		if p.String() != want {
			t.Errorf("ParsePath(%q) = %s, want %s", in, p, want)
		}
		if again, err := ParsePath(p.String()); again != p {
			t.Errorf("ParsePath(%q) = %v, %v: not the same path", p, again, err)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "column 1: no field named",
		" ":                                  "no field named",
		"$":                                  "no field named",
		"{}":                                 "no field named",
		".":                                  "column 2: a field name is missing",
		"a.":                                 "column 3: a field name is missing",
		"a..b":                               "column 3: recursive descent",
		"a[":                                 "column 3: want [*], [0] or ['name']",
		"a[]":                                "column 3: want [*], [0] or ['name']",
		"a[x]":                               "column 3: want [*]",
		"a[*":                                "column 4: the [ of column 2 is not closed",
		"a[0:2]":                             "column 4: the [ of column 2 is not closed",
		"a[-1]":                              "negative indexes",
		"a[?(@.b)]":                          "column 3: filters are not supported",
		"a['b":                               "column 3: the quote is not closed",
		"a[99999999999999]":                  "index 99999999999999 is too large",
		"a b":                                `column 2: ' ' cannot stand in a bare name`,
		"a.*":                                `column 3: '*' cannot stand`,
		"a[0]b":                              "column 5: want . or [",
		`a\`:                                 "nothing after the backslash",
		"a\xff":                              "not valid UTF-8",
		strings.Repeat("a.", maxSteps) + "a": "more than 64 steps",
	} {
		if _, err := ParsePath(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePath(%q) = %v, want %q", in, err, want)
		}
	}
}

func TestParsePaths(t *testing.T) {
	got, err := ParsePaths(`a.b, c['x,y'] ,d[*].e`)
	if err != nil || len(got) != 3 || got[1].String() != "c['x,y']" || got[2].String() != "d[*].e" {
		t.Errorf("ParsePaths() = %v, %v", got, err)
	}
	if _, err := ParsePaths("a,,b"); err == nil || !strings.Contains(err.Error(), "column 3") {
		t.Errorf("ParsePaths() = %v, want column 3", err)
	}
}

func TestMulti(t *testing.T) {
	if p := paths(t, "a[0].b", "a[*].b", "a['*']"); p[0].Multi() || !p[1].Multi() || p[2].Multi() {
		t.Error("Multi is wrong")
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ extract, drop, redact, want string }{
		"metadata":          {drop: "metadata", want: "drop metadata: metadata.name is needed"},
		"name":              {drop: "metadata.name", want: "metadata.name is needed"},
		"uid":               {redact: "metadata.uid", want: "redact metadata.uid"},
		"kind":              {drop: "kind", want: "kind is needed"},
		"a label":           {drop: "metadata.labels.app", want: "metadata.labels is needed"},
		"owners":            {redact: "metadata.ownerReferences[*].name", want: "metadata.ownerReferences is needed"},
		"element":           {drop: "a[*]", want: "only fields can be dropped"},
		"extract redacted":  {extract: "data.x", redact: "data", want: "extract data.x: it is redacted by data"},
		"extract around it": {extract: "data", redact: "data.x", want: "it is redacted by data.x"},
		"extract dropped":   {extract: "a[0].b", drop: "a[*].b", want: "extract a[0].b: it is dropped by a[*].b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(specOf(t, tc.extract, tc.drop, tc.redact))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Compile() = %v, want %q", err, tc.want)
			}
		})
	}
	for name, s := range map[string]Spec{"drop": {Drop: []Path{{}}}, "redact": {Redact: []Path{{}}}, "extract": {Extract: []Path{{}}}} {
		if _, err := Compile(s); err == nil || !strings.Contains(err.Error(), "the path is empty") {
			t.Errorf("%s: Compile() = %v, want a complaint about the empty path", name, err)
		}
	}
	if _, err := Compile(specOf(t, "metadata.annotations,a[1].b,status", "metadata.annotations.x,a[0].b,metadata.managedFields", "")); err != nil {
		t.Error(err)
	}
}

// Overlapping stars and indexes multiply; that must end in an error, not in
// gigabytes.
func TestCompileBounded(t *testing.T) {
	var all []Path
	for i := range maxSteps {
		p := "a"
		for j := range maxSteps - 1 {
			if i == j {
				p += "[0]"
			} else {
				p += "[*]"
			}
		}
		all = append(all, paths(t, p)...)
	}
	if _, err := CompileProjection(all); err == nil {
		t.Error("CompileProjection() accepts paths that multiply without bound")
	}
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"a.b", "a[*].b", "a[0]", "{.a['x/y']}", `$.a["x\"y"]`, `a\.b.c`, "a[?(@.x)]", "['']", "a..b", "{", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			if !p.IsZero() || !strings.Contains(err.Error(), "column") {
				t.Errorf("ParsePath(%q) = %v, %v", s, p, err)
			}
			return
		}
		again, err := ParsePath(p.String())
		if err != nil || again != p {
			t.Fatalf("ParsePath(%q) = %q, which parses to %q, %v", s, p, again, err)
		}
		if _, err := CompileProjection([]Path{p}); err != nil {
			t.Fatal(err)
		}
		if list, err := ParsePaths(p.String()); err != nil || len(list) != 1 || list[0] != p {
			t.Fatalf("ParsePaths(%q) = %v, %v", p, list, err)
		}
	})
}
