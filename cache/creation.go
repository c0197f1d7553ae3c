package cache

import (
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/tidwall/btree"

	"github.com/informerd/informerd/cache/scalar"
)

// creationPath is ordered without being configured: every object has it, and
// holds it.
const creationPath = "metadata.creationTimestamp"

// creation is the order of rows by creationTimestamp. Guarded by the lock of its
// Store. nil is of objects that are not ordered.
type creation struct {
	tree *btree.BTreeG[birth]
	// unsure are the rows whose time is missing, or does not fit a birth.
	unsure posting
}

// birth is a row and its creation in Unix seconds, in eight bytes: every object
// of every resource has one.
type birth struct {
	second, row uint32
}

func (b birth) less(o birth) bool { return b.compare(o) < 0 }

func (b birth) compare(o birth) int {
	return cmp.Or(cmp.Compare(b.second, o.second), cmp.Compare(b.row, o.row))
}

func newCreation() *creation {
	return &creation{tree: btree.NewBTreeGOptions(birth.less, btree.Options{NoLocks: true})}
}

func birthOf(row uint32, o *Object) (b birth, ok bool) {
	return birth{uint32(o.created), row}, o.created > 0 && o.created <= math.MaxUint32
}

func (c *creation) add(row uint32, o *Object) {
	if c == nil {
		return
	}
	if b, ok := birthOf(row, o); ok {
		c.tree.Set(b)
	} else {
		c.unsure.add(row)
	}
}

func (c *creation) remove(row uint32, o *Object) {
	if c == nil {
		return
	}
	if b, ok := birthOf(row, o); ok {
		c.tree.Delete(b)
	} else {
		c.unsure.remove(row)
	}
}

func (c *creation) move(row uint32, before, now *Object) {
	if before.created != now.created {
		c.remove(row, before)
		c.add(row, now)
	}
}

// within returns the rows, of those that are seen, that may be within a Range of Times,
// nil if they are more than most.
func (c *creation) within(r scalar.Range, most int, seen *roaring.Bitmap) *posting {
	var rows []uint32
	add := func(row uint32) {
		if seen == nil || seen.Contains(row) {
			rows = append(rows, row)
		}
	}
	c.unsure.each(add)
	first := birth{}
	if r.Low != nil {
		first.second = uint32(min(max(0, r.Low.Point.Seconds()), math.MaxUint32))
	}
	c.tree.Ascend(first, func(b birth) bool {
		if !r.MeetsSecond(int64(b.second)) {
			return false
		}
		add(b.row)
		return len(rows) <= most
	})
	if len(rows) > most {
		return nil
	}
	slices.Sort(rows)
	return &posting{bits: roaring.BitmapOf(rows...)}
}

// bornWithin reports whether o may have been created within one of ranges.
func bornWithin(o *Object, ranges []scalar.Range) bool {
	if o.created <= 0 {
		return true
	}
	return slices.ContainsFunc(ranges, func(r scalar.Range) bool { return r.MeetsSecond(o.created) })
}
