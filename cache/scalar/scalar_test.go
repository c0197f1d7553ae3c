package scalar

import (
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
)

// column reads one value per row, several where there is a +; "-" is missing
// and what begins with # is a number.
func column(s string) (rows []string, c Column) {
	for row := range strings.FieldsSeq(s) {
		var values []Value
		for text := range strings.SplitSeq(row, "+") {
			switch {
			case text == "-":
			case text[0] == '#':
				values = append(values, Value{rawjson.Number, text[1:]})
			default:
				values = append(values, Value{rawjson.String, text})
			}
		}
		rows, c = append(rows, row), append(c, values)
	}
	return rows, c
}

func TestSort(t *testing.T) {
	for _, test := range []struct {
		rows, ascending, descending string
		typ                         Type
	}{
		{"#10 - #9 #-1 #2.5", "#-1 #2.5 #9 #10 -", "#10 #9 #2.5 #-1 -", Number},
		{"#9007199254740993 #9007199254740992", "#9007199254740992 #9007199254740993", "#9007199254740993 #9007199254740992", Number},
		{"1Gi 500m 128Mi #2 1k", "500m #2 1k 128Mi 1Gi", "1Gi 128Mi 1k #2 500m", Quantity},
		{"10 9 - 8a", "10 8a 9 -", "9 8a 10 -", Text},
		{"10 9 8", "8 9 10", "10 9 8", Quantity},
		{"2026-01-02T00:00:00Z 2025-12-02T01:00:00.5Z -", "2025-12-02T01:00:00.5Z 2026-01-02T00:00:00Z -", "2026-01-02T00:00:00Z 2025-12-02T01:00:00.5Z -", Time},
		{"#1+#9 #2+#3 -", "#1+#9 #2+#3 -", "#1+#9 #2+#3 -", Number},
		{"- -", "- -", "- -", None},
		{"b a #1", "#1 a b", "b a #1", Text},
		{"1e999999999 1", "1 1e999999999", "1e999999999 1", Text},
	} {
		rows, c := column(test.rows)
		if got := c.Type(); got != test.typ {
			t.Errorf("%s: type %d, want %d", test.rows, got, test.typ)
		}
		for i, want := range []string{test.ascending, test.descending} {
			sorted := slices.Clone(rows)
			Sort(sorted, []Column{c}, []bool{i == 1})
			if got := strings.Join(sorted, " "); got != want {
				t.Errorf("%s, descending %v: %s, want %s", test.rows, i == 1, got, want)
			}
		}
	}
}

func TestSortByTwoColumnsIsStable(t *testing.T) {
	_, a := column("x y x y -")
	_, b := column("#1 #1 #2 #2 #3")
	rows := []int{0, 1, 2, 3, 4}
	Sort(rows, []Column{a, b}, []bool{true, false})
	if want := []int{1, 3, 0, 2, 4}; !slices.Equal(rows, want) {
		t.Errorf("%v, want %v", rows, want)
	}
}
