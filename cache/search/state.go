package search

import (
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/rows"
)

type (
	docID   uint32 // number of a doc in its state
	valueID uint32 // number of a value in its state
	setID   uint32 // number of a set in its state, + 1
	kindID  uint16 // position of a kind in its state
)

// doc is one object.
type doc struct {
	name      string // a part of the object, so that it costs nothing
	namespace unique.Handle[string]
	stamp     uint64
	own       rows.Set // its name, and values that no other object had when it was entered
	set       setID    // those that others had, too; 0 is none
	kind      kindID
	live      bool
}

func (d *doc) key() cache.Key { return cache.Key{Namespace: d.namespace.Value(), Name: d.name} }

// value is a text that objects have in a field.
type value struct {
	text    string
	holders rows.Set // of holder
	field   Field
}

// holder is who has a value: a doc by itself, or the docs of a set.
type holder uint32

func holderDoc(id docID) holder { return holder(id) << 1 }
func holderSet(id setID) holder { return holder(id)<<1 | 1 }

// doc is which doc it is, if it is one; if not, set is which set.
func (h holder) doc() (id docID, is bool) { return docID(h >> 1), h&1 == 0 }
func (h holder) set() setID               { return setID(h >> 1) }

// set is values that objects have together: most of those of siblings, which differ in their
// names and little else. So each sibling needs four bytes for them, and each value four for all.
type set struct {
	values []valueID // sorted
	docs   rows.Set
}

// kind is one resource of the cluster.
type kind struct {
	view  cache.View // its Store is nil: cannot be read
	known bool       // the cluster has it
	byKey rows.Table // docs
}

// state is all there is to find. Guarded by its Search.
type state struct {
	kinds      []*kind
	byResource map[schema.GroupResource]kindID
	docs       rows.Rows[doc]
	values     rows.Rows[value]
	byText     [fields]rows.Table // values
	sets       rows.Rows[set]
	byValues   rows.Table // sets
	tokens     tokens
	shared     []valueID // memory for put
}

func newState() *state {
	s := &state{byResource: map[schema.GroupResource]kindID{}}
	s.tokens.values = &s.values
	return s
}

// learn enters a resource of the cluster.
func (s *state) learn(view *cache.View) kindID {
	gr := view.Spec.GVR.GroupResource()
	id, ok := s.byResource[gr]
	if !ok {
		id = kindID(len(s.kinds))
		s.kinds = append(s.kinds, &kind{})
		s.byResource[gr] = id
	}
	k := s.kinds[id]
	k.view, k.known = *view, true
	return id
}

func hashKey(key cache.Key) uint64 { return rows.Hash(key.Namespace, key.Name) }

func (s *state) docHash(id uint32) uint64     { return hashKey(s.doc(docID(id)).key()) }
func (s *state) valueHash(id uint32) uint64   { return rows.Hash(s.values.At(id).text) }
func (s *state) setHash(number uint32) uint64 { return rows.HashNumbers(s.sets.At(number).values...) }

func (s *state) doc(id docID) *doc       { return s.docs.At(uint32(id)) }
func (s *state) value(id valueID) *value { return s.values.At(uint32(id)) }
func (s *state) set(id setID) *set       { return s.sets.At(uint32(id - 1)) }

// find returns the object called key.
func (s *state) find(k kindID, key cache.Key) (docID, bool) {
	id, ok := s.kinds[k].byKey.Find(hashKey(key), func(id uint32) bool {
		d := s.doc(docID(id))
		return d.name == key.Name && d.namespace.Value() == key.Namespace
	})
	return docID(id), ok
}

// put enters an object, or what changed in it.
func (s *state) put(k kindID, c *content) {
	id, ok := s.find(k, c.key)
	if !ok {
		id = docID(s.docs.Add(doc{name: c.key.Name, namespace: unique.Make(c.key.Namespace), kind: k, live: true}))
		s.kinds[k].byKey.Add(uint32(id), s.docHash)
	}
	var own rows.Set
	shared := s.shared[:0]
	for _, t := range c.texts {
		v := s.valueOf(t)
		if t.field == Name || s.onlyOf(v, id) { // siblings have no names in common
			own.Add(uint32(v))
		} else {
			shared = append(shared, v)
		}
	}
	d := s.doc(id)
	d.name, d.stamp = c.key.Name, c.stamp // of this version, so that no former one is kept for it
	slices.Sort(shared)
	s.shared = shared
	s.setValues(id, own, s.setOf(slices.Compact(shared)))
}

// onlyOf reports whether nobody has a value, or an object by itself alone.
func (s *state) onlyOf(v valueID, id docID) bool {
	holders := &s.value(v).holders
	return holders.Len() == 0 || holders.Len() == 1 && holders.Has(uint32(holderDoc(id)))
}

// remove takes out an object.
func (s *state) remove(k kindID, key cache.Key) {
	id, ok := s.find(k, key)
	if !ok {
		return
	}
	for _, v := range s.doc(id).own.List(new([1]uint32)) {
		if v := s.values.At(v); v.field == Name && v.holders.Len() > 1 {
			v.text = strings.Clone(v.text) // others are called so, and need not keep this object for it
		}
	}
	s.kinds[k].byKey.Remove(uint32(id), s.docHash)
	s.setValues(id, rows.Set{}, 0)
	s.docs.Remove(uint32(id))
}

// setValues replaces the texts of an object. What is new is entered before what was is taken
// out, so that no text is forgotten in between.
func (s *state) setValues(id docID, own rows.Set, set setID) {
	before := *s.doc(id)
	s.doc(id).own, s.doc(id).set = own, set
	var one, other [1]uint32
	for _, v := range own.List(&one) {
		s.values.At(v).holders.Add(uint32(holderDoc(id)))
	}
	if set != before.set && set != 0 {
		s.set(set).docs.Add(uint32(id))
	}
	for _, v := range before.own.List(&other) {
		if !own.Has(v) {
			s.release(valueID(v), holderDoc(id))
		}
	}
	if set != before.set && before.set != 0 {
		if docs := &s.set(before.set).docs; docs.Len() > 1 {
			docs.Remove(uint32(id))
		} else {
			s.dropSet(before.set)
		}
	}
}

// valuesOf are the values of an object, in no order.
func (s *state) valuesOf(id docID) []*value {
	d := s.doc(id)
	var all []*value
	for _, v := range d.own.List(new([1]uint32)) {
		all = append(all, s.values.At(v))
	}
	if d.set != 0 {
		for _, v := range s.set(d.set).values {
			all = append(all, s.value(v))
		}
	}
	return all
}

// setOf is the set of values, in order; new if there is none.
func (s *state) setOf(values []valueID) setID {
	if len(values) == 0 {
		return 0
	}
	number, ok := s.byValues.Find(rows.HashNumbers(values...), func(number uint32) bool { return slices.Equal(s.sets.At(number).values, values) })
	if ok {
		return setID(number + 1)
	}
	number = s.sets.Add(set{values: slices.Clone(values)})
	s.byValues.Add(number, s.setHash)
	for _, v := range values {
		s.value(v).holders.Add(uint32(holderSet(setID(number + 1))))
	}
	return setID(number + 1)
}

// dropSet forgets a set that no object has.
func (s *state) dropSet(id setID) {
	values := s.set(id).values
	s.byValues.Remove(uint32(id-1), s.setHash)
	s.sets.Remove(uint32(id - 1))
	for _, v := range values {
		s.release(v, holderSet(id))
	}
}

// valueOf returns the value of a text, new if there is none.
func (s *state) valueOf(t text) valueID {
	byText := &s.byText[t.field]
	id, ok := byText.Find(rows.Hash(t.s), func(id uint32) bool { return s.values.At(id).text == t.s })
	switch {
	case ok && t.field == Name:
		s.values.At(id).text = t.s // mostly a part of the object's latest version, as the name of its doc is
		return valueID(id)
	case ok:
		return valueID(id)
	case t.field != Name:
		t.s = strings.Clone(t.s) // it may be a part of something larger
	}
	id = s.values.Add(value{text: t.s, field: t.field})
	byText.Add(id, s.valueHash)
	s.tokens.add(valueID(id))
	return valueID(id)
}

// release takes away a holder of a value, which is forgotten with the last.
func (s *state) release(id valueID, from holder) {
	v := s.value(id)
	v.holders.Remove(uint32(from))
	if v.holders.Len() > 0 {
		return
	}
	s.byText[v.field].Remove(uint32(id), s.valueHash)
	s.tokens.remove(id)
	s.values.Remove(uint32(id))
}
