package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

const webBefore = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","labels":{"app":"web"}},
"spec":{"nodeName":"node-1","replicas":2,"containers":[{"name":"main","image":"registry.example/nginx:1.26"}]},
"status":{"phase":"Pending"}}`

func TestMatchChange(t *testing.T) {
	for _, test := range []struct {
		text      string
		want, new string // with webBefore as old, and without
	}{
		{`object.spec.replicas != old.spec.replicas`, "true", "no such key: spec"},
		{`old == null || object.spec.replicas != old.spec.replicas`, "true", "true"},
		{`object.spec.replicas != old.spec.replicas || old == null`, "true", "true"},
		{`old != null && object.spec.replicas > old.spec.replicas`, "true", "false"},
		{`old == null`, "false", "true"},
		{`object == old`, "false", "false"},
		{`old == old && !(old != old)`, "true", "true"},
		{`old == null || object.metadata.name == old.metadata.name`, "true", "true"},
		{`old == null || object.spec.nodeName != old.spec.nodeName`, "false", "true"},
		{`old != null && object.spec.containers != old.spec.containers`, "true", "false"},
		{`old != null && object.spec.containers.all(c, old.spec.containers.exists(o, o.name == c.name))`, "false", "false"},
		{`old != null && old.?spec.missing.orValue("x") == "x"`, "true", "false"},
		{`old.spec.missing == 1`, "no such key: missing", "no such key"},
		{`object.status.phase == "Running"`, "true", "true"},
		{`object.spec.containers.exists(old, old.name == "side")`, "true", "true"},
		{`dyn(object.spec.replicas)`, "not true or false", "not true or false"},
		{`type(old) == map`, "true", "false"},
	} {
		c, err := CompileChange(test.text, noon)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		for want, old := range map[string][]byte{"old: " + test.want: []byte(webBefore), "none: " + test.new: nil} {
			_, want, _ = strings.Cut(want, ": ")
			got := changed(c, []byte(web), old)
			if got != want && (want == "true" || want == "false" || !strings.Contains(got, want)) {
				t.Errorf("%s, old %v: %s, want %s", test.text, old != nil, got, want)
			}
		}
	}
}

// changed is the answer of a Change, or its error, which must be an EvalError.
func changed(c *Change, object, old []byte) string {
	ok, err := c.MatchChange(object, old)
	if eval, is := errors.AsType[*cache.EvalError](err); is {
		return eval.Message
	}
	if err != nil {
		return "not an EvalError: " + err.Error()
	}
	return fmt.Sprint(ok)
}

// timeless reports whether an expression gives the same answer at all times.
func timeless(text string) bool {
	return !regexp.MustCompile(`\b(now|age|health|healthReason)\b`).MatchString(text)
}

// TestChangeWithoutOld: an expression that does not ask for what was before means the same in
// both, with the same errors; and what it says of object holds for old, too.
func TestChangeWithoutOld(t *testing.T) {
	object := regexp.MustCompile(`\bobject\b`)
	for _, test := range expressions {
		f, err := Compile(test.text, noon)
		c, changeErr := CompileChange(test.text, noon)
		switch {
		case err == nil && !timeless(test.text):
			continue
		case fmt.Sprint(err) != fmt.Sprint(changeErr):
			t.Errorf("%s: %v, and %v of a change", test.text, err, changeErr)
		}
		if err != nil || changeErr != nil {
			continue
		}
		turned, err := CompileChange(object.ReplaceAllString(test.text, "old"), noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range append([]string{web}, oddities...) {
			want, _, err := f.Match(t.Context(), []byte(raw))
			say := fmt.Sprint(want)
			if err != nil {
				say = err.Error()
			}
			for _, old := range [][]byte{nil, []byte(webBefore), []byte(raw)} {
				if got := changed(c, []byte(raw), old); got != say {
					t.Errorf("%s of %s: %s, and %s of a change", test.text, raw, say, got)
				}
			}
			if got := changed(turned, []byte(webBefore), []byte(raw)); got != say {
				t.Errorf("%s of %s: %s, and %s of what was before", test.text, raw, say, got)
			}
		}
	}
}

func TestCompileChangeErrors(t *testing.T) {
	for expression, want := range map[string]string{
		"":                          "filter: empty",
		"old.spec.replicas >":       "filter: column 20: Syntax error",
		"object.x != odl.x":         "filter: column 13: undeclared reference to 'odl'",
		"old == null &&\n  nothing": "filter: line 2, column 3: undeclared reference",
		"old.name.matches('(')":     "filter: column 18: invalid matches argument",
		"old.size()":                "filter: column 1: the expression is of type int",
		"true || now == now":        "filter: column 9: it depends on the time",
		"old == null || age(object) > duration('1h')": "filter: column 19: it depends on the time",
		"health(object) == 'bad'":                     "filter: column 7: it depends on the time",
		"old.x &&\n healthReason(old) == ''":          "filter: line 2, column 14: it depends on the time",
		"object.x.exists(now, .now == now)":           "filter: column 23: it depends on the time",
		strings.Repeat("1+", 3000):                    "filter: 6000 bytes long",
	} {
		_, err := CompileChange(expression, noon)
		bad, ok := errors.AsType[*cache.InvalidError](err)
		if !ok || bad.Parameter != "filter" || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("CompileChange(%.40q) = %v, want %s", expression, err, want)
		}
	}
	// Of an expression that is no condition on a change old is a mistake.
	if _, err := Compile("object.x != old.x", noon); err == nil || !strings.Contains(err.Error(), "undeclared reference to 'old'") {
		t.Errorf("Compile() = %v", err)
	}
	// A variable of a loop is not the time.
	if _, err := CompileChange("object.x.exists(now, now == 1)", noon); err != nil {
		t.Errorf("CompileChange() = %v", err)
	}
}

func TestUsesOld(t *testing.T) {
	for text, want := range map[string]bool{
		"object.spec.x != old.spec.x":                   true,
		"old == null":                                   true,
		"[1].exists(i, old.x == i)":                     true,
		"old.list.exists(old, old == 1)":                true,
		"object.list.exists(old, .old == old)":          true,
		"object.list.map(x, x.old).filter(o, o).size()": false,
		"object.list.exists(old, old == 1)":             false,
		"object.list.exists(x, old, old == x)":          false,
		"object.old == 'old'":                           false,
		"{'a': old}.a == 1":                             true,
		"{old: 1}.size() == 1":                          true,
		"has(old.spec)":                                 true,
		"object.x[old.y] == 1":                          true,
		"object.x.contains(old.y)":                      true,
		"[object.?x, old.?y][0] == [1]":                 true,
		"old ==":                                        false, // which Compile says
		"":                                              false,
		"old == " + strings.Repeat("1+", 3000) + "1":    false,
	} {
		if got := UsesOld(text); got != want {
			t.Errorf("UsesOld(%.60q) = %v", text, got)
		}
	}
}

// TestClockOfLoops: a variable of a loop is not the time, and the time is it within one.
func TestClockOfLoops(t *testing.T) {
	for text, want := range map[string]bool{
		"object.x.exists(now, now == 1)":              false,
		"object.x.exists(i, timestamp(i) > now)":      true,
		"object.x.exists(now, .now > timestamp(now))": true,
		"age(object) > duration('1h')":                true,
	} {
		f, err := Compile(text, noon)
		if err != nil || f.Clock() != want {
			t.Errorf("%s: clock %v, %v", text, err == nil && f.Clock(), err)
		}
	}
}

// TestChangeBounds: the limits are those of filters, told as an expression that has no value
// for this one object.
func TestChangeBounds(t *testing.T) {
	object, old := wide(20_000), wide(20_001)
	for _, text := range []string{
		`['aaaaaaaaaaaaaaaa']` + strings.Repeat(`.map(a, a.replace('', a))`, 5) + ` == [old.metadata.name]`,
		`object.spec.list.all(a, old.spec.list.all(b, a + b != ''))`,
		`object.spec.keys.all(k, old.spec.keys.exists(j, j == 'last'))`,
	} {
		c, err := CompileChange(text, noon)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var got string
		took := allocated(func() { got = changed(c, object, old) })
		if !strings.Contains(got, "limit") && !strings.Contains(got, "longer than") {
			t.Errorf("%s: %s", text, got)
		}
		if took > 400<<20 {
			t.Errorf("%s: allocated %d MB", text, took>>20)
		}
		t.Logf("%v: %s", time.Since(began), got)
	}
}

// FuzzCompileChange: any text is an expression or a mistake, says the same as a filter where
// it does not ask for what was before, and is told apart as CompileChange sees it.
func FuzzCompileChange(f *testing.F) {
	for _, test := range expressions {
		f.Add(test.text, webBefore)
	}
	f.Add(`old == null || object.spec.replicas != old.spec.replicas`, webBefore)
	f.Add(`object.spec.containers.exists(old, .old == old)`, `{}`)
	f.Fuzz(func(t *testing.T, text, old string) {
		if !json.Valid([]byte(old)) {
			old = "{}"
		}
		c, err := CompileChange(text, noon)
		filter, filterErr := Compile(text, noon)
		if UsesOld(text) {
			if filterErr == nil {
				t.Fatalf("%q asks for what was before, and is a filter", text)
			}
		} else if filterErr == nil && !filter.Clock() && err != nil || filterErr != nil && err == nil {
			t.Fatalf("%q: %v, and %v of a change", text, filterErr, err)
		}
		if err != nil {
			return
		}
		_ = changed(c, []byte(web), nil)
		got := changed(c, []byte(web), []byte(old))
		if filterErr != nil {
			return
		}
		ok, _, err := filter.Match(t.Context(), []byte(web))
		want := fmt.Sprint(ok)
		if err != nil {
			want = err.Error()
			if cost, dear := errors.AsType[*cache.CostError](err); dear {
				want = cost.Message
			}
		}
		if got != want {
			t.Errorf("%q: %s, and %s of a change", text, want, got)
		}
	})
}
