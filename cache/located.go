package cache

import (
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
)

// located are objects of one moment, and where each of them was then.
type located struct {
	objects []*Object
	rows    []uint32 // of each object, as long as there are columns
	columns []*columnAt
	// ruledOut is how many others there were of which a column knew that they do not match.
	ruledOut int
}

// keep leaves those objects for which the condition holds.
func (l *located) keep(condition func(i int) bool) {
	n := 0
	for i, o := range l.objects {
		if !condition(i) {
			continue
		}
		l.objects[n] = o
		if l.rows != nil {
			l.rows[n] = l.rows[i]
		}
		n++
	}
	clear(l.objects[n:])
	l.objects = l.objects[:n]
	if l.rows != nil {
		l.rows = l.rows[:n]
	}
}

// first are the first n of the objects, if it is known where they are.
func (l located) first(n int) located {
	if l.rows == nil {
		return located{}
	}
	return located{objects: l.objects[:n], rows: slices.Clone(l.rows[:n]), columns: l.columns} // without the others
}

// arrange puts the objects in another order: which one comes first, and so on. The order is one of
// numberSlices and of no use afterwards.
func (l *located) arrange(order []uint32) {
	defer numberSlices.put(order)
	before := append(objectSlices.get(len(l.objects)), l.objects...)
	for i, from := range order {
		l.objects[i] = before[from]
	}
	clear(before) // or what is deleted would stay
	objectSlices.put(before)
	if l.rows == nil {
		return
	}
	rows := append(numberSlices.get(len(l.rows)), l.rows...)
	for i, from := range order {
		l.rows[i] = rows[from]
	}
	numberSlices.put(rows)
}

// column is the one for paths; nil: there is none.
func (l *located) column(paths []rawjson.Path) *columnAt {
	if len(l.columns) == 0 || len(paths) == 0 {
		return nil
	}
	name := columnName(paths)
	for _, at := range l.columns {
		if at.name == name {
			return at
		}
	}
	return nil
}

// items are those of the objects, for a question about nothing but paths.
func (l *located) items(paths []rawjson.Path) *items {
	return itemsOf(l.objects, l.rows, l.column(paths))
}

// columnsLocked are those that the question of m reads, which is about so many of the objects.
func (s *Store) columnsLocked(m *Matcher, objects int) (all []*columnAt) {
	if s.contents.columns == nil || objects < columnFrom {
		return nil
	}
	var names []string
	for _, paths := range append([][]rawjson.Path{m.scan.columnPaths(), m.query.Sort.columnPaths(m.extraction)}, m.query.Reads...) {
		name := columnName(paths)
		if slices.Contains(names, name) {
			continue // one question is asked once
		}
		names = append(names, name)
		if c := s.contents.columns.about(name, paths, s.contents.len()); c != nil {
			all = append(all, c.at(s))
		}
	}
	return all
}

// tidy is called when no lock is held.
func (l *located) tidy() {
	for _, at := range l.columns {
		at.column.tidy()
	}
}

// forgetColumns gives back what columns hold, and reports whether that was anything.
func (s *Store) forgetColumns() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.columns.forgetAll(columnIdle)
}
