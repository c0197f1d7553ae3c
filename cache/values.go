package cache

import (
	"strings"

	"github.com/tidwall/btree"

	"github.com/informerd/informerd/cache/scalar"
)

// values are the values of one index in order: of their bytes, and, if they come
// from a path, as amounts and times. Ranges and listings then cost in the size of
// what they find. Guarded by the lock of its Store.
type values struct {
	byText *btree.BTreeG[handle]

	// Of values at a path only; byPoint is nil otherwise.
	byPoint *btree.BTreeG[placed]
	unsure  map[handle]struct{} // may be amounts, with no place among them
	counts  [scalar.Classes]int
}

// placed is a value among the amounts or times.
type placed struct {
	point scalar.Point
	value handle
}

func newValues(typed bool) *values {
	v := &values{byText: btree.NewBTreeGOptions(lessText, btree.Options{NoLocks: true})}
	if typed {
		v.byPoint = btree.NewBTreeGOptions(placed.less, btree.Options{NoLocks: true})
		v.unsure = map[handle]struct{}{}
	}
	return v
}

func lessText(a, b handle) bool { return a.Value().Value < b.Value().Value }

func compareText(a, b handle) int { return strings.Compare(a.Value().Value, b.Value().Value) }

func (p placed) less(o placed) bool {
	if c := p.point.Compare(o.point); c != 0 {
		return c < 0
	}
	return lessText(p.value, o.value)
}

func (v *values) add(h handle) {
	v.byText.Set(h)
	if v.byPoint == nil {
		return
	}
	p := scalar.PointOf(h.Value().Value)
	v.counts[p.Class()]++
	switch p.Class() {
	case scalar.Amounts, scalar.Times:
		v.byPoint.Set(placed{p, h})
	case scalar.Unsure:
		v.unsure[h] = struct{}{}
	}
}

func (v *values) remove(h handle) {
	v.byText.Delete(h)
	if v.byPoint == nil {
		return
	}
	p := scalar.PointOf(h.Value().Value)
	v.counts[p.Class()]--
	switch p.Class() {
	case scalar.Amounts, scalar.Times:
		v.byPoint.Delete(placed{p, h})
	case scalar.Unsure:
		delete(v.unsure, h)
	}
}

// within calls yield for every value that is within r, and for those that might
// be: what they are worth is for the reader of the JSON to say. It ends when
// yield returns false.
func (v *values) within(r scalar.Range, yield func(handle) bool) {
	if r.Class == scalar.Texts {
		v.texts(r, yield)
		return
	}
	for h := range v.unsure {
		if !yield(h) {
			return
		}
	}
	if v.points(r, yield) && r.Class == scalar.Times {
		// A number stands for a time, too, where it is read as one.
		v.points(scalar.Range{Class: scalar.Amounts}, yield)
	}
}

// texts calls yield for the values within a Range of strings, in order.
func (v *values) texts(r scalar.Range, yield func(handle) bool) {
	visit := func(h handle) bool {
		text := h.Value().Value
		if r.EndsBeforeText(text) {
			return false
		}
		return !r.HasText(text) || yield(h)
	}
	if r.Low == nil {
		v.byText.Scan(visit)
		return
	}
	v.byText.Ascend(intern("", r.Low.Text), visit)
}

// points calls yield for the values within a Range of another class, in order,
// and reports whether it came to the end.
func (v *values) points(r scalar.Range, yield func(handle) bool) bool {
	whole := true
	visit := func(p placed) bool {
		if p.point.Class() != r.Class || r.EndsBefore(p.point) {
			return false
		}
		if !r.BeginsAfter(p.point) {
			whole = yield(p.value)
		}
		return whole
	}
	from := scalar.LeastPoint(r.Class)
	if r.Low != nil {
		from = r.Low.Point
	}
	v.byPoint.Ascend(placed{from, noValue}, visit)
	return whole
}

// noValue is not after any other value.
var noValue = intern("", "")

// longIndex is the name of the index of the rows that have a value too long for
// the index called name. No object is found by a value it does not show.
func longIndex(name string) string { return name + longSuffix }

func isLong(name string) bool { return strings.HasSuffix(name, longSuffix) }

const longSuffix = " (long values)"

// longValue is the only value of such an index.
const longValue = ""
