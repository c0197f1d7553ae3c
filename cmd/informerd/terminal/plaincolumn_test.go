package terminal

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plainTemplates are columns that are read without JSONPath.
const plainTemplates = `A:.a,B:.a.b,C:.a[*],D:.a[*].b,E:.a[*].b[*],F:.a.b[*].c,G:.a[*].b[*].c,H:.x\.y/z,I:a,J:.a[*][*],K:.a.b.c,L:.é`

// oddValues are what a path may come upon.
var oddValues = []string{
	`null`, `true`, `false`, `0`, `1e3`, `1.0`, `-0`, `12345678901234567890`, `1E+2`, `""`, `"text"`, `"null"`, `"a,b\nc\"d"`, `"\u00e9\u0000\u001b[31m"`,
	`"\ud800"`, `"\ud83d\ude00"`, `"<b>&é😀"`, `"\\"`, `[]`, `{}`, `[[]]`, `[null]`, `[ 1 , "x" ]`, `[[1],[],[2]]`, `[{"b":1},{},{"b":null},3]`, `{"b":{"z":1.0,"a":"<"}}`,
	`{"b":[{"c":1},null,{"c":[]}]}`, `{"b":1,"b":2}`, `{"\u0062":"escaped"}`, "{ \"b\" :\t[ ] }", `[{"b":[]},{"b":[1]}]`, `[{"b":[1]},{"b":null},{"b":"s"}]`, `[[],[1]]`,
}

// checkPlain compares both ways of one object.
func checkPlain(t *testing.T, columns []customColumn, object string) (plain bool) {
	t.Helper()
	want, err := jsonPathCells(columns, []byte(object))
	if err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	for i := range columns {
		one := columns[i : i+1]
		r := newCellReader(one)
		ok := r.plain([]byte(object))
		plain = plain || ok
		if ok && string(r.cell(0)) != want[i] {
			t.Errorf("%s of %s: %q, by JSONPath %q", one[0].path, object, r.cell(0), want[i])
		}
	}
	if got, err := newCellReader(columns).cells([]byte(object)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: %q, %v, by JSONPath %q", object, got, err, want)
	}
	return plain
}

// plainColumns are those of plainTemplates, all of which are to be plain.
func plainColumns(tb testing.TB) []customColumn {
	tb.Helper()
	columns, err := parseColumns(plainTemplates)
	if err != nil {
		tb.Fatal(err)
	}
	for _, c := range columns {
		if c.steps == nil {
			tb.Errorf("%s is not plain", c.path)
		}
	}
	return columns
}

// TestPlainColumnsEqualJSONPath: what is read without JSONPath is what it reads.
func TestPlainColumnsEqualJSONPath(t *testing.T) {
	columns := plainColumns(t)
	for _, v := range oddValues {
		for _, form := range []string{`{"a":%s}`, ` { "x.y/z" : %s , "a":{"b":1}}` + "\n", `{"a":{"b":%s}}`, `{"a":[%[1]s,%[1]s]}`, `{"a":1,"a":%s}`, `{"é":%s}`} {
			if object := fmt.Sprintf(form, v); !checkPlain(t, columns, object) {
				t.Errorf("nothing of %s was read without JSONPath", object)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		checkPlain(t, columns, `{"a":`+oddValue(random, 4)+`,"x.y/z":`+oddValue(random, 2)+`}`)
	}
}

// oddValue is a random value of the names that plainTemplates look for.
func oddValue(random *rand.Rand, depth int) string {
	var parts []string
	switch n := random.IntN(3); {
	case depth == 0 || n == 0:
		return oddValues[random.IntN(len(oddValues))]
	case n == 1:
		for range random.IntN(4) {
			parts = append(parts, oddValue(random, depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for range random.IntN(4) {
		parts = append(parts, `"`+[]string{"a", "b", "c", `\u0062`}[random.IntN(4)]+`":`+oddValue(random, depth-1))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestNotPlain: other paths are left to JSONPath.
func TestNotPlain(t *testing.T) {
	for _, path := range []string{".a[0]", ".a[1:]", ".a[-1]", "..a", ".*", ".a[?(@.b==1)]", ".a['b','c']"} {
		columns, err := parseColumns("X:" + path)
		if err != nil {
			t.Fatal(err)
		}
		if columns[0].steps != nil {
			t.Errorf("%s is read without JSONPath: %+v", path, columns[0].steps)
		}
	}
}

func FuzzPlainColumns(f *testing.F) {
	for _, v := range oddValues {
		f.Add(`{"a":` + v + `}`)
	}
	columns := plainColumns(f)
	f.Fuzz(func(t *testing.T, object string) {
		if json.Valid([]byte(object)) && strings.HasPrefix(object, "{") {
			checkPlain(t, columns, object)
		}
	})
}

// TestLongLines: a line may be longer than what is read at once, and those after it are as
// they are.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20<<10)
	w := &world{}
	w.add(t, "", "configmaps", "ConfigMap", true, "cm",
		`{"metadata":{"name":"a","namespace":"shop"},"data":{"x":"first"}}`,
		`{"metadata":{"name":"b","namespace":"shop"},"data":{"x":"`+long+`"}}`,
		`{"metadata":{"name":"c","namespace":"shop"},"data":{"x":"last"}}`)
	w.serve(t)
	for columns, want := range map[string]string{
		"N:.metadata.name,X:.data.x":    "a   first\nb   " + long + "\nc   last\n",
		"N:.metadata.name,X:.data['x']": "a   first\nb   " + long + "\nc   last\n",
	} {
		if got := w.run(t, "get", "cm", "-n", "shop", "--no-headers", "-o", "custom-columns="+columns); got.code != 0 || got.out != want {
			t.Errorf("%s: exit code %d, %d bytes, want %d", columns, got.code, len(got.out), len(want))
		}
	}
}
