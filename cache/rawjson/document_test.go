package rawjson

import "testing"

func paths(t testing.TB, list ...string) []Path {
	t.Helper()
	var out []Path
	for _, s := range list {
		p, err := ParsePath(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func compile(t testing.TB, s Spec) *Program {
	t.Helper()
	p, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAppendJSON(t *testing.T) {
	secret := Spec{
		Redact: paths(t, "data", "stringData"),
		Drop:   paths(t, "metadata.managedFields"),
	}
	for name, tc := range map[string]struct {
		spec     Spec
		src, out string
	}{
		"as is":            {Spec{}, `{"apiVersion":"v1","kind":"Pod"}`, `{"apiVersion":"v1","kind":"Pod"}`},
		"defaults":         {Spec{}, `{"a":1}`, `{"kind":"dk","apiVersion":"dv","a":1}`},
		"defaults, empty":  {Spec{}, `{}`, `{"kind":"dk","apiVersion":"dv"}`},
		"kind is null":     {Spec{}, `{"kind":null,"apiVersion":"v1"}`, `{"kind":"dk","apiVersion":"v1"}`},
		"only kind, bad":   {Spec{}, `{"kind":5}`, `{"kind":"dk","apiVersion":"dv"}`},
		"redacted":         {secret, `{"apiVersion":"v1","kind":"S","data":{"a":"x","b":[1]}}`, `{"apiVersion":"v1","kind":"S","data":{"a":"","b":""}}`},
		"redacted scalar":  {secret, `{"apiVersion":"v1","kind":"S","data":"x"}`, `{"apiVersion":"v1","kind":"S","data":""}`},
		"redacted array":   {secret, `{"apiVersion":"v1","kind":"S","data":["x",{"y":1}]}`, `{"apiVersion":"v1","kind":"S","data":["",""]}`},
		"redacted twice":   {secret, `{"apiVersion":"v1","kind":"S","data":{"a":"x"},"data":{"b":"y"}}`, `{"apiVersion":"v1","kind":"S","data":{"b":""}}`},
		"redacted escaped": {secret, `{"apiVersion":"v1","kind":"S","d\u0061ta":{"a":"x"}}`, `{"apiVersion":"v1","kind":"S","d\u0061ta":{"a":""}}`},
		"annotation cut": {secret, `{"apiVersion":"v1","kind":"S","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","b":"c"}}}`,
			`{"apiVersion":"v1","kind":"S","metadata":{"annotations":{"b":"c"}}}`},
		"all cut": {secret, `{"apiVersion":"v1","kind":"S","metadata":{"managedFields":[],"managedFields":[]}}`,
			`{"apiVersion":"v1","kind":"S","metadata":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var d Document
			if err := compile(t, tc.spec).Run([]byte(tc.src), &d); err != nil {
				t.Fatal(err)
			}
			if got := string(d.AppendJSON(nil, "dv", "dk")); got != tc.out {
				t.Errorf("AppendJSON() = %s, want %s", got, tc.out)
			}
		})
	}
}
