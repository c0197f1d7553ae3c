package filter

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/informerd/informerd/cache/rawjson"
)

// jsonMap is an object within the JSON, as a CEL map. Members are found in the
// order of the document and remembered.
type jsonMap struct {
	eval    *evaluation
	raw     rawjson.Lazy
	parts   rawjson.Parts
	members []member
	whole   bool // members are all there are
	// places of members by name, and the names as values: of what is large or is gone
	// through. Nil until they are asked for.
	places map[string]int
	keys   []ref.Val
}

type member struct {
	key   []byte
	plain bool
	raw   rawjson.Lazy
	value ref.Val // nil: not asked for yet
}

func (m *member) named(name string) bool {
	if m.plain {
		return string(m.key) == name
	}
	return rawjson.KeyText(m.key, false) == name
}

// read finds one more member and reports whether there was one.
func (m *jsonMap) read() bool {
	if m.whole {
		return false
	}
	key, plain, raw, ok := m.parts.Next()
	if !ok {
		m.whole = true
		return false
	}
	m.members = append(m.members, member{key: key, plain: plain, raw: raw})
	return true
}

func (m *jsonMap) readAll() {
	for m.read() {
	}
}

// manyMembers is from how many members on they are looked up in a map.
const manyMembers = 64

// lookup returns the first member with a key, or nil.
func (m *jsonMap) lookup(name string) *member {
	if len(m.members) >= manyMembers {
		return m.lookupMany(name)
	}
	for i := 0; i < len(m.members) || m.read(); i++ {
		if m.members[i].named(name) {
			return &m.members[i]
		}
	}
	return nil
}

func (m *jsonMap) lookupMany(name string) *member {
	if m.places == nil {
		m.readAll()
		m.places = make(map[string]int, len(m.members))
		for i := len(m.members) - 1; i >= 0; i-- {
			m.places[rawjson.KeyText(m.members[i].key, m.members[i].plain)] = i
		}
	}
	if i, ok := m.places[name]; ok {
		return &m.members[i]
	}
	return nil
}

func (m *jsonMap) valueOf(x *member) ref.Val {
	if x.value == nil {
		x.value = m.eval.value(x.raw)
	}
	return x.value
}

// Find implements traits.Mapper.
func (m *jsonMap) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	x := m.lookup(string(name))
	if x == nil {
		return nil, false
	}
	return m.valueOf(x), true
}

// Get implements traits.Indexer.
func (m *jsonMap) Get(key ref.Val) ref.Val {
	if v, ok := m.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container.
func (m *jsonMap) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	return types.Bool(ok && m.lookup(string(name)) != nil)
}

// Size implements traits.Sizer.
func (m *jsonMap) Size() ref.Val {
	m.readAll()
	return types.Int(len(m.members))
}

// Iterator implements traits.Iterable: over the keys.
func (m *jsonMap) Iterator() traits.Iterator {
	return &iterator{values: m.names()}
}

// names are the keys. They are made once, as loops within loops ask for them again.
func (m *jsonMap) names() []ref.Val {
	if m.readAll(); len(m.keys) < len(m.members) {
		m.keys = make([]ref.Val, 0, len(m.members))
		for _, x := range m.members {
			m.keys = append(m.keys, types.String(rawjson.KeyText(x.key, x.plain)))
		}
	}
	return m.keys
}

// Fold implements traits.Foldable.
func (m *jsonMap) Fold(f traits.Folder) {
	for i, name := range m.names() {
		if !f.FoldEntry(name, m.valueOf(&m.members[i])) {
			return
		}
	}
}

// ConvertToNative implements ref.Val.
func (m *jsonMap) ConvertToNative(t reflect.Type) (any, error) {
	return decoded(m.raw).ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (m *jsonMap) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.MapType, t)
}

// Equal implements ref.Val. What is compared most are two states of an object, whose parts
// mostly are the same, written alike.
func (m *jsonMap) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*jsonMap); ok && bytes.Equal(m.raw.Raw(), o.raw.Raw()) {
		return types.True
	}
	return decoded(m.raw).Equal(other)
}

// Type implements ref.Val.
func (m *jsonMap) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (m *jsonMap) Value() any { return decoded(m.raw).Value() }

// jsonList is an array within the JSON, as a CEL list.
type jsonList struct {
	eval     *evaluation
	raw      rawjson.Lazy
	parts    rawjson.Parts
	elements []ref.Val
	whole    bool
}

// read finds one more element and reports whether there was one.
func (l *jsonList) read() bool {
	if l.whole {
		return false
	}
	_, _, raw, ok := l.parts.Next()
	if !ok {
		l.whole = true
		return false
	}
	l.elements = append(l.elements, l.eval.value(raw))
	return true
}

func (l *jsonList) readAll() []ref.Val {
	for l.read() {
	}
	return l.elements
}

// Add implements traits.Adder.
func (l *jsonList) Add(other ref.Val) ref.Val { return l.list().Add(other) }

// list is l as a list of cel-go's own.
func (l *jsonList) list() traits.Lister {
	return types.NewRefValList(types.DefaultTypeAdapter, l.readAll())
}

// Contains implements traits.Container.
func (l *jsonList) Contains(v ref.Val) ref.Val { return l.list().Contains(v) }

// Get implements traits.Indexer.
func (l *jsonList) Get(index ref.Val) ref.Val { return l.list().Get(index) }

// Size implements traits.Sizer.
func (l *jsonList) Size() ref.Val { return types.Int(len(l.readAll())) }

// Iterator implements traits.Iterable.
func (l *jsonList) Iterator() traits.Iterator { return &listIterator{list: l} }

// Fold implements traits.Foldable.
func (l *jsonList) Fold(f traits.Folder) {
	for i, v := range l.readAll() {
		if !f.FoldEntry(types.Int(i), v) {
			return
		}
	}
}

// ConvertToNative implements ref.Val.
func (l *jsonList) ConvertToNative(t reflect.Type) (any, error) {
	return decoded(l.raw).ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (l *jsonList) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.ListType, t)
}

// Equal implements ref.Val; see jsonMap.
func (l *jsonList) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*jsonList); ok && bytes.Equal(l.raw.Raw(), o.raw.Raw()) {
		return types.True
	}
	return l.list().Equal(other)
}

// Type implements ref.Val.
func (l *jsonList) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *jsonList) Value() any { return decoded(l.raw).Value() }

// decoded is a value read in full, for what few expressions need.
func decoded(l rawjson.Lazy) ref.Val {
	var v any
	if err := utiljson.Unmarshal(l.Raw(), &v); err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// done makes an iterator a ref.Val, which nobody asks it to be.
type done struct{}

func (done) ConvertToNative(reflect.Type) (any, error) { return nil, errIterator }
func (done) ConvertToType(ref.Type) ref.Val            { return types.NewErr("%v", errIterator) }
func (done) Equal(ref.Val) ref.Val                     { return types.False }
func (done) Type() ref.Type                            { return types.IteratorType }
func (done) Value() any                                { return nil }

var errIterator = errors.New("an iterator is no value")

// iterator goes through values that are known.
type iterator struct {
	done
	values []ref.Val
}

// HasNext implements traits.Iterator.
func (i *iterator) HasNext() ref.Val { return types.Bool(len(i.values) > 0) }

// Next implements traits.Iterator.
func (i *iterator) Next() ref.Val {
	v := i.values[0]
	i.values = i.values[1:]
	return v
}

// listIterator reads a list while it goes.
type listIterator struct {
	done
	list *jsonList
	n    int
}

// HasNext implements traits.Iterator.
func (i *listIterator) HasNext() ref.Val {
	return types.Bool(i.n < len(i.list.elements) || i.list.read())
}

// Next implements traits.Iterator.
func (i *listIterator) Next() ref.Val {
	v := i.list.elements[i.n]
	i.n++
	return v
}
