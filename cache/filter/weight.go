package filter

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// beyond is a weight that is too much in any case. Nothing is weighed further.
const beyond = 2 * MaxCost

// bytesPerUnit is how many bytes of text cost one unit (cel-go's
// common.StringTraversalCostFactor).
const bytesPerUnit = 10

func charged(bytes uint64) uint64 { return bytes / bytesPerUnit }

// weight is how much work it is to look at all of a value, at least 1 and at most twice
// beyond. A value that occurs twice counts twice.
func weight(v ref.Val) uint64 {
	w := weigher{}
	w.add(v)
	return w.total
}

// weigher adds up weights until they are beyond all measure.
type weigher struct {
	total uint64
	// known are the weights of lists and maps that were met after muchWeighed: a filter may
	// make one that holds itself a million times over in twenty steps.
	known map[ref.Val]uint64
}

const (
	// muchWeighed is a weight from which on it is of use to know what was weighed before, and
	// worthKnowing what that has to weigh.
	muchWeighed  = 4096
	worthKnowing = 32
)

// add reports whether there is a use in going on.
func (w *weigher) add(v ref.Val) bool {
	w.total++
	switch v := v.(type) {
	case types.String:
		w.total += charged(uint64(len(v)))
	case types.Bytes:
		w.total += charged(uint64(len(v)))
	case *jsonMap:
		w.total += charged(uint64(len(v.raw.Raw())))
	case *jsonList:
		w.total += charged(uint64(len(v.raw.Raw())))
	case *types.Optional:
		if v.HasValue() {
			w.add(v.GetValue())
		}
	case traits.Lister:
		w.once(v, func() {
			for it := v.Iterator(); it.HasNext() == types.True && w.add(it.Next()); {
			}
		})
	case traits.Mapper:
		w.once(v, func() {
			for it := v.Iterator(); it.HasNext() == types.True; {
				key := it.Next()
				if !w.add(key) || !w.add(v.Get(key)) {
					break
				}
			}
		})
	}
	return w.total < beyond
}

// once adds up a value that holds others, as add does unless its weight is known.
func (w *weigher) once(v ref.Val, add func()) {
	if w.total < muchWeighed || reflect.TypeOf(v).Kind() != reflect.Pointer {
		add()
		return
	}
	known, ok := w.known[v]
	if ok {
		w.total += known
		return
	}
	before := w.total
	if add(); w.total >= beyond {
		return
	}
	if w.total-before < worthKnowing {
		return
	}
	if w.known == nil {
		w.known = map[ref.Val]uint64{}
	}
	w.known[v] = w.total - before
}

func isContainer(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// textLen is the length of a text in bytes.
func textLen(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	}
	return 0
}

func sizeOf(l traits.Lister) uint64 {
	if n, ok := l.Size().(types.Int); ok && n > 0 {
		return uint64(n)
	}
	return 0
}
