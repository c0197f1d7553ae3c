package cache

import (
	"maps"
	"testing"

	"github.com/informerd/informerd/cache/scalar"
)

// checkContents verifies what the parts of contents say of each other.
func checkContents(t testing.TB, s *Store) {
	t.Helper()
	c := s.contents
	var bytes, raw int64
	packed, templates := map[*dictionary]int{}, map[*dictionary]int{}
	for _, e := range c.tree.Items() {
		if c.rows[e.row] != e.obj || !c.live.Contains(e.row) {
			t.Fatalf("row %d of %s is wrong", e.row, e.obj.Key())
		}
		bytes += e.obj.held()
		raw += int64(e.obj.size)
		d := e.obj.dict
		if d == nil {
			continue
		}
		if d.template == nil {
			packed[d]++
			continue
		}
		if templates[d]++; templates[d] == 1 {
			bytes += d.template.held()
			packed[d.template.with]++
		}
	}
	if !maps.Equal(packed, c.packed) || !maps.Equal(templates, c.templates) {
		t.Fatalf("%d dictionaries and %d templates are needed; noted are %d and %d", len(packed), len(templates), len(c.packed), len(c.templates))
	}
	if len(c.rows)-len(c.free) != c.tree.Len() || int(c.live.GetCardinality()) != c.tree.Len() {
		t.Fatalf("%d rows, %d free, %d live, %d in the tree", len(c.rows), len(c.free), c.live.GetCardinality(), c.tree.Len())
	}
	if bytes != c.bytes || raw != c.rawBytes {
		t.Fatalf("accounted %d and %d bytes, are %d and %d", c.bytes, c.rawBytes, bytes, raw)
	}
	for _, e := range c.tree.Items() {
		held := e.obj.terms()
		for i := range held.len() {
			h := held.at(i)
			if c.indexes[h.Value().Index] != nil && !c.indexes.posting(h).has(e.row) {
				t.Fatalf("row %d, of %s, is not among those of %v", e.row, e.obj.Key(), h.Value())
			}
		}
	}
	checkCreation(t, c)
	checkSeen(t, c)
	for name, idx := range c.indexes {
		groups := map[string]map[uint32]bool{}
		for h, p := range idx.postings {
			if p.len() == 0 {
				t.Fatalf("index %s: empty posting of %s", name, h.Value())
			}
			g := groupKey(h.Value())
			if groups[g] == nil {
				groups[g] = map[uint32]bool{}
			}
			for _, row := range p.bitmap().ToArray() {
				if c.rows[row] == nil || !c.rows[row].has(h) {
					t.Fatalf("index %s: row %d has no %s", name, row, h.Value())
				}
				groups[g][row] = true
			}
		}
		checkValues(t, idx)
		if idx.groups == nil {
			continue
		}
		if len(groups) != len(idx.groups) {
			t.Fatalf("index %s: %d groups, want %d", name, len(idx.groups), len(groups))
		}
		for g, rows := range groups {
			if idx.groups[g].len() != len(rows) {
				t.Fatalf("index %s: group %q has %d rows, want %d", name, g, idx.groups[g].len(), len(rows))
			}
		}
	}
}

// checkValues compares the order of an index's values with the values.
func checkValues(t testing.TB, idx *index) {
	t.Helper()
	if got := idx.values.byText.Len(); got != len(idx.postings) {
		t.Fatalf("index %s: %d values in order, want %d", idx.name, got, len(idx.postings))
	}
	var counts [scalar.Classes]int
	for h := range idx.postings {
		p := scalar.PointOf(h.Value().Value)
		counts[p.Class()]++
		if _, ok := idx.values.byText.Get(h); !ok {
			t.Fatalf("index %s: %q is not among the values", idx.name, h.Value().Value)
		}
		if idx.values.byPoint == nil || p.Class() == scalar.Texts {
			continue
		}
		if _, unsure := idx.values.unsure[h]; unsure != (p.Class() == scalar.Unsure) {
			t.Fatalf("index %s: %q is unsure: %v", idx.name, h.Value().Value, unsure)
		}
		if _, ok := idx.values.byPoint.Get(placed{p, h}); ok != (p.Class() != scalar.Unsure) {
			t.Fatalf("index %s: %q has a place: %v", idx.name, h.Value().Value, ok)
		}
	}
	if v := idx.values; v.byPoint != nil {
		if v.counts != counts || len(v.unsure) != counts[scalar.Unsure] || v.byPoint.Len() != counts[scalar.Amounts]+counts[scalar.Times] {
			t.Fatalf("index %s: counts %v, %d unsure and %d in place, want %v", idx.name, v.counts, len(v.unsure), v.byPoint.Len(), counts)
		}
	}
}

// checkCreation compares the order by creation with the objects.
func checkCreation(t testing.TB, c *contents) {
	t.Helper()
	for row, o := range c.rows {
		if o == nil {
			continue
		}
		b, ok := birthOf(uint32(row), o)
		if _, placed := c.created.tree.Get(b); placed != ok || c.created.unsure.has(uint32(row)) == ok {
			t.Fatalf("row %d, created %v: in order %v", row, o.Created(), placed)
		}
	}
	if n := c.created.tree.Len() + c.created.unsure.len(); n != c.len() {
		t.Fatalf("%d rows by creation, want %d", n, c.len())
	}
}

// checkSeen compares what is kept of scopes with the objects.
func checkSeen(t testing.TB, c *contents) {
	t.Helper()
	if n := len(c.seen.sets); n > maxSeen {
		t.Fatalf("the rows of %d scopes are kept", n)
	}
	for digest, set := range c.seen.sets {
		for row, o := range c.rows {
			if sees := o != nil && set.scope.Sees(o.Key()); set.rows.Contains(uint32(row)) != sees {
				t.Fatalf("row %d is seen by %s: %v", row, digest, !sees)
			}
		}
	}
}
