package persist

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// Names of buckets and keys; docs/FORMAT.md draws how they lie in each other.
var (
	rootBucket         = []byte("informerd")
	formatKey          = []byte("format")
	encryptionKey      = []byte("encryption")
	resourcesBucket    = []byte("resources")
	stagingBucket      = []byte("staging")
	metaKey            = []byte("meta")
	dictionariesBucket = []byte("dictionaries")
	objectsBucket      = []byte("objects")
	documentsBucket    = []byte("documents")
	ledgersBucket      = []byte("ledgers")
	entriesBucket      = []byte("entries")
)

// bucketAt follows names from the root; nil if one is missing.
func bucketAt(tx *bbolt.Tx, names ...[]byte) *bbolt.Bucket {
	b := tx.Bucket(names[0])
	for _, name := range names[1:] {
		if b == nil {
			return nil
		}
		b = b.Bucket(name)
	}
	return b
}

// ensureBucket is bucketAt for writing: it makes what is missing.
func ensureBucket(tx *bbolt.Tx, names ...[]byte) (*bbolt.Bucket, error) {
	b, err := tx.CreateBucketIfNotExists(names[0])
	for _, name := range names[1:] {
		if err != nil {
			return nil, err
		}
		b, err = b.CreateBucketIfNotExists(name)
	}
	return b, err
}

// deleteBucket removes a bucket that may be missing.
func deleteBucket(parent *bbolt.Bucket, name []byte) error {
	if parent == nil || parent.Bucket(name) == nil {
		return nil
	}
	return parent.DeleteBucket(name)
}

// layOut writes the buckets of an empty file, and its lock if it is to be encrypted.
func layOut(tx *bbolt.Tx, l *lock) error {
	b, err := ensureBucket(tx, rootBucket)
	if err != nil {
		return err
	}
	for _, name := range [][]byte{resourcesBucket, stagingBucket} {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if l != nil {
		if err := b.Put(encryptionKey, encodeLock(*l)); err != nil {
			return err
		}
	}
	return putFormat(b, formatOf(l != nil, false))
}

// putFormat makes version that of the file whose root bucket is given.
func putFormat(root *bbolt.Bucket, version uint32) error {
	value := encodeFormat(version)
	if bytes.Equal(root.Get(formatKey), value) {
		return nil
	}
	return root.Put(formatKey, value)
}

// checkLayout says whose file this is: nil for one that can be used, ErrForeign,
// ErrNewerFormat, or errDamaged. The lock is nil if the file is not encrypted.
func checkLayout(tx *bbolt.Tx) (*lock, error) {
	if tx.Bucket(rootBucket) == nil && !anyFormat(tx) {
		return nil, ErrForeign
	}
	b := tx.Bucket(rootBucket)
	if b == nil {
		return nil, fmt.Errorf("%w: bucket %s is missing", errDamaged, rootBucket)
	}
	version, err := decodeFormat(b.Get(formatKey))
	if err != nil {
		return nil, fmt.Errorf("%w: format version: %w", errDamaged, err)
	}
	if version > formatVersion {
		return nil, fmt.Errorf("%w: format version %d, this one knows %d", ErrNewerFormat, version, formatVersion)
	}
	if b.Bucket(resourcesBucket) == nil || b.Bucket(stagingBucket) == nil {
		return nil, fmt.Errorf("%w: a bucket is missing", errDamaged)
	}
	if !encrypted(version) {
		return nil, nil
	}
	l, err := decodeLock(b.Get(encryptionKey))
	if err != nil {
		return nil, fmt.Errorf("%w: lock of the data key: %w", errDamaged, err)
	}
	return &l, nil
}

var errFound = errors.New("found")

// anyFormat looks for our format under any name, so that one flipped bit in the
// bucket's name does not make the file another program's.
func anyFormat(tx *bbolt.Tx) bool {
	err := tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
		if b == nil {
			return nil
		}
		if _, err := decodeFormat(b.Get(formatKey)); err == nil {
			return errFound
		}
		return nil
	})
	return err != nil
}
