package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unique"
	"unsafe"

	"github.com/informerd/informerd/cache"
)

// indexTable numbers the index names of one resource. Records hold the numbers,
// so a name keeps its number as long as records exist.
type indexTable struct {
	names   []string
	numbers map[string]uint64
}

func newIndexTable(names []string) *indexTable {
	t := &indexTable{names: names, numbers: make(map[string]uint64, len(names))}
	for i, name := range names {
		t.numbers[name] = uint64(i)
	}
	return t
}

func (t *indexTable) number(name string) uint64 {
	if n, ok := t.numbers[name]; ok {
		return n
	}
	n := uint64(len(t.names))
	t.names = append(t.names, name)
	t.numbers[name] = n
	return n
}

// encodeRecord returns the value of rec in a slice of its own.
func encodeRecord(key []byte, rec *cache.Record, indexes *indexTable) []byte {
	return appendRecord(make([]byte, 0, sealSize+recordSizeHint(rec)), key, rec, indexes)
}

// appendRecord returns the value of rec in the memory of b, which is empty, if that is enough.
func appendRecord(b, key []byte, rec *cache.Record, indexes *indexTable) []byte {
	b = append(b, make([]byte, sealSize)...)
	b = binary.AppendUvarint(b, uint64(rec.Dictionary))
	b = binary.AppendUvarint(b, uint64(rec.Size))
	b = binary.AppendVarint(b, rec.Created)
	b = binary.AppendUvarint(b, uint64(len(rec.Terms)))
	for _, h := range rec.Terms {
		t := h.Value()
		b = binary.AppendUvarint(b, indexes.number(t.Index))
		b = appendString(b, t.Value)
	}
	b = appendString(b, rec.UID)
	b = appendString(b, rec.ResourceVersion)
	b = append(b, rec.Data...)
	seal(key, b, recordVersion)
	return b
}

func recordSizeHint(rec *cache.Record) int {
	n := 24 + len(rec.UID) + len(rec.ResourceVersion) + len(rec.Data)
	for _, h := range rec.Terms {
		n += 4 + len(h.Value().Value)
	}
	return n
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Bounds of what a decoder keeps between records.
const (
	textChunk   = 32 << 10 // bytes
	termsChunk  = 4 << 10  // terms
	valuesLimit = 1 << 15  // values of an index
)

// recordDecoder decodes the records of one resource. What lives as long as the object gets
// allocations of its own: the data. Names and terms do not, since the object has them in another
// form: they are cut from larger slices.
type recordDecoder struct {
	indexes []string
	values  []map[string]term // by number of the index
	before  []place           // the terms of the record before
	text    []byte            // to cut names from
	terms   []term            // to cut those of a record from
}

// term is an interned term.
type term = unique.Handle[cache.Term]

// place is the term in one place of a record, and how it was written.
type place struct {
	index uint64
	value string
	term  term
}

func newRecordDecoder(indexes []string) *recordDecoder {
	return &recordDecoder{indexes: indexes, values: make([]map[string]term, len(indexes))}
}

// decode returns the record, sharing nothing with key and value.
func (d *recordDecoder) decode(key, value []byte) (cache.Record, error) {
	var rec cache.Record
	body, err := unseal(key, value, recordVersion)
	if err != nil {
		return rec, err
	}
	nul := bytes.IndexByte(key, 0)
	if nul < 0 {
		return rec, errors.New("key has no separator")
	}
	r := reader{b: body}
	rec.Dictionary = r.uint32()
	rec.Size = r.uint32()
	rec.Created = r.varint()
	if rec.Terms, err = d.readTerms(&r); err != nil {
		return rec, err
	}
	uid, version := r.bytes(), r.bytes()
	if r.err != nil {
		return rec, r.err
	}
	d.fill(&rec, key, nul, uid, version, r.b)
	return rec, nil
}

// fill copies what is in key, uid, version and data. Data is capped, so that nothing written
// after it can reach anything else.
func (d *recordDecoder) fill(rec *cache.Record, key []byte, nul int, uid, version, data []byte) {
	rec.Namespace, rec.Name = d.cut(key[:nul]), d.cut(key[nul+1:])
	rec.UID, rec.ResourceVersion = d.cut(uid), d.cut(version)
	rec.Data = make([]byte, len(data))
	copy(rec.Data, data)
}

// cut returns b as a string of the present chunk, or of its own where it is long.
func (d *recordDecoder) cut(b []byte) string {
	if len(b) > textChunk/16 {
		return string(b)
	}
	if len(b) > cap(d.text)-len(d.text) {
		d.text = make([]byte, 0, textChunk)
	}
	n := len(d.text)
	d.text = append(d.text, b...)
	return unsafe.String(unsafe.SliceData(d.text[n:]), len(b))
}

// cutTerms are n terms of the present chunk, or of their own where they are many.
func (d *recordDecoder) cutTerms(n int) []term {
	if n > termsChunk/16 {
		return make([]term, n)
	}
	if n > len(d.terms) {
		d.terms = make([]term, termsChunk)
	}
	cut := d.terms[:n:n]
	d.terms = d.terms[n:]
	return cut
}

func (d *recordDecoder) readTerms(r *reader) ([]term, error) {
	n := r.uvarint()
	if r.err != nil || n == 0 {
		return nil, r.err
	}
	if n > uint64(len(r.b)/2) { // a term is two bytes at least
		return nil, errShort
	}
	terms := d.cutTerms(int(n))
	for i := range terms {
		index, value := r.uvarint(), r.bytes()
		if r.err != nil {
			return nil, r.err
		}
		if index >= uint64(len(d.indexes)) {
			return nil, fmt.Errorf("index %d is not named", index)
		}
		terms[i] = d.term(i, index, value)
	}
	return terms, nil
}

// term is what is written in a place of a record. Records in order of their keys mostly have
// in a place what the one before has.
func (d *recordDecoder) term(i int, index uint64, value []byte) term {
	if i < len(d.before) && d.before[i].index == index && d.before[i].value == string(value) {
		return d.before[i].term
	}
	t := d.intern(index, value)
	if len(d.before) <= i {
		d.before = append(d.before, make([]place, i+1-len(d.before))...)
	}
	d.before[i] = place{index, t.Value().Value, t}
	return t
}

// intern is unique.Make for who asks for the same values again and again.
func (d *recordDecoder) intern(index uint64, value []byte) term {
	if t, ok := d.values[index][string(value)]; ok {
		return t
	}
	if d.values[index] == nil || len(d.values[index]) >= valuesLimit {
		d.values[index] = make(map[string]term)
	}
	t := unique.Make(cache.Term{Index: d.indexes[index], Value: string(value)})
	d.values[index][t.Value().Value] = t
	return t
}

// reader takes numbers and strings off the front of b. After the first error
// everything reads as zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	r.b = nil
	if r.err == nil {
		r.err = errShort
	}
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.uvarint()
	if v > math.MaxUint32 {
		r.fail()
		return 0
	}
	return uint32(v)
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if r.err == nil && n > uint64(len(r.b)) {
		r.fail()
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
