package persist

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/cache"
)

// Bounds of what one statement changes.
const (
	pgRows  = 1000
	pgBytes = 4 << 20
)

// uniqueUpTo is how many records of a batch may have a key twice, so that the last counts. Of
// a larger one that begins anew, which a Store makes, none has.
const uniqueUpTo = 100_000

// put writes the records of the batch.
func (s *pgSave) put(m *meta) error {
	indexes := newIndexTable(m.Indexes)
	write := s.putAll
	if s.batch.Reset && s.batch.Len() > pgRows {
		write = s.copyAll
	}
	if err := write(m, indexes); err != nil {
		return err
	}
	m.Indexes = indexes.names
	return nil
}

// hashes are those of keys, one after the other in one piece of memory.
type hashes struct {
	all  [][]byte
	slab []byte
}

func (h *hashes) reset() { h.all, h.slab = h.all[:0], nil }

func (h *hashes) add(key []byte) []byte {
	if cap(h.slab)-len(h.slab) < sha256.Size {
		h.slab = make([]byte, 0, 256*sha256.Size)
	}
	sum := sha256.Sum256(key)
	h.slab = append(h.slab, sum[:]...)
	n := len(h.slab)
	added := h.slab[n-sha256.Size : n : n]
	h.all = append(h.all, added)
	return added
}

// encode makes the row of a record.
func (s *pgSave) encode(rec *cache.Record, indexes *indexTable) (key, value []byte, err error) {
	if !s.known[rec.Dictionary] {
		return nil, nil, fmt.Errorf("%w: %s needs dictionary %d, which is not saved", cache.ErrCorrupt, rec.Key, rec.Dictionary)
	}
	key, err = appendKey(make([]byte, 0, len(rec.Namespace)+len(rec.Name)+1), rec.Key)
	if err != nil {
		return nil, nil, err
	}
	return key, encodeRecord(key, rec, indexes), nil
}

// pgPart is what one statement writes.
type pgPart struct {
	hashes       hashes
	keys, values [][]byte
	sums         []int64
	bytes        int
}

func (p *pgPart) reset() {
	p.hashes.reset()
	p.keys, p.values, p.sums, p.bytes = p.keys[:0], p.values[:0], p.sums[:0], 0
}

func (p *pgPart) add(key, value []byte) {
	p.hashes.add(key)
	p.keys, p.values = append(p.keys, key), append(p.values, value)
	p.sums = append(p.sums, int64(storedSum(value)))
	p.bytes += len(value)
}

func (p *pgPart) isFull() bool { return len(p.keys) >= pgRows || p.bytes >= pgBytes }

// wanted are the numbers of the records to write, in order. Of two of one key the last counts.
func (s *pgSave) wanted() iter.Seq[int] {
	n := s.batch.Len()
	var last map[cache.Key]int
	if !s.batch.Reset || n <= uniqueUpTo {
		last = make(map[cache.Key]int, n)
		for i := range n {
			last[s.batch.Key(i)] = i
		}
	}
	return func(yield func(int) bool) {
		for i := range n {
			if last != nil && last[s.batch.Key(i)] != i {
				continue
			}
			if !yield(i) {
				return
			}
		}
	}
}

// putAll writes the records in parts.
func (s *pgSave) putAll(m *meta, indexes *indexTable) error {
	var part pgPart
	for i := range s.wanted() {
		rec := s.batch.Record(i)
		key, value, err := s.encode(&rec, indexes)
		if err != nil {
			return err
		}
		if part.add(key, value); part.isFull() {
			if err := s.putPart(m, &part); err != nil {
				return err
			}
			part.reset()
		}
	}
	return s.putPart(m, &part)
}

// putPart writes rows in the place of those of the same keys.
func (s *pgSave) putPart(m *meta, part *pgPart) error {
	if len(part.keys) == 0 {
		return nil
	}
	if !s.batch.Reset {
		if err := s.remove(m, part.hashes.all); err != nil {
			return err
		}
	}
	for _, sum := range part.sums {
		m.Sum += uint64(sum)
	}
	m.Objects += len(part.keys)
	return s.exec(`INSERT INTO {`+s.row.objects+`} (resource, hash, key, sum, value)
		SELECT $1, k.hash, k.key, k.sum, k.value FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[]) AS k(hash, key, sum, value)`,
		s.row.id, part.hashes.all, part.keys, part.sums, part.values)
}

// removeKeys deletes the rows of keys.
func (s *pgSave) removeKeys(m *meta, keys []cache.Key) error {
	for part := range slices.Chunk(keys, pgRows) {
		var h hashes
		for _, k := range part {
			key, err := appendKey(nil, k)
			if err != nil {
				return err
			}
			h.add(key)
		}
		if err := s.remove(m, h.all); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes rows, those of them that are there.
func (s *pgSave) remove(m *meta, hashes [][]byte) error {
	rows, err := s.tx.Query(s.ctx, s.p.in(`DELETE FROM {`+s.row.objects+`} WHERE resource = $1 AND hash = ANY($2::bytea[]) RETURNING sum`), s.row.id, hashes)
	if err != nil {
		return err
	}
	sums, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, sum := range sums {
		m.Sum -= uint64(sum)
	}
	m.Objects -= len(sums)
	return err
}

// copyAll writes all records of a batch that begins anew, which takes half the time and less
// than half of the processor's of inserting them. Each is made when it is sent.
func (s *pgSave) copyAll(m *meta, indexes *indexTable) error {
	next, stop := iter.Pull(s.wanted())
	defer stop()
	n, err := s.tx.CopyFrom(s.ctx, pgx.Identifier{s.p.options.Schema, s.row.objects}, []string{"resource", "hash", "key", "sum", "value"},
		pgx.CopyFromFunc(func() ([]any, error) {
			i, ok := next()
			if !ok {
				return nil, nil
			}
			rec := s.batch.Record(i)
			key, value, err := s.encode(&rec, indexes)
			if err != nil {
				return nil, err
			}
			sum := storedSum(value)
			m.Sum += uint64(sum)
			return []any{s.row.id, hashOf(key), key, int64(sum), value}, nil
		}))
	m.Objects = int(n)
	return err
}
