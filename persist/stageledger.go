package persist

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// stageLedgerLocked writes the entries of a large Reset to the staging bucket, as stageLocked
// does with records: a million keys are not held twice in memory.
func (db *DB) stageLedgerLocked(c *ledgerChange, all []*ledgerChange) error {
	if !c.change.Reset || c.bytes() <= db.options.stageBytes || !c.alone(all) {
		return nil
	}
	m := &ledgerMeta{name: c.change.Name}
	err := db.writeUnder(c.vault, func(tx *bbolt.Tx) error {
		return deleteBucket(bucketAt(tx, rootBucket, stagingBucket), c.stagedName())
	})
	for next := 0; err == nil && next < len(c.order); {
		start, before := next, *m
		err = db.writeUnder(c.vault, func(tx *bbolt.Tx) error {
			next, *m = start, before // the transaction may be run again
			return c.stage(tx, m, &next, db.options.stageBytes)
		})
	}
	if err != nil {
		return fmt.Errorf("ledger %q: %w", c.change.Name, err)
	}
	c.staged = m
	return nil
}

func (c *ledgerChange) alone(all []*ledgerChange) bool {
	for _, other := range all {
		if other != c && bytes.Equal(other.name, c.name) {
			return false
		}
	}
	return true
}

// stagedName is that of no resource, whose names are text or, like this one, tokens.
func (c *ledgerChange) stagedName() []byte {
	if c.vault != nil {
		return c.name
	}
	return append([]byte{0xff}, c.name...)
}

// bytes is about how much the entries take.
func (c *ledgerChange) bytes() (n int) {
	for _, e := range c.change.Put {
		n += entrySizeHint + len(e.Key) + len(e.Value)
	}
	return n
}

// entrySizeHint is what an entry takes beside its key and value.
const entrySizeHint = element + sealSize

// stage writes entries from *next on, until they are limit bytes.
func (c *ledgerChange) stage(tx *bbolt.Tx, m *ledgerMeta, next *int, limit int) error {
	if *next > 0 && bucketAt(tx, rootBucket, stagingBucket, c.stagedName()) == nil {
		return errUnstaged // the parts before this one
	}
	entries, err := ensureBucket(tx, rootBucket, stagingBucket, c.stagedName(), entriesBucket)
	if err != nil {
		return err
	}
	entries.FillPercent = 1
	shelf := c.entries()
	for size := 0; *next < len(c.order) && size < limit; *next++ {
		i := c.order[*next]
		if err := c.put(entries, shelf, m, i); err != nil {
			return err
		}
		size += entrySizeHint + len(c.change.Put[i].Key) + len(c.change.Put[i].Value)
	}
	return nil
}

// unstage moves the staged entries to b, which has none.
func (c *ledgerChange) unstage(tx *bbolt.Tx, b *bbolt.Bucket) error {
	staging := bucketAt(tx, rootBucket, stagingBucket)
	if staging.Bucket(c.stagedName()) == nil {
		return errUnstaged
	}
	if err := staging.Bucket(c.stagedName()).MoveBucket(entriesBucket, b); err != nil {
		return err
	}
	return staging.DeleteBucket(c.stagedName())
}
