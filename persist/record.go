package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// encodeRecord returns the value of rec in a slice of its own: bbolt keeps it
// until the transaction ends.
func encodeRecord(key []byte, rec *cache.Record, indexes *indexTable) []byte {
	b := make([]byte, sealSize, sealSize+recordSizeHint(rec))
	b = binary.AppendUvarint(b, uint64(rec.Dictionary))
	b = binary.AppendUvarint(b, uint64(rec.Size))
	b = binary.AppendVarint(b, rec.Created)
	b = binary.AppendUvarint(b, uint64(len(rec.Terms)))
	for _, t := range rec.Terms {
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
	for _, t := range rec.Terms {
		n += 4 + len(t.Value)
	}
	return n
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Bounds of what a decoder keeps between records.
const (
	termChunk   = 512
	valuesLimit = 1 << 15
)

// recordDecoder decodes the records of one resource. Each record gets one
// allocation of its own for everything that lives as long as the object. Terms
// do not: their values repeat, so equal ones are shared, and their slices are
// cut from larger ones.
type recordDecoder struct {
	indexes []string
	values  map[string]string
	terms   []cache.Term
}

func newRecordDecoder(indexes []string) *recordDecoder {
	return &recordDecoder{indexes: indexes, values: make(map[string]string)}
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

// fill copies what lives as long as the object into one slab: the strings first,
// the data last and capped, so that nothing written after it can reach them.
func (d *recordDecoder) fill(rec *cache.Record, key []byte, nul int, uid, version, data []byte) {
	n := len(key) + len(uid) + len(version)
	slab := make([]byte, 0, n+len(data))
	slab = append(slab, key...)
	slab = append(slab, uid...)
	slab = append(slab, version...)
	text := unsafe.String(unsafe.SliceData(slab), n)
	rec.Namespace = text[:nul]
	rec.Name = text[nul+1 : len(key)]
	rec.UID = text[len(key) : len(key)+len(uid)]
	rec.ResourceVersion = text[len(key)+len(uid):]
	slab = append(slab, data...)
	rec.Data = slab[n:len(slab):len(slab)]
}

func (d *recordDecoder) readTerms(r *reader) ([]cache.Term, error) {
	n := r.uvarint()
	if r.err != nil || n == 0 {
		return nil, r.err
	}
	if n > uint64(len(r.b)/2) { // a term is two bytes at least
		return nil, errShort
	}
	terms := d.cut(int(n))
	for i := range terms {
		index, value := r.uvarint(), r.bytes()
		if r.err != nil {
			return nil, r.err
		}
		if index >= uint64(len(d.indexes)) {
			return nil, fmt.Errorf("index %d is not named", index)
		}
		terms[i] = cache.Term{Index: d.indexes[index], Value: d.share(value)}
	}
	return terms, nil
}

// cut takes n terms off the current chunk.
func (d *recordDecoder) cut(n int) []cache.Term {
	if n > termChunk/4 {
		return make([]cache.Term, n)
	}
	if n > len(d.terms) {
		d.terms = make([]cache.Term, termChunk)
	}
	terms := d.terms[:n:n]
	d.terms = d.terms[n:]
	return terms
}

// share returns value as a string, the same one for equal values.
func (d *recordDecoder) share(value []byte) string {
	if s, ok := d.values[string(value)]; ok {
		return s
	}
	if len(d.values) >= valuesLimit {
		clear(d.values)
	}
	s := string(value)
	d.values[s] = s
	return s
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
