package summary

import (
	"slices"
	"strings"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

// Order says how groups are sorted: by columns, the keys first, then the
// aggregates.
type Order struct {
	columns    []int
	descending []bool
}

// Columns names the columns of q's groups.
func (q Query) Columns() []string {
	var names []string
	for _, p := range q.GroupBy {
		names = append(names, p.String())
	}
	for _, a := range q.Aggregates {
		names = append(names, a.String())
	}
	return names
}

// ParseOrder reads the parameter sort of a question for groups: columns of q,
// each descending if a minus is before it.
func (q Query) ParseOrder(s string) (Order, error) {
	var o Order
	known := q.Columns()
	for _, part := range rawjson.CommaSeparated(s) {
		text := strings.TrimSpace(s[part[0]:part[1]])
		text, descending := strings.CutPrefix(text, "-")
		i := slices.Index(known, columnName(text))
		if i < 0 {
			return Order{}, invalid("sort", "column %d: groups have no column %q; they have %s", part[0]+1, text, strings.Join(known, ", "))
		}
		o.columns, o.descending = append(o.columns, i), append(o.descending, descending)
	}
	return o, nil
}

// columnName is the canonical form of the name of a column.
func columnName(text string) string {
	if a, err := parseAggregate(text, 0, len(text)); err == nil {
		return a.String()
	}
	if p, err := rawjson.ParsePath(text); err == nil {
		return p.String()
	}
	return text
}

// Sort sorts groups; what is equal keeps the order of the keys.
func (o Order) Sort(groups []Group) {
	columns := make([]scalar.Column, len(o.columns))
	for c, i := range o.columns {
		for _, g := range groups {
			cells := append(slices.Clip(g.Keys), g.Values...)
			if cells[i].Missing() {
				columns[c] = append(columns[c], nil)
				continue
			}
			columns[c] = append(columns[c], cells[i:i+1])
		}
	}
	scalar.Sort(groups, columns, o.descending)
}
