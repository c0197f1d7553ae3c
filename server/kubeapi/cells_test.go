package kubeapi

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// TestPrintedCells: cells come as the API server wrote them, without the spaces between, and
// with ages of now; a row may have fewer than there are columns, or more.
func TestPrintedCells(t *testing.T) {
	columns := []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Age"}, {Name: "N"}, {Name: "Age"}}
	for _, test := range []struct {
		cells, want string
		number      int
		ok          bool
	}{
		{`["a","9y",17,"1s","more"]`, `"a","<unknown>",17,"<unknown>","more"`, 17, true},
		{`[ {"b": [1, "x y"]} , "9y" , "17" ]`, `{"b":[1,"x y"]},"<unknown>","17"`, 0, false},
		{`["a"]`, `"a"`, 0, false},
		{`["a","9y"]`, `"a","<unknown>"`, 0, false},
		{`[]`, ``, 0, false},
	} {
		var raw []json.RawMessage
		if err := json.Unmarshal([]byte(test.cells), &raw); err != nil {
			t.Fatal(err)
		}
		printed, err := newPrintedCells(columns, raw)
		if err != nil {
			t.Fatal(err)
		}
		c := Cells{printed: printed, object: &cache.Object{}, ages: ages{}}
		if got, err := c.Append([]byte("x")); err != nil || string(got) != "x"+test.want {
			t.Errorf("%s: %s, %v; want %s", test.cells, got, err, test.want)
		}
		if n, ok := c.number(2); n != test.number || ok != test.ok {
			t.Errorf("%s: the third is %d, %v", test.cells, n, ok)
		}
	}
}
