package cache

import (
	"iter"
	"slices"
	"strings"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"
)

// Object is one object at one resourceVersion: its identity, its indexed
// values, and its JSON as served, less the paths its Spec drops. It is
// immutable and may be shared and kept by anyone. The JSON is compressed at
// rest; each call of JSON or AppendJSON unpacks it again.
type Object struct {
	// text holds namespace, name, uid and resourceVersion one after the other:
	// one allocation, and lengths instead of string headers.
	text string
	// The terms that are those of siblings, too, which have the same pointer, and the others.
	common *commonTerms
	own    *handle     // the first of ownLen
	packed *byte       // the first of packedLen
	dict   *dictionary // nil: what is packed is plain JSON
	// created is metadata.creationTimestamp in Unix seconds, 0 if absent.
	created int64
	size    uint32 // of the plain JSON
	// Lengths without capacities, and here: the headers of two slices would take as much as a
	// tenth of what is packed.
	ownLen, packedLen uint32
	// generation says under which index definitions terms were taken.
	generation uint32
	// The ends of namespace, name and uid in text.
	namespaceEnd, nameEnd, uidEnd uint16
	is                            marks
	// was is the length of the resourceVersion that the JSON has where that is another
	// than the object's, 0 where it is the same. That one is at the end of text.
	was uint8
}

// marks are what else is known of an Object.
type marks uint8

const (
	// foreign: outside Spec.Namespaces, without data, only good for its version.
	foreign marks = 1 << iota
	// sound: StoreOptions.Sound has said so.
	sound
)

// data is the JSON at rest: packed with the dictionary, if there is one. It must not be changed.
func (o *Object) data() []byte { return unsafe.Slice(o.packed, o.packedLen) }

func (o *Object) setData(data []byte, dict *dictionary) {
	o.packed, o.packedLen, o.dict = unsafe.SliceData(data), uint32(len(data)), dict
}

// terms are the indexed values. They must not be changed.
func (o *Object) terms() (t terms) {
	if o.common != nil {
		t.common = o.common.handles
	}
	t.own = unsafe.Slice(o.own, o.ownLen)
	return t
}

// setTerms is for an object that nobody else knows of. own belongs to it afterwards.
func (o *Object) setTerms(common *commonTerms, own []handle) {
	o.common, o.own, o.ownLen = common, unsafe.SliceData(own), uint32(len(own))
}

// like returns o with its terms in memory of a sibling, or of its former self, where that has the
// same.
func (o *Object) like(sibling *Object) *Object {
	if !o.repeats(sibling) {
		return o
	}
	c := *o
	c.common = sibling.common
	return &c
}

// repeats reports whether o has in memory of its own what a sibling has the same.
func (o *Object) repeats(sibling *Object) bool {
	return sibling != nil && o.common != nil && sibling.common != nil && o.common != sibling.common &&
		slices.Equal(o.common.handles, sibling.common.handles)
}

// identity is what text is made of.
type identity struct {
	namespace, name, uid, resourceVersion string
}

// sameIdentity reports whether o and other have the same identity and resourceVersion, which are
// those of their JSON.
func (o *Object) sameIdentity(other *Object) bool {
	return o.text == other.text && o.namespaceEnd == other.namespaceEnd && o.nameEnd == other.nameEnd && o.uidEnd == other.uidEnd &&
		o.was == 0 && other.was == 0
}

func (o *Object) setIdentity(id identity) {
	var b strings.Builder
	b.Grow(len(id.namespace) + len(id.name) + len(id.uid) + len(id.resourceVersion))
	b.WriteString(id.namespace)
	o.namespaceEnd = uint16(b.Len())
	b.WriteString(id.name)
	o.nameEnd = uint16(b.Len())
	b.WriteString(id.uid)
	o.uidEnd = uint16(b.Len())
	b.WriteString(id.resourceVersion)
	o.text = b.String()
}

// maxIdentity bounds namespace, name and UID together; the API server allows
// 63, 253 and 36 bytes.
const maxIdentity = 1<<16 - 1

func (id identity) valid() bool {
	return id.name != "" && len(id.namespace)+len(id.name)+len(id.uid) <= maxIdentity
}

// Key is the object's namespace and name.
func (o *Object) Key() Key { return Key{o.Namespace(), o.Name()} }

// Namespace is empty for an object of cluster scope.
func (o *Object) Namespace() string { return o.text[:o.namespaceEnd] }

// Name is metadata.name.
func (o *Object) Name() string { return o.text[o.namespaceEnd:o.nameEnd] }

// UID is metadata.uid.
func (o *Object) UID() string { return o.text[o.nameEnd:o.uidEnd] }

// ResourceVersion is metadata.resourceVersion. Some aggregated API servers
// leave it empty.
func (o *Object) ResourceVersion() string { return o.text[o.uidEnd : len(o.text)-int(o.was)] }

// Created is metadata.creationTimestamp; zero if it has none.
func (o *Object) Created() time.Time {
	if o.created == 0 {
		return time.Time{}
	}
	return time.Unix(o.created, 0).UTC()
}

// Foreign reports whether the object is outside the namespaces of its Spec. It has
// no JSON then and is only good for its version.
func (o *Object) Foreign() bool { return o.is&foreign != 0 }

// Sound reports whether StoreOptions.Sound has said that nothing is wrong with the object
// when it was decoded. False says nothing: of what a snapshot had it is never asked.
func (o *Object) Sound() bool { return o.is&sound != 0 }

// Size is the length of the plain JSON in bytes.
func (o *Object) Size() int {
	if o.was > 0 {
		return int(o.size) + len(o.ResourceVersion()) - int(o.was)
	}
	return int(o.size)
}

// AppendJSON appends the plain JSON to dst.
func (o *Object) AppendJSON(dst []byte) ([]byte, error) {
	if o.was > 0 {
		return o.appendRevised(dst)
	}
	return o.appendData(dst)
}

// appendData appends the plain JSON as it is held.
func (o *Object) appendData(dst []byte) ([]byte, error) {
	if o.dict == nil {
		return append(dst, o.data()...), nil
	}
	return o.dict.decompress(dst, o.data(), int(o.size))
}

// JSON returns the plain JSON, in memory of its own.
func (o *Object) JSON() ([]byte, error) {
	return o.AppendJSON(make([]byte, 0, o.Size()))
}

// ReadJSON calls read with the plain JSON, which is in memory for others as soon as read has
// returned: it is for who reads many objects.
func (o *Object) ReadJSON(read func(plain []byte) error) error {
	buf := buffers.get()
	plain, err := o.AppendJSON((*buf)[:0])
	defer buffers.put(buf, plain)
	if err != nil {
		return err
	}
	return read(plain)
}

// Terms lists the object's indexed values: namespace, labels, owners, then the
// configured indexes.
func (o *Object) Terms() []Term { return slices.Collect(o.EachTerm()) }

// EachTerm are Terms, one after the other.
func (o *Object) EachTerm() iter.Seq[Term] {
	return func(yield func(Term) bool) {
		held := o.terms()
		for i := range held.len() {
			if !yield(held.at(i).Value()) {
				return
			}
		}
	}
}

func (o *Object) has(h handle) bool {
	return o.terms().has(h)
}

// Owned reports whether the object has an owner with a UID.
func (o *Object) Owned() bool {
	_, ok := o.owner()
	return ok
}

// owner is the first of the object's owners that has a UID.
func (o *Object) owner() (owner handle, ok bool) {
	common := o.terms().common
	i := slices.IndexFunc(common, func(h handle) bool { return h.Value().Index == OwnerIndex })
	if i < 0 {
		return handle{}, false
	}
	return common[i], true
}

// Labels is a view of metadata.labels that allocates nothing.
func (o *Object) Labels() labels.Labels { return objectLabels{o} }

type objectLabels struct{ o *Object }

func (l objectLabels) Lookup(key string) (string, bool) {
	for _, h := range l.o.terms().common {
		t := h.Value()
		if t.Index != LabelIndex {
			continue
		}
		if k, v := splitLabel(t.Value); k == key {
			return v, true
		}
	}
	return "", false
}

func (l objectLabels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

func (l objectLabels) Get(key string) string {
	v, _ := l.Lookup(key)
	return v
}

// splitLabel splits a value of the label index. A label's key has no "=".
func splitLabel(value string) (key, v string) {
	key, v, _ = strings.Cut(value, "=")
	return key, v
}

// held is the memory the object takes, all included except what it shares with
// others (its terms, those of siblings as a whole, and its dictionary).
func (o *Object) held() int64 {
	return int64(unsafe.Sizeof(*o)) + int64(len(o.text)) + int64(8*o.ownLen) + int64(o.packedLen)
}

// repacked returns a copy of o that holds its JSON in another form.
func (o *Object) repacked(data []byte, dict *dictionary) *Object {
	c := *o
	c.setData(data, dict)
	return &c
}

// reindexed returns a copy of o with the terms of another generation.
func (o *Object) reindexed(common *commonTerms, own []handle, generation uint32) *Object {
	c := *o
	c.setTerms(common, own)
	c.generation = generation
	return &c
}
