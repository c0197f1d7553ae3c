package cache

import (
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// maxFew is how many rows a posting holds before it becomes a bitmap.
const maxFew = 16

// posting is the set of rows that have one term. It is guarded by the lock of
// its Store. Most terms have few rows (an owner, a pod's hash), which a sorted
// slice holds in a fraction of a bitmap's memory.
type posting struct {
	few  []uint32 // sorted; unused once bits is set
	bits *roaring.Bitmap
}

func (p *posting) len() int {
	if p == nil {
		return 0
	}
	if p.bits != nil {
		return int(p.bits.GetCardinality())
	}
	return len(p.few)
}

func (p *posting) has(row uint32) bool {
	if p == nil {
		return false
	}
	if p.bits != nil {
		return p.bits.Contains(row)
	}
	_, ok := slices.BinarySearch(p.few, row)
	return ok
}

// lenIn is how many of the rows are among those that are seen; nil stands for all.
func (p *posting) lenIn(seen *roaring.Bitmap) int {
	switch {
	case seen == nil:
		return p.len()
	case p == nil:
		return 0
	case p.bits != nil:
		return int(p.bits.AndCardinality(seen))
	}
	n := 0
	for _, row := range p.few {
		if seen.Contains(row) {
			n++
		}
	}
	return n
}

// meets reports whether one of the rows is seen.
func (p *posting) meets(seen *roaring.Bitmap) bool {
	if p.bits != nil {
		return p.bits.Intersects(seen)
	}
	return slices.ContainsFunc(p.few, seen.Contains)
}

func (p *posting) add(row uint32) {
	if p.bits != nil {
		p.bits.Add(row)
		return
	}
	i, ok := slices.BinarySearch(p.few, row)
	if ok {
		return
	}
	if len(p.few) < maxFew {
		p.few = slices.Insert(p.few, i, row)
		return
	}
	p.bits = roaring.BitmapOf(p.few...)
	p.bits.Add(row)
	p.few = nil
}

func (p *posting) remove(row uint32) {
	if p.bits == nil {
		if i, ok := slices.BinarySearch(p.few, row); ok {
			p.few = slices.Delete(p.few, i, i+1)
		}
		return
	}
	p.bits.Remove(row)
	// Half of maxFew, so that a set on the brink does not change form each time.
	if p.bits.GetCardinality() <= maxFew/2 {
		p.few, p.bits = p.bits.ToArray(), nil
	}
}

// bitmap returns the rows as a bitmap that the caller must not modify.
func (p *posting) bitmap() *roaring.Bitmap {
	switch {
	case p == nil:
		return roaring.New()
	case p.bits != nil:
		return p.bits
	default:
		return roaring.BitmapOf(p.few...)
	}
}

// each calls yield for every row, in order.
func (p *posting) each(yield func(uint32)) {
	if p == nil {
		return
	}
	rowSet{few: p.few, bits: p.bits}.each(yield)
}

// all are the rows, in order.
func (p *posting) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		switch {
		case p == nil:
		case p.bits != nil:
			for rows := p.bits.Iterator(); rows.HasNext(); {
				if !yield(rows.Next()) {
					return
				}
			}
		default:
			for _, row := range p.few {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// merged is the union of postings.
func merged(postings []*posting) *posting {
	if len(postings) == 1 {
		return postings[0]
	}
	var few []uint32
	bitmaps := []*roaring.Bitmap{nil}
	for _, p := range postings {
		if p.bits != nil {
			bitmaps = append(bitmaps, p.bits)
		} else {
			few = append(few, p.few...)
		}
	}
	slices.Sort(few)
	bitmaps[0] = roaring.BitmapOf(few...)
	return &posting{bits: roaring.FastOr(bitmaps...)}
}
