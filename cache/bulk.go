package cache

import (
	"slices"
	"sync"
)

// loadAll enters all of objects, which are in the order of their keys, each with a key of its
// own, into contents that have none. What comes of it is what put makes of one after the
// other: rows are numbers in that order, so that whatever holds rows is added to at its end.
func (c *contents) loadAll(objects []*Object) {
	c.rows = append(c.rows, objects...)
	c.live.AddRange(0, uint64(len(objects)))
	var indexed sync.WaitGroup
	indexed.Go(func() { c.indexes.loadAll(objects) })
	loadTree(c.tree, len(objects), func(row int) entry { return entry{objects[row], uint32(row)} })
	for _, o := range objects {
		c.account(o, 1)
	}
	c.created.loadAll(objects)
	indexed.Wait()
}

// loadAll enters objects that are in the order of their rows into indexes without any.
func (x indexes) loadAll(objects []*Object) {
	if len(x) == 0 {
		return
	}
	// What one object has in one place of its terms the next one mostly has, too: pods of one
	// owner differ in hardly any.
	var before terms
	var common, own []loadedTerm
	for row, o := range objects {
		if o == nil {
			continue // a row that is free
		}
		now := o.terms()
		common = x.load(uint32(row), now.common, before.common, common)
		own = x.load(uint32(row), now.own, before.own, own)
		before = now
	}
	for _, idx := range x {
		idx.values.loadAll(idx.postings)
	}
}

// load enters a row under terms, of which lately has where those before belong.
func (x indexes) load(row uint32, now, before []handle, lately []loadedTerm) []loadedTerm {
	for len(lately) < len(now) {
		lately = append(lately, loadedTerm{})
	}
	for i, h := range now {
		if i >= len(before) || before[i] != h {
			lately[i] = x.loaded(h)
		}
		lately[i].add(row)
	}
	return lately
}

// loadedTerm is where the rows of a term belong. It is empty for one of an index that there is
// not, as after a change of the configuration.
type loadedTerm struct {
	rows, group *posting
}

// loaded are the postings of a term, which are made where no object had it before.
func (x indexes) loaded(h handle) (t loadedTerm) {
	idx := x[h.Value().Index]
	if idx == nil {
		return t
	}
	if t.rows = idx.postings[h]; t.rows == nil {
		t.rows = &posting{}
		idx.postings[h] = t.rows
	}
	if idx.groups != nil {
		t.group = idx.group(h.Value())
	}
	return t
}

func (t loadedTerm) add(row uint32) {
	if t.rows != nil {
		t.rows.load(row)
	}
	if t.group != nil {
		t.group.load(row)
	}
}

// load is add of a row that is not before any that the posting has.
func (p *posting) load(row uint32) {
	n := len(p.few)
	switch {
	case p.bits != nil:
		p.bits.Add(row)
	case n == 0 || n < maxFew && p.few[n-1] < row:
		p.few = append(p.few, row)
	default:
		p.add(row)
	}
}

// loadAll makes values that are none those that have postings.
func (v *values) loadAll(postings map[handle]*posting) {
	all := make([]handle, 0, len(postings))
	for h := range postings {
		all = append(all, h)
	}
	slices.SortFunc(all, compareText)
	for _, h := range all {
		v.add(h)
	}
}

// loadAll enters objects that are in the order of their rows into a creation without any.
func (c *creation) loadAll(objects []*Object) {
	if c == nil {
		return
	}
	births := make([]birth, 0, len(objects))
	for row, o := range objects {
		if b, ok := birthOf(uint32(row), o); ok {
			births = append(births, b)
		} else {
			c.unsure.load(uint32(row))
		}
	}
	slices.SortFunc(births, birth.compare)
	loadTree(c.tree, len(births), func(i int) birth { return births[i] })
}
