package kubeapi

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPrintedCells: cells come as the API server wrote them, without the spaces between, and
// with ages of now; a row may have fewer than there are columns, or more. What they share
// with their object is not held.
func TestPrintedCells(t *testing.T) {
	columns := []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Age"}, {Name: "N"}, {Name: "Age"}}
	o := newWorld(t).pods.decode(t, pod("a", "one", "web", "n1", 101))
	for _, test := range []struct {
		cells, want string
		number      int
		ok          bool
		held        string
	}{
		{`["one","9y",17,"1s","more"]`, `"one",AGE,17,AGE,"more"`, 17, true, "\x00,\x01,17,\x01,\"more\""},
		{`["two","9y",17,"1s","more"]`, `"two",AGE,17,AGE,"more"`, 17, true, "\"two\",\x01,17,\x01,\"more\""},
		{`["o\u006ee","one","one"]`, `"o\u006ee",AGE,"one"`, 0, false, "\"o\\u006ee\",\x01,\"one\""},
		{`["\u0000","\u0001","\u0000\u0001"]`, `"\u0000",AGE,"\u0000\u0001"`, 0, false, "\"\\u0000\",\x01,\"\\u0000\\u0001\""},
		{`[ {"b": [1, "x y"]} , "9y" , "17" ]`, `{"b":[1,"x y"]},AGE,"17"`, 0, false, "{\"b\":[1,\"x y\"]},\x01,\"17\""},
		{`["one"]`, `"one"`, 0, false, "\x00"},
		{`["one","9y"]`, `"one",AGE`, 0, false, "\x00,\x01"},
		{`[]`, ``, 0, false, ""},
	} {
		var raw []json.RawMessage
		if err := json.Unmarshal([]byte(test.cells), &raw); err != nil {
			t.Fatal(err)
		}
		printed, err := newPrintedCells(columns, raw, "one")
		if err != nil || string(printed) != test.held {
			t.Errorf("%s: held as %q, %v; want %q", test.cells, printed, err, test.held)
		}
		c := Cells{printed: &row{cells: printed}, object: o, ages: ages{}}
		want := "x" + strings.ReplaceAll(test.want, "AGE", `"`+ageOfPods()+`"`)
		if got, err := c.Append([]byte("x")); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", test.cells, got, err, want)
		}
		if n, ok := c.number(2); n != test.number || ok != test.ok {
			t.Errorf("%s: the third is %d, %v", test.cells, n, ok)
		}
	}
}
