package cache

import (
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// dictionaryBytes bounds the objects a dictionary is made of, and
	// dictionaryPart what one of them may take.
	dictionaryBytes = 40 << 10
	dictionaryPart  = 8 << 10
	trainObjects    = 300
	trainBytes      = 1 << 20 // of plain JSON held
	trainBytesMax   = 4 << 20 // of the objects of a first list that wait for it
	trainMinObjects = 16      // fewer share too little, however large they are
	// trainSample bounds what of one object is looked at. The builder encodes
	// each sample as one block and panics on more than 128 KiB of it
	// (klauspost/compress zstd/enc_base.go, addBlock).
	trainSample = 32 << 10
	// trainStatistics is how many samples the entropy tables are made from.
	trainStatistics = 100
	// compressLevel: the better level takes twice the time for a few percent.
	compressLevel = zstd.SpeedFastest
	// maxPlain bounds what is unpacked at once, against a damaged frame.
	maxPlain = 64 << 20
)

// dictionary is what objects of one resource have in common, with which they are packed and
// unpacked: one for zstd, or a template. It is immutable and safe for concurrent use. Encoders
// and decoders are pooled, so that an idle resource keeps only the bytes.
type dictionary struct {
	id       uint32
	template *template // nil: it is for zstd
	raw      []byte
	decoders sync.Pool // of *zstd.Decoder, which read both codings; see encoders
}

// zstd is the dictionary for zstd that d is, or that it is packed with.
func (d *dictionary) zstd() *dictionary {
	if d != nil && d.template != nil {
		return d.template.with
	}
	return d
}

// coding is how what a dictionary leaves of an object is written: mostly random digits of
// UIDs, hashes and times.
type coding bool

const (
	// quick writes them as they are.
	quick coding = false
	// dense codes them by how frequent each is, with a table of its own for each object. That
	// saves a fifth of the memory of a pod, and takes more than half of the time of
	// unpacking it.
	dense coding = true
)

// newDictionary checks raw, which must not change any more.
func newDictionary(id uint32, raw []byte) (*dictionary, error) {
	d := &dictionary{id: id, raw: raw}
	info, err := zstd.InspectDictionary(raw)
	if err != nil {
		return nil, fmt.Errorf("read dictionary %d: %w", id, err)
	}
	if info.ID() != id {
		return nil, fmt.Errorf("read dictionary %d: it says it is %d", id, info.ID())
	}
	dec, err := d.newDecoder()
	if err != nil {
		return nil, fmt.Errorf("read dictionary %d: %w", id, err)
	}
	d.decoders.Put(dec)
	return d, nil
}

// train makes a dictionary from the plain JSON of some objects of a resource.
func train(id uint32, samples [][]byte) (d *dictionary, err error) {
	// Objects can be held plain; a trainer that panics on them must not end the
	// process.
	defer func() {
		if r := recover(); r != nil {
			d, err = nil, fmt.Errorf("train dictionary: panic: %v", r)
		}
	}()
	statistics := spread(samples, trainStatistics)
	for n, s := range statistics {
		statistics[n] = s[:min(len(s), trainSample)]
	}
	raw, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID:       id,
		Contents: statistics,
		History:  history(samples),
		Offsets:  [3]int{1, 4, 8}, // as zstd starts with where it has no dictionary
		Level:    compressLevel,
	})
	if err != nil {
		return nil, fmt.Errorf("train dictionary: %w", err)
	}
	return newDictionary(id, raw)
}

// history is what a dictionary refers to: a few whole objects. Objects of one
// resource are so alike that this halves what a trainer's selection of common
// substrings comes to (466 against 925 bytes a pod, both dense), and costs no search.
func history(samples [][]byte) []byte {
	var h []byte
	for _, s := range spread(samples, 2*dictionaryBytes/dictionaryPart) {
		s = s[:min(len(s), dictionaryPart)]
		if len(h)+len(s) > dictionaryBytes {
			break
		}
		h = append(h, s...)
	}
	return h
}

// spread picks n of samples from all over them, in a slice of its own.
func spread(samples [][]byte, n int) [][]byte {
	n = min(n, len(samples))
	picked := make([][]byte, n)
	for i := range picked {
		picked[i] = samples[i*len(samples)/n]
	}
	return picked
}

func (d *dictionary) newEncoder(c coding) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil,
		zstd.WithEncoderDict(d.raw),
		zstd.WithEncoderLevel(compressLevel),
		zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false), // the snapshot has checksums of its own
		withCoding(c),
		zstd.WithWindowSize(128<<10))
}

func withCoding(c coding) zstd.EOption { return zstd.WithNoEntropyCompression(c == quick) }

func (d *dictionary) newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil,
		zstd.WithDecoderDicts(d.raw),
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxPlain))
}

// compress returns plain compressed, in memory of exactly its size, or nil when
// that saves nothing.
func (d *dictionary) compress(plain []byte, c coding) []byte {
	enc, err := encoders.get(d, c)
	if err != nil {
		return nil
	}
	buf := buffers.get()
	out := enc.EncodeAll(plain, *buf)
	encoders.put(enc)
	defer buffers.put(buf, out)
	if len(out) >= len(plain) {
		return nil
	}
	return append(make([]byte, 0, len(out)), out...)
}

// decompress appends the plain form of data, size bytes, to dst.
func (d *dictionary) decompress(dst, data []byte, size int) ([]byte, error) {
	if d.template != nil {
		return d.unpackBeside(dst, data, size)
	}
	dec, _ := d.decoders.Get().(*zstd.Decoder)
	if dec == nil {
		var err error
		if dec, err = d.newDecoder(); err != nil {
			return dst, fmt.Errorf("decompress object: %w", err)
		}
	}
	// The decoder makes room for one object only: a list would be copied with
	// each of them.
	dst = slices.Grow(dst, min(size, maxPlain))
	before := len(dst)
	out, err := dec.DecodeAll(data, dst)
	d.decoders.Put(dec)
	if err != nil {
		return dst, fmt.Errorf("decompress object: %w", err)
	}
	if len(out)-before != size {
		return dst, fmt.Errorf("decompress object: %d bytes, want %d", len(out)-before, size)
	}
	return out, nil
}

// buffers are reused where bytes are needed for the time of one call.
var buffers bufferPool

type bufferPool struct{ pool sync.Pool }

// maxPooledBuffer keeps one huge object from holding on to its memory.
const maxPooledBuffer = 1 << 20

func (p *bufferPool) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// put gives back b, which may have grown to be used.
func (p *bufferPool) put(b *[]byte, used []byte) {
	if cap(used) > maxPooledBuffer {
		return
	}
	*b = used[:0]
	p.pool.Put(b)
}
