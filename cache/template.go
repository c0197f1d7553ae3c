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
	return d.besideBase(dst, size, func(dst, base []byte) ([]byte, error) { return delta.Apply(dst, base, data, size) })
}

// unpackSteps is unpackBeside of data that was read.
func (d *dictionary) unpackSteps(dst []byte, steps *delta.Steps, size int) ([]byte, error) {
	return d.besideBase(dst, size, func(dst, base []byte) ([]byte, error) { return steps.Apply(dst, base, size) })
}

// besideBase appends what apply appends, of an object of so many bytes that is held beside d.
func (d *dictionary) besideBase(dst []byte, size int, apply func(dst, base []byte) ([]byte, error)) ([]byte, error) {
	if size > maxPlain {
		return dst, fmt.Errorf("unpack object: %d bytes are too many", size)
	}
	err := plains.use(d, func(base []byte) (err error) {
		dst, err = apply(dst, base)
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
	packing [plainPlaces]atomic.Pointer[plainTemplate]
	reading [plainPlaces]readTemplate
}

// plainPlaces is how many templates are kept unpacked, of all resources: some 3 MB of pods, 32 MB
// at most, for who packs, and as much for who reads.
const plainPlaces = 512

// plainTemplate is one beside which objects are packed.
type plainTemplate struct {
	of   *dictionary
	json []byte // never changed: encoders hold it, too
}

// readTemplate is a place for templates beside which objects are read. Its memory is used again
// for the next one, so that who reads all objects leaves no garbage.
type readTemplate struct {
	mu   sync.RWMutex // held for as long as json is read
	of   *dictionary
	json []byte
}

// of is the plain JSON of a template.
func (p *plainTemplates) of(d *dictionary) ([]byte, error) {
	if json := p.at(d); json != nil {
		return json, nil
	}
	json, err := d.template.appendPlain(make([]byte, 0, d.template.size))
	if err == nil {
		p.keep(d, json)
	}
	return json, err
}

// keep keeps the plain JSON of a template, which must not be changed any more.
func (p *plainTemplates) keep(d *dictionary, json []byte) {
	p.packing[p.place(d)].Store(&plainTemplate{d, json})
}

// use calls read with the plain JSON of a template, which is another's afterwards.
func (p *plainTemplates) use(d *dictionary, read func(plain []byte) error) error {
	if json := p.at(d); json != nil {
		return read(json)
	}
	kept := &p.reading[p.place(d)]
	if done, err := kept.use(d, read); done {
		return err
	}
	if done, err := kept.replace(d, read); done {
		return err
	}
	buf := buffers.get()
	json, err := d.template.appendPlain((*buf)[:0])
	defer buffers.put(buf, json)
	if err != nil {
		return err
	}
	return read(json)
}

// at is what who packs has in the place of d, if it is of d.
func (p *plainTemplates) at(d *dictionary) []byte {
	if plain := p.packing[p.place(d)].Load(); plain != nil && plain.of == d {
		return plain.json
	}
	return nil
}

// place is where a template is, if it is: those of one Store have ids that follow each other.
func (p *plainTemplates) place(d *dictionary) int { return int(d.id % plainPlaces) }

// use calls read with what is in the place, if that is d. Nobody waits for it: to unpack d aside
// takes no longer.
func (r *readTemplate) use(d *dictionary, read func(plain []byte) error) (done bool, err error) {
	if !r.mu.TryRLock() {
		return false, nil
	}
	defer r.mu.RUnlock()
	if r.of != d {
		return false, nil
	}
	return true, read(r.json)
}

// replace puts d into the place and calls read with it, unless the place is in use.
func (r *readTemplate) replace(d *dictionary, read func(plain []byte) error) (done bool, err error) {
	if !r.mu.TryLock() {
		return false, nil
	}
	defer r.mu.Unlock()
	r.of = nil // while it may be half of one
	if r.json, err = d.template.appendPlain(r.json[:0]); err != nil {
		return true, err
	}
	r.of = d
	return true, read(r.json)
}

func (t *template) appendPlain(dst []byte) ([]byte, error) {
	dst, err := t.with.decompress(dst, t.data, t.size)
	if err != nil {
		return dst, fmt.Errorf("unpack a template: %w", err)
	}
	return dst, nil
}

// families are the owners of which objects were packed last, with what others of them can be
// held beside.
type families struct {
	mu   sync.Mutex
	kept []family
	next int // is replaced next

	numbers *templateNumbers
}

// templateNumbers gives templates their ids: one of a Store never has that of another, also where
// objects of two Stores are to be those of one, see Store.Successor.
type templateNumbers struct{ last atomic.Uint32 } // 0: there was none

// next is an id that no template has; false if there is none left.
func (n *templateNumbers) next() (id uint32, ok bool) {
	for {
		last := n.last.Load()
		if last == math.MaxUint32 {
			return 0, false
		}
		if id = max(last+1, firstTemplate); n.last.CompareAndSwap(last, id) {
			return id, true
		}
	}
}

// passed has next go on after id.
func (n *templateNumbers) passed(id uint32) {
	for last := n.last.Load(); last < id && !n.last.CompareAndSwap(last, id); last = n.last.Load() {
	}
}

// familiesKept is how many owners are remembered: as many as are listed or change at a time, by
// all who read a resource. Of others it is found out again.
const familiesKept = 32

// family is what is known of the objects of one owner.
type family struct {
	owner handle
	// templates are what the latest of them are held beside, the last one first: pods of a
	// rollout run or wait. candidate can become one.
	templates [2]*dictionary
	candidate candidate
	// met are the first objects that were found to be held by themselves, each once.
	met []Key
}

// familyFrom is how many objects an owner has at least where one becomes a template: of fewer
// it would take as much memory as it saves.
const familyFrom = 4

// candidate is an object by itself, packed for zstd; zero: there is none.
type candidate struct {
	key  Key // what an object was before is not its sibling
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

// forget forgets all owners.
func (f *families) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept, f.next = nil, 0
}

// takeOver goes on as from did.
func (f *families) takeOver(from *families) {
	f.forget()
	f.numbers.passed(from.numbers.last.Load())
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
	data, used, c := s.packing.packOf(known, o.Key(), plain)
	s.packing.note(plain, data, used, c)
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
	if held := s.contents.find(o); held != nil && held.dict != nil && held.dict.template != nil {
		known.templates[0] = held.dict
		return known
	}
	seen := 0
	for row := range s.contents.indexes.posting(owner).all() {
		if known.templates[0] != nil || seen == siblingsSeen {
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
		f.templates[0] = o.dict
	default:
		f.alone(candidate{o.Key(), o.data(), int(o.size), o.dict})
	}
}

// alone notes an object that is held by itself.
func (f *family) alone(c candidate) {
	f.candidate = c
	if len(f.met) < familyFrom && !slices.Contains(f.met, c.key) {
		f.met = append(slices.Clip(f.met), c.key) // others have what there was
	}
}

// isLarge reports whether there are objects enough, with that of key, for one to become a
// template.
func (f *family) isLarge(key Key) bool {
	n := len(f.met)
	if !slices.Contains(f.met, key) {
		n++
	}
	return n >= familyFrom
}

// mayBecomeTemplate reports whether an object, size bytes, that is packed by itself is likely to be what the
// next one of this family is held beside. It is packed quickly then: whoever reads a few objects of each
// family unpacks a template for each of them, which takes less than half of the time. Of an owner of two
// objects none is, of more one or two are. One that is known already has changed: its siblings are few,
// or unlike it.
func (f *family) mayBecomeTemplate(key Key, size int) bool {
	return len(f.met) >= familyFrom-2 && len(f.met) < familyFrom && size <= delta.MaxBase && !slices.Contains(f.met, key)
}

// packOf returns the form in which plain, of an object of this family, is held, what it is packed
// with, and how.
func (p *packing) packOf(f family, key Key, plain []byte) ([]byte, *dictionary, coding) {
	with, how := p.dict.Load(), p.coding()
	for i, t := range f.templates {
		if t == nil || t.zstd() != with {
			continue
		}
		if base, err := plains.of(t); err == nil {
			if data, ok := packBeside(base, plain); ok {
				f.templates[0], f.templates[i] = f.templates[i], f.templates[0]
				p.families.put(f)
				return data, t, how
			}
		}
	}
	if c := f.candidate; c.ok() && c.with == with && c.key != key && f.isLarge(key) {
		if data, t := p.promote(c, plain); t != nil {
			f.templates, f.candidate = [2]*dictionary{t, f.templates[0]}, candidate{}
			p.families.put(f)
			return data, t, how
		}
	}
	// The next one may be like this one, as pods of a ReplicaSet are that have just been made.
	if f.mayBecomeTemplate(key, len(plain)) {
		how = quick
	}
	data, used := packWith(with, plain, how)
	if used != nil {
		f.alone(candidate{key, data, len(plain), used})
		p.families.put(f)
	}
	return data, used, how
}

// promote packs plain beside a candidate, which becomes a template then; nil: they are not like
// each other.
func (p *packing) promote(c candidate, plain []byte) ([]byte, *dictionary) {
	t := &template{with: c.with, data: c.data, size: c.size}
	base, err := t.appendPlain(make([]byte, 0, t.size))
	if err != nil {
		return nil, nil
	}
	data, ok := packBeside(base, plain)
	if !ok {
		return nil, nil
	}
	id, ok := p.families.numbers.next()
	if !ok {
		return nil, nil
	}
	d := &dictionary{id: id, template: t}
	plains.keep(d, base)
	return data, d
}

// packBeside packs plain beside base, which must never be changed. ok is false where too much
// is different, and where what was packed does not come out as it was: it is looked at each
// time, since nobody else would find out.
func packBeside(base, plain []byte) (data []byte, ok bool) {
	e := deltas.get(base)
	defer deltas.put(e)
	if e.data, ok = e.Append(e.data[:0], plain, len(plain)/templateShare); !ok {
		return nil, false
	}
	var err error
	e.plain, err = delta.Apply(e.plain[:0], base, e.data, len(plain))
	if err != nil || !bytes.Equal(e.plain, plain) {
		return nil, false
	}
	return slices.Clone(e.data), true
}

// deltas are the encoders of deltas, of some 20 KB each. Each is for the sibling that it was used
// for last.
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

// take takes the one that is for base, or, if there are enough, that was used longest ago.
func (p *deltaPool) take(base []byte) *deltaEncoder {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := slices.IndexFunc(p.waiting, func(e *deltaEncoder) bool { return isSame(e.base, base) })
	if n < 0 {
		if len(p.waiting) < Workers() {
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
	if len(p.waiting) < 2*Workers() && cap(e.plain)+cap(e.data)+e.Held() <= maxPooledBuffer {
		p.waiting = append(p.waiting, e)
	}
}
