package cache

import (
	"slices"
	"unsafe"
)

// terms are the indexed values of an object: namespace, labels and owners, and then those of the
// configured indexes. The former are mostly those of its siblings, too: objects of one owner
// have them in one piece of memory.
type terms struct {
	common, own []handle
}

// commonTerms are those of objects in common. They are immutable.
type commonTerms struct{ handles []handle }

// split parts terms into what siblings may have in common, which is before if that is the same,
// and the others, in memory of their own.
func split(all []handle, before *commonTerms) (common *commonTerms, own []handle) {
	isOwn := func(h handle) bool { return !isBuiltinIndex(h.Value().Index) }
	if before != nil {
		if n := len(before.handles); n <= len(all) && slices.Equal(all[:n], before.handles) && (n == len(all) || isOwn(all[n])) {
			return before, slices.Clone(all[n:])
		}
	}
	n := slices.IndexFunc(all, isOwn)
	if n < 0 {
		n = len(all)
	}
	if n > 0 {
		common = &commonTerms{slices.Clone(all[:n])}
	}
	return common, slices.Clone(all[n:])
}

func (t terms) len() int { return len(t.common) + len(t.own) }

func (t terms) at(i int) handle {
	if i < len(t.common) {
		return t.common[i]
	}
	return t.own[i-len(t.common)]
}

func (t terms) has(h handle) bool { return slices.Contains(t.common, h) || slices.Contains(t.own, h) }

func (t terms) appendTo(dst []handle) []handle { return append(append(dst, t.common...), t.own...) }

// equal reports whether they are the same in the same order.
func (t terms) equal(u terms) bool {
	return sameHandles(t.common, u.common) && sameHandles(t.own, u.own)
}

func sameHandles(a, b []handle) bool {
	return len(a) == len(b) && (unsafe.SliceData(a) == unsafe.SliceData(b) || slices.Equal(a, b))
}

// each calls yield for every term that is in u, or for every one that is not.
func (t terms) each(u terms, in bool, yield func(handle)) {
	if t.len()*u.len() > 1<<12 {
		set := make(map[handle]struct{}, u.len())
		for i := range u.len() {
			set[u.at(i)] = struct{}{}
		}
		for i := range t.len() {
			if _, ok := set[t.at(i)]; ok == in {
				yield(t.at(i))
			}
		}
		return
	}
	for i := range t.len() {
		if h := t.at(i); u.has(h) == in {
			yield(h)
		}
	}
}

// eachMissing calls yield for every term that u does not have.
func (t terms) eachMissing(u terms, yield func(handle)) {
	if !t.equal(u) {
		t.each(u, false, yield)
	}
}

// eachCommon calls yield for every term that u has, too.
func (t terms) eachCommon(u terms, yield func(handle)) { t.each(u, true, yield) }
