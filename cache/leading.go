package cache

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/informerd/informerd/cache/scalar"
)

// leading are the first objects of a sorted list, found by going through an
// index in its order until there are enough. The list as a whole is made when
// its second page is asked for.
type leading struct {
	*candidates
	objects []*Object
	total   int // of the list
}

// leading returns the first limit objects of the answer to the query of m, nil
// if no index has their order, or if going by it would be no help.
func (s *Store) leading(m *Matcher, limit int) (*leading, error) {
	if limit <= 0 || len(m.query.Sort) != 1 {
		return nil, nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, err := s.currentLocked(m)
	if err == nil {
		err = s.askableLocked()
	}
	if err != nil || !m.exact() || !m.extraction.unique {
		return nil, err
	}
	p := newPlanner(s.contents, m)
	rows := p.rows(s.contents.live)
	w := walk{contents: s.contents, rows: rows, limit: limit, total: rows.len()}
	if rows.all {
		w.total = s.contents.len()
	}
	key := m.query.Sort[0]
	name, ok := w.along(key, m.extraction)
	if !ok {
		return nil, nil
	}
	c := &candidates{matcher: m, version: s.version, revision: s.revisionLocked(m.scope), all: s.treeLocked()}
	if !rows.all {
		c.rows = rows.bitmap()
	}
	c.plan = Plan{Indexes: p.names, Candidates: w.total}
	if p.seen == nil { // else what is not seen had a part in going by it
		c.plan.Sorted = name
	}
	return &leading{c, w.found[:limit:limit], w.total}, nil
}

// list is the whole of the list.
func (l *leading) list(ctx context.Context) ([]*Object, error) {
	all := l.ordered()
	all.settle(len(all.objects))
	_, err := l.matcher.sort(ctx, &all)
	return all.objects, err
}

// exact reports whether the indexes decide the query alone: what the planner
// lets pass matches.
func (m *Matcher) exact() bool {
	if !m.scan.empty() || m.query.Shard != nil {
		return false
	}
	for _, f := range m.fields {
		namespace := f.Path.String() == "metadata.namespace" && f.Operator == selection.Equals && f.Values[0] != ""
		if f.handles == nil && !namespace {
			return false
		}
	}
	return m.labels == nil || exactLabels(m.labels)
}

func exactLabels(selector labels.Selector) bool {
	requirements, selectable := selector.Requirements()
	return selectable && !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Operator() == selection.GreaterThan || r.Operator() == selection.LessThan
	})
}

// walk goes through the rows of an index in the order of its values and collects
// the objects that are among the candidates, ordered by key where their values
// are equal.
type walk struct {
	contents *contents
	rows     rowSet // the candidates
	total    int    // of them
	limit    int

	found   []*Object
	seen    roaring.Bitmap // rows of found: one may have several values
	visited int
}

// along walks in the order of key and names the index that has it. It reports
// false if there is none, if its values are not all of one class, so that others
// than those of the candidates would decide how they compare, or if too few
// candidates were on the way: those without a value come last.
func (w *walk) along(key OrderKey, e *extraction) (index string, ok bool) {
	if w.total <= w.limit {
		return "", false
	}
	if key.Path.String() == creationPath {
		return creationPath, w.contents.created.unsure.len() == 0 && w.creation(key.Descending)
	}
	name, ok := e.indexOf(key.Path)
	if !ok || heldValue(key.Path) != nil || len(w.contents.indexes[longIndex(name)].postings) > 0 {
		return "", false
	}
	idx := w.contents.indexes[name]
	switch class, ok := idx.values.only(); {
	case !ok:
		return "", false
	case class == scalar.Texts:
		return name, w.texts(idx, key.Descending)
	default:
		return name, w.points(idx, key.Descending)
	}
}

// only is the class that all values are of.
func (v *values) only() (scalar.Class, bool) {
	for c := scalar.Amounts; int(c) < scalar.Classes; c++ {
		if n := v.counts[c]; n > 0 {
			return c, n == v.byText.Len()
		}
	}
	return scalar.Unsure, false
}

func (w *walk) creation(descending bool) bool {
	var equal []uint32
	at := uint32(0)
	take := func() bool {
		slices.Sort(equal)
		return w.group(&posting{few: equal})
	}
	visit := func(b birth) bool {
		if b.second != at {
			if !take() {
				return false
			}
			equal, at = equal[:0], b.second
		}
		equal = append(equal, b.row)
		return true
	}
	if tree := w.contents.created.tree; descending {
		tree.Reverse(visit)
	} else {
		tree.Scan(visit)
	}
	take()
	return w.enough()
}

func (w *walk) texts(idx *index, descending bool) bool {
	visit := func(h handle) bool { return w.group(idx.postings[h]) }
	if descending {
		idx.values.byText.Reverse(visit)
	} else {
		idx.values.byText.Scan(visit)
	}
	return w.enough()
}

func (w *walk) points(idx *index, descending bool) bool {
	var equal []*posting
	var at scalar.Point
	visit := func(p placed) bool {
		if p.point != at {
			if !w.group(equal...) {
				return false
			}
			equal, at = equal[:0], p.point
		}
		equal = append(equal, idx.postings[p.value])
		return true
	}
	if descending {
		idx.values.byPoint.Reverse(visit)
	} else {
		idx.values.byPoint.Scan(visit)
	}
	w.group(equal...)
	return w.enough()
}

func (w *walk) enough() bool { return len(w.found) >= w.limit }

// group takes the rows of postings whose values are equal, and reports whether
// to go on.
func (w *walk) group(postings ...*posting) bool {
	if w.enough() {
		return false
	}
	u := union{postings: postings}
	for _, p := range postings {
		u.size += p.len()
	}
	if u.size > fewRows {
		w.inOrder(u)
	} else {
		w.sorted(u)
	}
	// Beyond this it is cheaper to sort the candidates.
	return !w.enough() && w.visited <= 16*w.total
}

// sorted collects the candidates of a small group.
func (w *walk) sorted(u union) {
	w.visited += u.size
	start := len(w.found)
	for _, p := range u.postings {
		p.each(func(row uint32) {
			if w.rows.has(row) && w.seen.CheckedAdd(row) {
				w.found = append(w.found, w.contents.rows[row])
			}
		})
	}
	slices.SortFunc(w.found[start:], compareObjects)
}

// inOrder collects the candidates of a large group from the order by key.
func (w *walk) inOrder(u union) {
	w.contents.tree.Scan(func(e entry) bool {
		w.visited++
		if u.has(e.row) && w.rows.has(e.row) && w.seen.CheckedAdd(e.row) {
			w.found = append(w.found, e.obj)
		}
		return !w.enough()
	})
}
