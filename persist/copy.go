package persist

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// copyBytes is how much is copied in one transaction.
const copyBytes = 8 << 20

// copyAside copies what is sound of s to a file beside it and returns its name. Records
// are copied as they are: one whose checksum is wrong stays wrong, and what is encrypted
// is so with the same data key.
func copyAside(s *source, options Options) (name string, err error) {
	name = options.Path + newSuffix
	if err := os.RemoveAll(name); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(name)
		}
	}()
	o := (&DB{options: options}).boltOptions()
	o.NoSync = true // synced once, at the end
	dst, err := openBolt(name, o)
	if err != nil {
		return "", err
	}
	dst.AllocSize = allocSize
	err = view(s.bolt, func(tx *bbolt.Tx) error { return copyContents(dst, tx, s) })
	if err == nil && !options.NoSync {
		err = dst.Sync()
	}
	return name, errors.Join(err, dst.Close())
}

func copyContents(dst *bbolt.DB, src *bbolt.Tx, s *source) error {
	if err := update(dst, func(tx *bbolt.Tx) error { return layOut(tx, s.lock) }); err != nil {
		return err
	}
	found := s.found
	tx, err := dst.Begin(true)
	if err != nil {
		return err
	}
	c := &copier{dst: dst, tx: tx}
	defer func() { _ = c.tx.Rollback() }()
	err = forEachResource(src, func(name []byte, b *bbolt.Bucket) error {
		if found.parts[string(name)] != nil {
			return nil
		}
		return c.bucket(b, rootBucket, resourcesBucket, name)
	})
	if err != nil {
		return err
	}
	// What is not sound may be the documents; the API server has them.
	if documents := bucketAt(src, rootBucket, documentsBucket); documents != nil && found.rest == nil {
		if err := c.bucket(documents, rootBucket, documentsBucket); err != nil {
			return err
		}
	}
	if err := c.ledgers(src, s); err != nil {
		return err
	}
	if mark := src.Bucket(rootBucket).Get(journalKey); mark != nil {
		if err := c.tx.Bucket(rootBucket).Put(journalKey, mark); err != nil {
			return err
		}
	}
	return c.tx.Commit()
}

// ledgers copies those that are sound, and leaves an empty bucket in the place of each
// other, so that it is damaged and not one that never was.
func (c *copier) ledgers(src *bbolt.Tx, s *source) error {
	if s.found.ledgers != nil {
		return nil
	}
	any := false
	err := forEachLedger(src, func(name []byte, b *bbolt.Bucket) error {
		any = true
		if s.found.ledgerParts[string(name)] != nil {
			_, err := c.at([][]byte{rootBucket, ledgersBucket, name})
			return err
		}
		return c.bucket(b, rootBucket, ledgersBucket, name)
	})
	if err != nil || !any {
		return err
	}
	return putFormat(c.tx.Bucket(rootBucket), formatOf(s.lock != nil, true))
}

// copier writes in transactions of bounded size.
type copier struct {
	dst  *bbolt.DB
	tx   *bbolt.Tx
	size int
}

// bucket copies src, and the buckets in it, to the bucket at path.
func (c *copier) bucket(src *bbolt.Bucket, path ...[]byte) error {
	dst, err := c.at(path)
	if err != nil {
		return err
	}
	return src.ForEach(func(k, v []byte) error {
		if v == nil {
			if err := c.bucket(src.Bucket(k), append(path[:len(path):len(path)], k)...); err != nil {
				return err
			}
			dst, err = c.at(path) // a new transaction may have begun
			return err
		}
		if c.size > copyBytes {
			if dst, err = c.turn(path); err != nil {
				return err
			}
		}
		c.size += len(k) + len(v)
		return dst.Put(k, v)
	})
}

func (c *copier) at(path [][]byte) (*bbolt.Bucket, error) {
	b, err := ensureBucket(c.tx, path...)
	if err == nil {
		b.FillPercent = 1
	}
	return b, err
}

// turn commits what was copied and begins the next transaction.
func (c *copier) turn(path [][]byte) (*bbolt.Bucket, error) {
	if err := c.tx.Commit(); err != nil {
		return nil, err
	}
	tx, err := c.dst.Begin(true)
	if err != nil {
		return nil, err
	}
	c.tx, c.size = tx, 0
	return c.at(path)
}

// Compact rewrites the file at path without its free pages, through a copy that
// takes its place once it is complete, and returns both sizes. It refuses a
// file that is in use or damaged.
func Compact(path string) (before, after int64, err error) {
	options := Options{Path: path}.withDefaults()
	s, err := openSource(options)
	if err != nil {
		return 0, 0, fmt.Errorf("compact %s: %w", path, public(err))
	}
	defer s.Close()
	if err := s.refuse(); err != nil {
		return 0, 0, fmt.Errorf("compact %s: %w", path, err)
	}
	copied, err := copyAside(s, options)
	if err == nil {
		err = rename(copied, path)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("compact %s: %w", path, readOnly(err))
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return s.size, info.Size(), nil
}

// refuse is the reason not to rewrite s, if there is one.
func (s *source) refuse() error {
	switch {
	case s.layout != nil:
		return s.layout
	case s.found.sound():
		return nil
	}
	return fmt.Errorf("%w; informerd keeps what is sound when it next opens the file", cache.ErrCorrupt)
}
