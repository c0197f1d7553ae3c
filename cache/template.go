package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/informerd/informerd/cache/internal/delta"
)

// template is an object that its siblings, which have the same owner, are held beside: of each
// of them only what is different (cache/internal/delta). Pods of a ReplicaSet so take half of
// the memory, a tenth of the time to pack and a fifth of the time to unpack that they take each
// by itself.
//
// It is what one of them was at some time, whatever becomes of that, and goes with the last
// object that is held beside it.
type template struct {
	with *dictionary // for zstd; never nil
	data []byte      // packed with it
	size int         // of the plain JSON
}

// held is the memory that it takes.
func (t *template) held() int64 {
	return int64(unsafe.Sizeof(dictionary{})+unsafe.Sizeof(*t)) + int64(len(t.data))
}

const (
	// templateShare is how many times as long an object must be as what is different of it.
	templateShare = 10
	// firstTemplate is the least id of a template. Those for zstd are less (newDictionaryID).
	firstTemplate = 1 << 31
)

// templateMagic is how what a snapshot has of a template begins. A dictionary for zstd begins
// with another one.
const templateMagic = "tpl1"

// saved is what a snapshot has of d.
func (d *dictionary) saved() []byte {
	t := d.template
	if t == nil {
		return d.raw
	}
	b := make([]byte, 0, len(templateMagic)+2*binary.MaxVarintLen32+len(t.data))
	b = append(b, templateMagic...)
	b = binary.AppendUvarint(b, uint64(t.with.id))
	b = binary.AppendUvarint(b, uint64(t.size))
	return append(b, t.data...)
}

// IsTemplate reports whether what a snapshot has under Saved.Dictionaries is an object that
// others are held beside, and not a dictionary for zstd.
func IsTemplate(saved []byte) bool { return bytes.HasPrefix(saved, []byte(templateMagic)) }

var errTemplate = errors.New("it is no template")

// openTemplate makes one of what saved returned. dictionaries are those for zstd.
func openTemplate(id uint32, saved []byte, dictionaries map[uint32]*dictionary) (*dictionary, error) {
	rest := saved[len(templateMagic):]
	with, n := binary.Uvarint(rest)
	if n <= 0 {
		return nil, errTemplate
	}
	size, m := binary.Uvarint(rest[n:])
	if m <= 0 || size == 0 || size > delta.MaxBase || id < firstTemplate || with >= firstTemplate {
		return nil, errTemplate
	}
	d := dictionaries[uint32(with)]
	if d == nil {
		return nil, fmt.Errorf("dictionary %d, which it is packed with, is missing", with)
	}
	return &dictionary{id: id, template: &template{with: d, data: rest[n+m:], size: int(size)}}, nil
}

// unpackBeside appends the plain form of data, of an object that is held beside d.
func (d *dictionary) unpackBeside(dst, data []byte, size int) ([]byte, error) {
	if size > maxPlain {
		return dst, fmt.Errorf("unpack object: %d bytes are too many", size)
	}
	err := plains.use(d, func(base []byte) (err error) {
		dst, err = delta.Apply(dst, base, data, size)
		return err
	})
	if err != nil {
		return dst, fmt.Errorf("unpack object: %w", err)
	}
	return dst, nil
}

// plains are those templates that were used last, unpacked: siblings are read one after the
// other.
var plains plainTemplates

// plainTemplates has a place for each of many templates, which may have to share it.
type plainTemplates struct {
	places [plainPlaces]atomic.Pointer[plainTemplate]
	// missed are those that were looked for last in vain. Where that is so for the second time,
	// siblings are read one after the other: of pods all over the cluster it happens once each,
	// and to keep them would be garbage.
	missed [plainPlaces]atomic.Pointer[dictionary]
}

// plainPlaces is how many templates are kept unpacked, of all resources: some 3 MB of pods, 32 MB
// at most.
const (
	plainBits   = 9
	plainPlaces = 1 << plainBits
)

type plainTemplate struct {
	of   *dictionary
	json []byte // not to be changed
}

// of is the plain JSON of a template.
func (p *plainTemplates) of(d *dictionary) ([]byte, error) {
	i := p.place(d)
	if json := p.at(i, d); json != nil {
		return json, nil
	}
	json, err := d.template.appendPlain(make([]byte, 0, d.template.size))
	if err == nil {
		p.places[i].Store(&plainTemplate{d, json})
	}
	return json, err
}

// use calls read with the plain JSON of a template, which may be another's afterwards.
func (p *plainTemplates) use(d *dictionary, read func(plain []byte) error) error {
	i := p.place(d)
	if json := p.at(i, d); json != nil {
		return read(json)
	}
	if p.missed[i].Swap(d) == d {
		json, err := p.of(d)
		if err != nil {
			return err
		}
		return read(json)
	}
	buf := buffers.get()
	json, err := d.template.appendPlain((*buf)[:0])
	defer buffers.put(buf, json)
	if err != nil {
		return err
	}
	return read(json)
}

// at is what is in a place, if it is of d.
func (p *plainTemplates) at(i int, d *dictionary) []byte {
	if plain := p.places[i].Load(); plain != nil && plain.of == d {
		return plain.json
	}
	return nil
}

// place is where a template is, if it is. It may have no id yet.
func (p *plainTemplates) place(d *dictionary) int {
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(d.template.data))))
	return int(at * 0x9e3779b97f4a7c15 >> (64 - plainBits))
}

func (t *template) appendPlain(dst []byte) ([]byte, error) {
	dst, err := t.with.decompress(dst, t.data, t.size)
	if err != nil {
		return dst, fmt.Errorf("unpack a template: %w", err)
	}
	return dst, nil
}

// families are the owners of which objects were packed last, with what others of them can be
// held beside. The zero value is ready.
type families struct {
	mu   sync.Mutex
	kept []family
	next int    // is replaced next
	last uint32 // id of a template, 0: there was none
}

// familiesKept is how many owners are remembered: as many as are listed or change at a time, by
// all who read a resource. Of others it is found out again.
const familiesKept = 32

// family is what is known of the objects of one owner.
type family struct {
	owner handle
	// template is what the latest of them are held beside, nil if there is none. candidate can
	// become one: it is packed for zstd with a dictionary.
	template  *dictionary
	candidate candidate
}

// candidate is an object by itself; zero: there is none.
type candidate struct {
	data []byte
	size int
	with *dictionary
}

func (c candidate) ok() bool { return c.with != nil && c.size <= delta.MaxBase }

// get is what is known of an owner.
func (f *families) get(owner handle) (family, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.kept {
		if f.kept[i].owner == owner {
			return f.kept[i], true
		}
	}
	return family{owner: owner}, false
}

// put notes what is known of an owner.
func (f *families) put(known family) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.kept, func(k family) bool { return k.owner == known.owner })
	switch {
	case i >= 0:
		f.kept[i] = known
	case len(f.kept) < familiesKept:
		f.kept = append(f.kept, known)
	default:
		f.kept[f.next] = known
		f.next = (f.next + 1) % familiesKept
	}
}

// template makes a candidate a template, which has no id yet.
func (c candidate) template() *dictionary {
	return &dictionary{template: &template{with: c.with, data: c.data, size: c.size}}
}

// number gives a template its id, before anybody else knows of it. It reports false if there is
// none left: two of a Store must never have the same.
func (f *families) number(d *dictionary) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == math.MaxUint32 {
		return false
	}
	f.last = max(f.last+1, firstTemplate)
	d.id = f.last
	return true
}

// restored notes the ids of templates that a snapshot has: others get greater ones.
func (f *families) restored(dictionaries map[uint32]*dictionary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range dictionaries {
		f.last = max(f.last, id)
	}
}

// forget forgets all owners.
func (f *families) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept, f.next = nil, 0
}

// takeOver goes on as from did.
func (f *families) takeOver(from *families) {
	f.forget()
	from.mu.Lock()
	last := from.last
	from.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = max(f.last, last)
}

// pack has o hold plain, beside a sibling if there is one that it is like.
func (s *Store) pack(o *Object, plain []byte) {
	owner, owned := o.owner()
	if !owned || s.packing.dict.Load() == nil {
		o.setData(s.packing.pack(plain))
		return
	}
	known, ok := s.packing.families.get(owner)
	if !ok {
		known = s.family(o, owner)
	}
	data, used := s.packing.packOf(known, plain)
	s.packing.note(plain, data, used)
	o.setData(data, used)
}

// siblingsSeen is how many objects of an owner are looked at, for one that others can be held
// beside.
const siblingsSeen = 8

// family is what can be found out about an owner of o: that is the object as it was, and some
// siblings.
func (s *Store) family(o *Object, owner handle) family {
	known := family{owner: owner}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if held := s.contents.find(o); held != nil {
		known.meet(held)
	}
	seen := 0
	for row := range s.contents.indexes[OwnerIndex].postings[owner].all() {
		if known.template != nil || seen == siblingsSeen {
			break
		}
		known.meet(s.contents.rows[row])
		seen++
	}
	return known
}

// meet notes what is known of an object of the owner.
func (f *family) meet(o *Object) {
	switch {
	case o.dict == nil:
	case o.dict.template != nil:
		f.template = o.dict
	case !f.candidate.ok():
		f.candidate = candidate{o.data(), int(o.size), o.dict}
	}
}

// packOf returns the form in which plain, of an object of this family, is held, and what it
// is packed with.
func (p *packing) packOf(f family, plain []byte) ([]byte, *dictionary) {
	with := p.dict.Load()
	if f.template != nil && f.template.zstd() == with {
		if data, ok := packBeside(f.template, plain); ok {
			p.families.put(f)
			return data, f.template
		}
	} else if f.candidate.ok() && f.candidate.with == with {
		t := f.candidate.template()
		if data, ok := packBeside(t, plain); ok && p.families.number(t) {
			p.families.put(family{owner: f.owner, template: t})
			return data, t
		}
	}
	// The next one may be like this one, as pods of a ReplicaSet are that have just been made.
	data, used := packWith(with, plain, p.coding())
	if used != nil {
		p.families.put(family{owner: f.owner, candidate: candidate{data, len(plain), used}})
	}
	return data, used
}

// packBeside packs plain beside template. ok is false where too much is different, and where
// what was packed does not come out as it was: it is looked at each time, since nobody else
// would find out.
func packBeside(d *dictionary, plain []byte) (data []byte, ok bool) {
	base, err := plains.of(d)
	if err != nil {
		return nil, false
	}
	e := deltas.get(base)
	defer deltas.put(e)
	e.data = e.Append(e.data[:0], plain)
	if len(e.data)*templateShare > len(plain) {
		return nil, false
	}
	e.plain, err = delta.Apply(e.plain[:0], base, e.data, len(plain))
	if err != nil || !bytes.Equal(e.plain, plain) {
		return nil, false
	}
	return slices.Clone(e.data), true
}

// deltas are the encoders of deltas. Each is for the sibling that it was used for last.
var deltas deltaPool

type deltaPool struct {
	mu      sync.Mutex
	waiting []*deltaEncoder
}

type deltaEncoder struct {
	delta.Encoder
	base        []byte
	data, plain []byte // reused
}

func (p *deltaPool) get(base []byte) *deltaEncoder {
	e := p.take(base)
	if !isSame(e.base, base) {
		e.Reset(base)
		e.base = base
	}
	return e
}

// isSame reports whether both are the same piece of memory.
func isSame(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// take takes the one that is for base, or that was used longest ago.
func (p *deltaPool) take(base []byte) *deltaEncoder {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := slices.IndexFunc(p.waiting, func(e *deltaEncoder) bool { return isSame(e.base, base) })
	if n < 0 {
		if len(p.waiting) < deltasKept() {
			return &deltaEncoder{}
		}
		n = 0
	}
	e := p.waiting[n]
	p.waiting = slices.Delete(p.waiting, n, n+1)
	return e
}

func (p *deltaPool) put(e *deltaEncoder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) < deltasKept() && cap(e.plain) <= maxPooledBuffer {
		p.waiting = append(p.waiting, e)
	}
}

// deltasKept is how many encoders may wait to be used again, of some 20 KB each.
func deltasKept() int { return 2 * Workers() }
