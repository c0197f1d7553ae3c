package filter

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/informerd/informerd/cache/rawjson"
)

// evaluation is the activation of one evaluation, and the memory of the values
// it reads, which are used again for the next object. Nothing of it may outlive
// the evaluation.
type evaluation struct {
	now      types.Timestamp
	root     ref.Val
	old      ref.Val // null if there was none
	maps     slab[jsonMap]
	list     slab[jsonList]
	patience patience
}

func (e *evaluation) start(object, old []byte) {
	e.root, e.old = e.value(rawjson.NewLazy(object)), types.NullValue
	if len(old) > 0 {
		e.old = e.value(rawjson.NewLazy(old))
	}
}

func (e *evaluation) reset() {
	e.root, e.old = nil, nil
	for _, m := range e.maps.used() {
		*m = jsonMap{members: emptied(m.members)}
	}
	for _, l := range e.list.used() {
		*l = jsonList{elements: emptied(l.elements)}
	}
	e.maps.n, e.list.n = 0, 0
}

// maxEmptied is the capacity up to which a slice is used again: one large object must
// not take its room for ever.
const maxEmptied = 1 << 10

func emptied[T any](all []T) []T {
	if cap(all) > maxEmptied {
		return nil
	}
	clear(all)
	return all[:0]
}

// ResolveName implements cel.Activation.
func (e *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case "object":
		return e.root, true
	case "old":
		return e.old, true
	case "now":
		return e.now, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (e *evaluation) Parent() cel.Activation { return nil }

// value is the CEL value of a part of the object. Objects and arrays are read
// when they are asked about.
func (e *evaluation) value(l rawjson.Lazy) ref.Val {
	switch l.Kind() {
	case rawjson.Object:
		m := e.maps.next()
		m.eval, m.raw, m.parts = e, l, l.Parts()
		return m
	case rawjson.Array:
		a := e.list.next()
		a.eval, a.raw, a.parts = e, l, l.Parts()
		return a
	case rawjson.String:
		return types.String(l.Text())
	case rawjson.Bool:
		return types.Bool(l[0] == 't')
	case rawjson.Null:
		return types.NullValue
	}
	n, f, integer := l.Number()
	if integer {
		return types.Int(n)
	}
	return types.Double(f)
}

// slab hands out values that are all given back at once.
type slab[T any] struct {
	all []*T
	n   int
}

// maxSlab bounds what is kept for the next object.
const maxSlab = 1 << 10

func (s *slab[T]) next() *T {
	if s.n == len(s.all) {
		if s.n >= maxSlab {
			return new(T)
		}
		s.all = append(s.all, new(T))
	}
	s.n++
	return s.all[s.n-1]
}

func (s *slab[T]) used() []*T { return s.all[:s.n] }
