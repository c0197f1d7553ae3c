package persist

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// readBatch is how many records are decoded at once.
const readBatch = 256

// objectReader decodes the records of one resource. It belongs to one goroutine.
type objectReader struct {
	saved   *savedMeta
	shelf   *shelf
	decoder *recordDecoder
}

func (s *savedMeta) newReader() *objectReader {
	return &objectReader{saved: s, shelf: s.newShelf(), decoder: newRecordDecoder(s.Indexes)}
}

// decode returns what was stored, sharing nothing with it.
func (r *objectReader) decode(stored, sealed []byte) (cache.Record, error) {
	key, value, err := r.shelf.open(stored, sealed)
	if err != nil {
		return cache.Record{}, err
	}
	rec, err := r.decoder.decode(key, value)
	if err != nil {
		return rec, err
	}
	if _, ok := r.saved.saved.Dictionaries[rec.Dictionary]; !ok && rec.Dictionary != 0 {
		return rec, fmt.Errorf("dictionary %d is missing", rec.Dictionary)
	}
	return rec, nil
}

// reading reads the records of one resource in the order in which they are stored, and decodes
// them on all processors. The goroutine that runs it walks along the bucket and yields.
type reading struct {
	ctx   context.Context // of who waits for it
	saved *savedMeta
	yield func(cache.Record) error

	batch   *readPart
	decoded []*readPart // being decoded, or done: the oldest first
	spare   []*readPart // yielded, to be filled again
	readers chan *objectReader
	workers sync.WaitGroup

	count int
	sum   uint64
}

// readPart is a batch of what is stored. Keys and values lie in the mapping of the file.
type readPart struct {
	keys, values [][]byte
	records      []cache.Record
	passed       int // records that are not wanted
	sum          uint64
	err          error
	done         chan struct{} // closed when it is decoded
}

// read yields every record, and checks that none is missing, too many, or of another commit.
func (r *reading) read(objects *bbolt.Bucket) error {
	r.batch = &readPart{}
	r.readers = make(chan *objectReader, cache.Workers())
	// What lies in the mapping must not be read after the transaction has ended.
	defer r.workers.Wait()
	if objects != nil {
		c := objects.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if err := r.add(k, v); err != nil {
				return err
			}
		}
	}
	for len(r.decoded) > 0 {
		if err := r.yieldOldest(); err != nil {
			return err
		}
	}
	// What is left is not worth another goroutine, and few resources have more.
	r.batch.decode(r.reader())
	if err := r.yieldAll(r.batch); err != nil {
		return err
	}
	return r.saved.complete(r.count, r.sum)
}

func (r *reading) add(k, v []byte) error {
	p := r.batch
	p.keys, p.values = append(p.keys, k), append(p.values, v)
	if len(p.keys) < readBatch {
		return nil
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	for len(r.decoded) >= 2*cache.Workers() {
		if err := r.yieldOldest(); err != nil {
			return err
		}
	}
	p.done = make(chan struct{})
	r.decoded = append(r.decoded, p)
	reader := r.reader()
	r.workers.Go(func() {
		defer close(p.done)
		p.decode(reader)
		select {
		case r.readers <- reader:
		default:
		}
	})
	r.batch = &readPart{}
	if n := len(r.spare); n > 0 {
		r.batch, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	return nil
}

// reader is one that nobody uses.
func (r *reading) reader() *objectReader {
	select {
	case reader := <-r.readers:
		return reader
	default:
		return r.saved.newReader()
	}
}

func (r *reading) yieldOldest() error {
	p := r.decoded[0]
	r.decoded = r.decoded[1:]
	<-p.done
	if err := r.yieldAll(p); err != nil {
		return err
	}
	clear(p.records)
	r.spare = append(r.spare, &readPart{keys: p.keys[:0], values: p.values[:0], records: p.records[:0]})
	return nil
}

func (r *reading) yieldAll(p *readPart) error {
	for i := range p.records {
		if err := r.yield(p.records[i]); err != nil {
			return err
		}
	}
	r.count += len(p.records) + p.passed
	r.sum ^= p.sum
	return p.err
}

// decode makes records of what is stored, up to the first that is damaged.
func (p *readPart) decode(r *objectReader) {
	defer guard(&p.err)()
	if r.saved.wanted == nil {
		p.records = slices.Grow(p.records, len(p.keys))
	}
	for i, k := range p.keys {
		wanted, err := r.wants(k, p.values[i])
		if err == nil && !wanted {
			p.passed++
			p.sum ^= r.shelf.sum(p.values[i])
			continue
		}
		var rec cache.Record
		if err == nil {
			rec, err = r.decode(k, p.values[i])
		}
		if err != nil {
			p.err = fmt.Errorf("object %q: %w", k, err)
			return
		}
		p.records = append(p.records, rec)
		p.sum ^= r.shelf.sum(p.values[i])
	}
}
