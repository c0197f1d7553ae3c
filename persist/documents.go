package persist

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// Documents are those that are saved. A damaged one is left out: the API server
// has it.
func (db *DB) Documents() ([]cache.Document, error) {
	var all []cache.Document
	err := db.view(func(tx *bbolt.Tx) error {
		return forEachDocument(tx, func(key, value []byte) error {
			d, err := decodeDocument(key, value)
			if err != nil {
				db.options.Log.Warn("document left out, it is damaged", "key", string(key), "err", err)
				return nil
			}
			all = append(all, d)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", public(err))
	}
	return all, nil
}

// SaveDocument saves d and forgets others in its favour.
func (db *DB) SaveDocument(d cache.Document, forget []cache.DocumentKey) error {
	key, value, err := encodeDocument(&d)
	if err != nil {
		return err
	}
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	err = db.writeLocked(func(tx *bbolt.Tx) error {
		b, err := ensureBucket(tx, rootBucket, documentsBucket)
		if err != nil {
			return err
		}
		for _, f := range forget {
			k, err := documentKey(f)
			if err == nil {
				err = b.Delete(k)
			}
			if err != nil {
				return err
			}
		}
		return b.Put(key, value)
	})
	if err != nil && !errors.Is(err, ErrReplaced) {
		return fmt.Errorf("save document %s: %w", d.URI, err)
	}
	return nil
}

func forEachDocument(tx *bbolt.Tx, fn func(key, value []byte) error) error {
	b := bucketAt(tx, rootBucket, documentsBucket)
	if b == nil {
		return nil
	}
	return b.ForEach(fn)
}
