package cache

import (
	"slices"
	"strings"
	"unique"

	"github.com/informerd/informerd/cache/scalar"
)

// IndexInfo describes one index of a Store.
type IndexInfo struct {
	Name string
	// Path is the field path of a configured index, empty for built-in ones.
	Path string
	// Values is how many different values it holds now.
	Values int
}

// IndexValue is one value of an index and how many objects have it.
type IndexValue struct {
	Value   string
	Objects int
}

// index maps values to the rows that have them. A value without rows is not in
// it. Guarded by the lock of its Store.
type index struct {
	name     string
	postings map[handle]*posting
	values   *values // the keys of postings
	// groups are the rows that have any value: all of them, for a configured
	// index; by label key, for the label index; nil for the others, which are
	// only ever asked for by value.
	groups map[string]*posting
}

func newIndex(name string) *index {
	configured := !isBuiltinIndex(name) && !isLong(name)
	i := &index{name: name, postings: map[handle]*posting{}, values: newValues(configured)}
	if configured || name == LabelIndex {
		i.groups = map[string]*posting{}
	}
	return i
}

// unknownIndex names the indexes there are.
func (e *extraction) unknownIndex(name string) error {
	known := append(slices.Clone(builtinIndexes), e.names...)
	return invalidf("index", "there is no index %q; the indexes are %s", name, strings.Join(known, ", "))
}

// IndexValues lists the values of an index that start with prefix, in order, at
// most limit of them unless limit is not positive, and the version they are of.
// It returns an *InvalidError for an index that does not exist.
func (s *Store) IndexValues(name, prefix string, limit int) ([]IndexValue, string, error) {
	return s.whole().IndexValues(name, prefix, limit)
}

// IndexValuesAfter is IndexValues that goes on after a value, whether it is still
// there or not. What is listed in parts is of one version only by chance.
func (s *Store) IndexValuesAfter(name, prefix, after string, limit int) ([]IndexValue, string, error) {
	return s.whole().IndexValuesAfter(name, prefix, after, limit)
}

// indexValues counts the objects that are seen, and knows no values of others.
func (s *Store) indexValues(name string, r scalar.Range, scope Scope, limit int) ([]IndexValue, string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.forerunner.Load() != nil {
		return nil, "", s.askableLocked()
	}
	idx := s.contents.indexes[name]
	if idx == nil || isLong(name) {
		return nil, "", s.extraction.Load().unknownIndex(name)
	}
	if err := s.askableLocked(); err != nil {
		return nil, "", err
	}
	seen := s.contents.seenBy(scope)
	found := []IndexValue{}
	idx.values.texts(r, func(h handle) bool {
		if n := idx.postings[h].lenIn(seen); n > 0 {
			found = append(found, IndexValue{h.Value().Value, n})
		}
		return limit <= 0 || len(found) < limit
	})
	return found, s.version, nil
}

// indexes are the indexes of a Store, built-in ones included, by name.
type indexes map[string]*index

var builtinIndexes = []string{NamespaceIndex, LabelIndex, OwnerIndex}

func isBuiltinIndex(name string) bool { return slices.Contains(builtinIndexes, name) }

// posting are the rows that have a term; nil: none have, or there is no such index.
func (x indexes) posting(h handle) *posting {
	idx := x[h.Value().Index]
	if idx == nil {
		return nil
	}
	return idx.postings[h]
}

// add enters row under the terms in now that are not in before.
func (x indexes) add(row uint32, now, before terms) {
	now.eachMissing(before, func(h handle) {
		t := h.Value()
		idx := x[t.Index]
		if idx == nil {
			return
		}
		p := idx.postings[h]
		if p == nil {
			p = &posting{}
			idx.postings[h] = p
			idx.values.add(h)
		}
		p.add(row)
		if idx.groups != nil {
			idx.group(t).add(row)
		}
	})
}

// remove takes row out of the terms in before that are not in now. It must be
// called before add, which enters row again in the groups it stays in.
func (x indexes) remove(row uint32, before, now terms) {
	var staying groupSet
	known := false
	before.eachMissing(now, func(h handle) {
		t := h.Value()
		idx := x[t.Index]
		if idx == nil {
			return
		}
		if p := idx.postings[h]; p != nil {
			p.remove(row)
			if p.len() == 0 {
				delete(idx.postings, h)
				idx.values.remove(h)
			}
		}
		if idx.groups == nil {
			return
		}
		if !known {
			x.stay(&staying, before, now)
			known = true
		}
		if !staying.has(group{idx, groupKey(t)}) {
			idx.ungroup(t, row)
		}
	})
}

// stay notes the groups that a row stays in: those of the terms in both sets.
// (Terms that are only in now enter their groups when they are added.)
func (x indexes) stay(in *groupSet, before, now terms) {
	now.eachCommon(before, func(h handle) {
		t := h.Value()
		if idx := x[t.Index]; idx != nil && idx.groups != nil {
			in.add(group{idx, groupKey(t)})
		}
	})
}

// group names one of the groups of an index.
type group struct {
	index *index
	key   string
}

// groupSet is a set of groups. The few of an ordinary object need no memory of
// their own and are looked through sooner than hashed.
type groupSet struct {
	few  [16]group
	n    int
	many map[group]struct{}
}

func (s *groupSet) has(g group) bool {
	if s.many == nil {
		return slices.Contains(s.few[:s.n], g)
	}
	_, ok := s.many[g]
	return ok
}

func (s *groupSet) add(g group) {
	switch {
	case s.many != nil:
		s.many[g] = struct{}{}
	case slices.Contains(s.few[:s.n], g):
	case s.n < len(s.few):
		s.few[s.n] = g
		s.n++
	default:
		s.many = map[group]struct{}{g: {}}
		for _, g := range s.few {
			s.many[g] = struct{}{}
		}
	}
}

func groupKey(t Term) string {
	if t.Index == LabelIndex {
		key, _ := splitLabel(t.Value)
		return key
	}
	return ""
}

func (i *index) group(t Term) *posting {
	key := groupKey(t)
	p := i.groups[key]
	if p == nil {
		p = &posting{}
		i.groups[strings.Clone(key)] = p
	}
	return p
}

func (i *index) ungroup(t Term, row uint32) {
	key := groupKey(t)
	p := i.groups[key]
	if p == nil {
		return
	}
	p.remove(row)
	if p.len() == 0 {
		delete(i.groups, key)
	}
}

// uniqueTerms removes repeated terms and keeps the order.
func uniqueTerms(terms []handle) []handle {
	if len(terms) > 64 {
		seen := make(map[handle]struct{}, len(terms))
		return slices.DeleteFunc(terms, func(h unique.Handle[Term]) bool {
			_, ok := seen[h]
			seen[h] = struct{}{}
			return ok
		})
	}
	out := terms[:0]
	for _, h := range terms {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}
