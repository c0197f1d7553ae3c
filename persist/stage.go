package persist

import (
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// A transaction of bbolt lies in memory twice before it is written: the first
// sync of 200,000 objects would take half a gigabyte at the very moment memory
// is dearest. So the records of a large Reset are first written to the staging
// bucket, in transactions of bounded size, and the one transaction that counts
// only moves that bucket to its place. What a crash leaves in the staging
// bucket is removed at Open.

// partsOfOne says how large a part of a Reset is: a fourth of what may be one transaction. The
// commit of one keeps a processor until it is done, and an event would wait for it.
const partsOfOne = 4

// stageLocked writes the records of c to the staging bucket.
func (db *DB) stageLocked(c *change) error {
	m := new(meta)
	err := db.writeUnder(c.vault, func(tx *bbolt.Tx) error {
		return deleteBucket(bucketAt(tx, rootBucket, stagingBucket), c.name)
	})
	for next := 0; err == nil && next < len(c.order); {
		start, before, began := next, *m, time.Now()
		err = db.writeUnder(c.vault, func(tx *bbolt.Tx) error {
			next, *m = start, before // the transaction may be run again
			return c.stage(tx, m, &next, db.options.stageBytes/partsOfOne)
		})
		if next < len(c.order) { // other commits wait, notes of ledgers do not
			db.options.Pause(time.Since(began))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.resource(), err)
	}
	c.staged = m
	return nil
}

// stage writes records from *next on, until they are limit bytes.
func (c *change) stage(tx *bbolt.Tx, m *meta, next *int, limit int) error {
	if *next > 0 && bucketAt(tx, rootBucket, stagingBucket, c.name) == nil {
		return errUnstaged // the parts before this one
	}
	objects, err := ensureBucket(tx, rootBucket, stagingBucket, c.name, objectsBucket)
	if err != nil {
		return err
	}
	objects.FillPercent = 1
	c.values.reset()
	w := objectWriter{bucket: objects, shelf: c.objects(), meta: m, indexes: newIndexTable(m.Indexes), values: c.values, fresh: true}
	var others cache.Yielder
	for size := 0; *next < len(c.order) && size < limit; *next++ {
		i := c.order[*next]
		rec := c.batch.RecordIn(i, &w.terms)
		if err := w.put(&rec, c.token(i)); err != nil {
			return err
		}
		size += recordSizeHint(&rec)
		others.Yield()
	}
	m.Indexes = w.indexes.names
	return nil
}

// clearStaging removes what a crash left behind.
func clearStaging(b *bbolt.DB) error {
	empty := true
	err := view(b, func(tx *bbolt.Tx) error {
		k, _ := bucketAt(tx, rootBucket, stagingBucket).Cursor().First()
		empty = k == nil
		return nil
	})
	if err != nil || empty {
		return err
	}
	return update(b, func(tx *bbolt.Tx) error {
		root := tx.Bucket(rootBucket)
		if err := root.DeleteBucket(stagingBucket); err != nil {
			return err
		}
		_, err := root.CreateBucket(stagingBucket)
		return err
	})
}
