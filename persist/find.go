package persist

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/informerd/informerd/cache"
)

// Find is Load of those records that may have the term t; see cache.Finder. It looks for the
// bytes that the term is written as, which takes a small part of making objects of all.
func (db *DB) Find(ctx context.Context, r cache.Resource, t cache.Term, yield func(cache.Record) error) (cache.Saved, error) {
	return db.load(ctx, r, &t, yield)
}

// needle is how a term is written in records.
type needle struct {
	text    []byte
	nowhere bool // no record has a term of its index
}

// newNeedle is that of a term, nil of none. indexes are those that are named by number.
func newNeedle(t *cache.Term, indexes []string) *needle {
	if t == nil {
		return nil
	}
	number := slices.Index(indexes, t.Index)
	if number < 0 {
		return &needle{nowhere: true}
	}
	return &needle{text: appendString(binary.AppendUvarint(nil, uint64(number)), t.Value)}
}

// wants checks a record and reports whether it may have the term that is looked for.
func (r *objectReader) wants(stored, sealed []byte) (bool, error) {
	n := r.saved.wanted
	if n == nil {
		return true, nil
	}
	key, value, err := r.shelf.open(stored, sealed)
	if err != nil {
		return false, err
	}
	body, err := unseal(key, value, recordVersion)
	if err != nil {
		return false, err
	}
	return !n.nowhere && bytes.Contains(body, n.text), nil
}
