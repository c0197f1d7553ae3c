package cache

import (
	"fmt"
	"testing"
)

// TestItemsOfFewTexts: objects that have the same are one item, also where others of the column have
// a text each; and where most have one each, every object is an item.
func TestItemsOfFewTexts(t *testing.T) {
	c := newColumn(newColumns(), "", nil)
	c.of.limit.Store(1 << 30)
	const own, same, none = 1000, 900, 100 // rows of each kind
	for row := range uint32(own + same) {
		text := "the same"
		if row < own {
			text = fmt.Sprint(row)
		}
		c.enter(row, []byte(text), false)
	}
	at := func() *columnAt { return c.at(&Store{}) }
	itemsIn := func(from, to uint32) *items {
		var rows []uint32
		for row := from; row < to; row++ {
			rows = append(rows, row)
		}
		return itemsOf(make([]*Object, len(rows)), rows, at())
	}
	check := func(name string, x *items, length, known int) {
		t.Helper()
		if x.len() != length || x.known != known {
			t.Errorf("%s: %d items, and %d of the objects are known; want %d and %d", name, x.len(), x.known, length, known)
		}
		for i := range x.objects {
			item := x.item(i)
			if first := x.object(item); first > i || c.codes.chunks.at(x.rows[first]) != c.codes.chunks.at(x.rows[i]) || x.code(item) != c.codes.chunks.at(x.rows[i]) {
				t.Fatalf("%s: object %d is item %d, which is that of object %d", name, i, item, first)
			}
		}
	}
	check("all", itemsIn(0, own+same), own+same, own+same)
	check("those with one each", itemsIn(0, own), own, own)
	check("those that have the same", itemsIn(own, own+same), 1, same)
	check("the same, and some that have none", itemsIn(own, own+same+none), 1+none, same)

	for row := range uint32(own) { // the texts stay for a while
		c.empty(row)
		c.enter(row, []byte("the same"), false)
	}
	check("all that have the same now", itemsIn(0, own+same), 1, own+same)
}
