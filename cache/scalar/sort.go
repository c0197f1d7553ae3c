package scalar

import "slices"

// Column holds, for each row, the values it has in one column.
type Column [][]Value

// Sort sorts rows, stably, by columns, the most important first. Each column is
// compared as the narrowest type that all its values can be read as. Rows
// without a value come last in both directions; one with several counts by its
// least when ascending and by its greatest when descending.
func Sort[T any](rows []T, columns []Column, descending []bool) {
	keys := make([][]Key, len(columns))
	for c := range columns {
		keys[c] = columns[c].keys(descending[c])
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		for c := range keys {
			if d := compare(keys[c][a], keys[c][b], descending[c]); d != 0 {
				return d
			}
		}
		return 0
	})
	before := slices.Clone(rows)
	for i, from := range order {
		rows[i] = before[from]
	}
}

// Type is the narrowest type that all values can be read as.
func (c Column) Type() Type {
	typ := None
	for _, values := range c {
		for _, v := range values {
			typ = Join(typ, v.Type())
		}
		if typ == Text {
			break
		}
	}
	return typ
}

// keys finds of each row the value that counts.
func (c Column) keys(descending bool) []Key {
	typ := c.Type()
	keys := make([]Key, len(c))
	for i, values := range c {
		for _, v := range values {
			k := v.Key(typ)
			if keys[i].Missing() || compare(k, keys[i], descending) < 0 {
				keys[i] = k
			}
		}
	}
	return keys
}

// compare puts what is missing last in both directions.
func compare(a, b Key, descending bool) int {
	switch {
	case a.Missing() && b.Missing():
		return 0
	case a.Missing():
		return 1
	case b.Missing():
		return -1
	case descending:
		return b.Compare(a)
	default:
		return a.Compare(b)
	}
}
