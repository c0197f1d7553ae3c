package cache

import (
	"maps"
	"slices"
)

// Successor returns an empty Store that is to take the place of s under another Spec of the same
// Resource, see TakeOver. It is private to the caller, and filled while s is read on.
//
// What an object has in common with the one that s holds under its key, all or identity and terms,
// is in one piece of memory; its packed JSON only if the Spec takes nothing away. The Successor
// finds objects by their keys alone, since TakeOver goes on with the indexes of s. So it takes the
// memory of what is different, and s gives up its columns, which go with TakeOver in any case.
//
// Nothing can be asked of it, which ErrNotSynced says, unless it takes the place of s in another
// way, see Abandon.
func (s *Store) Successor(spec Spec, opts StoreOptions) (*Store, error) {
	next, err := NewStore(spec, opts)
	if err != nil {
		return nil, err
	}
	next.forerunner.Store(s)
	s.mu.RLock()
	s.contents.columns.forgetAll(0)
	s.mu.RUnlock()
	next.contents = next.newContents(next.extraction.Load())
	next.packing.families.numbers = s.packing.families.numbers
	if next.lends = !next.extraction.Load().hidesMore(s.extraction.Load()); next.lends {
		next.packing.follow(&s.packing)
	}
	return next, nil
}

// hidesMore reports whether something that a copy of before shows may be shown by none of e. Its
// dictionaries and templates are whole objects, or parts of them, so that they have to go, too: a
// snapshot would have them.
func (e *extraction) hidesMore(before *extraction) bool {
	is, was := e.spec, before.spec
	newly := func(is, was []string) bool {
		return slices.ContainsFunc(is, func(path string) bool { return !slices.Contains(was, path) })
	}
	return !is.SameSelection(was) || newly(is.Drop, was.Drop) || newly(is.Redact, was.Redact)
}

// follow packs as with does, whose objects may be held in the form that they have there.
func (p *packing) follow(with *packing) {
	with.mu.Lock()
	p.fit, p.misfit, p.retry = with.fit, with.misfit, with.retry
	with.mu.Unlock()
	p.followed = with.dict.Load()
	p.dict.Store(p.followed)
}

// stand has a Successor find its objects by itself.
func (s *Store) stand() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.forerunner.Load() == nil {
		return
	}
	c := newContents(s.extraction.Load())
	c.columns.follow(s.columnRules.Load())
	c.loadAll(s.objects())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changingLocked()
	s.forerunner.Store(nil)
	s.contents = c
}

// graft are contents in which objects of a Successor are in the rows of those in whose places they
// are, so that the indexes and orders of before find them.
type graft struct {
	contents *contents
	// gone and come could not be entered while the indexes were read.
	gone, come []*Object
}

// graftMost is how many objects are entered while readers wait. A variable so that tests need fewer.
var graftMost = 32 << 10

// graft makes contents of objs, those of a Successor of s in the order of their keys, under its
// extraction. nil: the indexes are others, or too many objects are. The caller holds writing.
func (s *Store) graft(objs []*Object, e *extraction) *graft {
	before := s.contents
	if !maps.Equal(s.extraction.Load().definitions, e.definitions) {
		return nil
	}
	g, entries := &graft{}, make([]entry, 0, before.len())
	n, most := 0, graftMost
	before.tree.Scan(func(held entry) bool {
		for n < len(objs) && compareObjects(objs[n], held.obj) < 0 {
			g.come = append(g.come, objs[n])
			n++
		}
		switch {
		case n == len(objs) || compareObjects(objs[n], held.obj) != 0:
			g.gone = append(g.gone, held.obj)
		case held.obj.created == objs[n].created && held.obj.terms().equal(objs[n].terms()):
			held.obj = objs[n]
			n++
		default:
			g.come = append(g.come, objs[n])
			n++
		}
		entries = append(entries, held)
		return len(g.gone)+len(g.come) <= most
	})
	g.come = append(g.come, objs[n:]...)
	if len(g.gone)+len(g.come) > most {
		return nil
	}
	g.contents = before.with(entries)
	if e.unique {
		g.contents.columns = newColumns()
	}
	return g
}

// with are c with other objects in the rows. Indexes and orders are those of c itself.
func (c *contents) with(entries []entry) *contents {
	next := bareContents()
	next.rows, next.free, next.live = make([]*Object, len(c.rows)), c.free, c.live
	next.indexes, next.created = c.indexes, c.created
	for _, e := range entries {
		next.rows[e.row] = e.obj
		next.account(e.obj, 1)
	}
	loadTree(next.tree, len(entries), func(i int) entry { return entries[i] })
	return next
}

// finishLocked enters what is left. Nothing reads the contents of before any more.
func (g *graft) finishLocked() *contents {
	for _, o := range g.gone {
		g.contents.remove(o)
	}
	for _, o := range g.come {
		g.contents.put(o)
	}
	return g.contents
}
