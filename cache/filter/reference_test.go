package filter

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/informerd/informerd/cache/rawjson"
)

// reference evaluates an expression on the decoded object.
func reference(f *Filter, object map[string]any) string {
	out, _, err := f.program.Eval(map[string]any{"object": object, "now": f.now})
	if err != nil {
		return "error: " + err.Error()
	}
	return out.Type().TypeName() + " " + string(mustJSON(out.Value()))
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

func evaluated(f *Filter, raw []byte) string {
	ok, _, err := f.Match(context.Background(), raw)
	if err != nil {
		return "error: " + err.Error()
	}
	return "bool " + string(mustJSON(ok))
}

// oddities are objects in which fields are not what expressions take them for.
var oddities = []string{
	`{}`,
	`{"spec":null,"metadata":null}`,
	`{"spec":[],"metadata":"x"}`,
	`{"spec":{"containers":{}},"metadata":{"labels":[]}}`,
	`{"spec":{"containers":[null,1,"x",{}]}}`,
	` { "spec" : { "replicas" : 3.0 , "containers" : [ { "image" : "nginx" } , { } ] } } `,
	`{"metadata":{"labels":{"app":"wéb\ud83d\ude00","\u0061pp.kubernetes.io/name":"web"},"name":""}}`,
	`{"spec":{"replicas":-0,"ratio":1e-7,"big":9223372036854775808}}`,
}

// TestAgainstDecodedObjects: reading lazily must not be seen.
func TestAgainstDecodedObjects(t *testing.T) {
	objects := append([]string{web}, oddities...)
	for _, test := range expressions {
		f, err := Compile(test.text, noon)
		if err != nil {
			continue
		}
		for _, raw := range objects {
			compare(t, f, []byte(raw))
		}
	}
}

func compare(t *testing.T, f *Filter, raw []byte) {
	t.Helper()
	var object map[string]any
	if utiljson.Unmarshal(raw, &object) != nil || object == nil {
		return
	}
	want := reference(f, object)
	got := evaluated(f, raw)
	if paths, ok := f.Within(); ok && len(paths) > 0 {
		// What is outside of the paths is not missed, in errors neither.
		if within := rawjson.NewExcerpt(paths).Append(nil, raw); evaluated(f, within) != got {
			t.Errorf("%s of %s\n is %s\nand within %v, %s, it is %s", f, raw, got, paths, within, evaluated(f, within))
		}
	}
	if strings.HasPrefix(got, "error: the result is of type") {
		return // the reference has a value that is no answer
	}
	if got != want {
		t.Errorf("%s of %s\n is %s\nnot %s", f, raw, got, want)
	}
}

// FuzzMatch compares on documents nobody thought of.
func FuzzMatch(f *testing.F) {
	var filters []*Filter
	for _, test := range expressions {
		if c, err := Compile(test.text, noon); err == nil {
			filters = append(filters, c)
		}
	}
	for _, raw := range append([]string{web}, oddities...) {
		f.Add([]byte(raw), 0)
	}
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		var object map[string]any
		if json.Unmarshal(raw, &object) != nil || object == nil {
			return
		}
		// Of a key that occurs twice the caller leaves one; object keeps the
		// order that messages depend on out of it.
		unique, err := json.Marshal(object)
		if err != nil {
			return
		}
		compare(t, filters[uint(n)%uint(len(filters))], unique)
	})
}

func FuzzCompile(f *testing.F) {
	for _, test := range expressions {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Compile(text, noon)
		if err != nil {
			return
		}
		_, _, _ = c.Match(context.Background(), []byte(web))
	})
}
