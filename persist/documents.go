package persist

import (
	"bytes"
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
		return forEachDocument(tx, db.vault, func(key []byte, d cache.Document, err error) {
			if err != nil {
				db.options.Log.Warn("document left out, it is damaged", "key", fmt.Sprintf("%q", key), "err", err)
				return
			}
			all = append(all, d)
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
		shelf := db.vault.shelf(kindDocument, nil)
		for _, f := range forget {
			k, err := documentKey(f)
			if err == nil {
				err = b.Delete(shelf.stored(k))
			}
			if err != nil {
				return err
			}
		}
		return shelf.put(b, key, value)
	})
	if err != nil && !errors.Is(err, ErrReplaced) {
		return fmt.Errorf("save document %s: %w", d.URI, err)
	}
	return nil
}

// ForgetDocuments forgets those of a cluster, of which Sweep leaves nothing in the file.
func (db *DB) ForgetDocuments(cluster string) error {
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	err := db.writeLocked(func(tx *bbolt.Tx) error {
		var gone [][]byte
		err := forEachDocument(tx, db.vault, func(stored []byte, d cache.Document, err error) {
			if err != nil || d.Cluster == cluster { // nobody knows which a damaged one is of
				gone = append(gone, bytes.Clone(stored))
			}
		})
		if err != nil || len(gone) == 0 {
			return err
		}
		b := bucketAt(tx, rootBucket, documentsBucket)
		for _, stored := range gone {
			if err := b.Delete(stored); err != nil {
				return err
			}
		}
		return markErase(tx)
	})
	if err != nil && !errors.Is(err, ErrReplaced) {
		return fmt.Errorf("forget documents of cluster %s: %w", cluster, err)
	}
	return nil
}

// forEachDocument calls fn for each, under the key it is stored under, with what is
// wrong with it.
func forEachDocument(tx *bbolt.Tx, v *vault, fn func(stored []byte, d cache.Document, err error)) error {
	b := bucketAt(tx, rootBucket, documentsBucket)
	if b == nil {
		return nil
	}
	shelf := v.shelf(kindDocument, nil)
	return b.ForEach(func(stored, sealed []byte) error {
		key, value, err := shelf.open(stored, sealed)
		if err != nil {
			fn(stored, cache.Document{}, err)
			return nil
		}
		d, err := decodeDocument(key, value)
		fn(stored, d, err)
		return nil
	})
}
