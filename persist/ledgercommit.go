package persist

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// ledgerChange is what is to be saved of one ledger, on its way to disk.
type ledgerChange struct {
	change *cache.LedgerChange
	vault  *vault   // of the file it is for
	name   []byte   // of the ledger's bucket
	keys   [][]byte // under which change.Put are stored
	order  []int    // indexes into change.Put, as they are stored
	// staged is set when the entries already lie in the staging bucket.
	staged *ledgerMeta
}

func newLedgerChanges(changes []cache.LedgerChange, v *vault) ([]*ledgerChange, error) {
	all := make([]*ledgerChange, len(changes))
	for i := range changes {
		c, err := newLedgerChange(&changes[i], v)
		if err != nil {
			return nil, fmt.Errorf("ledger %q: %w", changes[i].Name, err)
		}
		all[i] = c
	}
	return all, nil
}

func newLedgerChange(change *cache.LedgerChange, v *vault) (*ledgerChange, error) {
	if err := checkLedgerChange(change); err != nil {
		return nil, err
	}
	c := &ledgerChange{change: change, vault: v, name: v.ledgerName(change.Name)}
	c.keys, c.order = make([][]byte, len(change.Put)), make([]int, len(change.Put))
	shelf := c.entries()
	for i, e := range change.Put {
		c.keys[i], c.order[i] = shelf.stored(e.Key), i
	}
	// bbolt inserts in key order much faster than in any other. Of two entries under one
	// key the last counts.
	slices.SortStableFunc(c.order, func(i, j int) int { return bytes.Compare(c.keys[i], c.keys[j]) })
	return c, nil
}

func checkLedgerChange(change *cache.LedgerChange) error {
	err := checkLedgerName(change.Name)
	for _, key := range change.Delete {
		if err == nil {
			err = checkLedgerKey(key)
		}
	}
	for _, e := range change.Put {
		if err == nil {
			err = checkLedgerKey(e.Key)
		}
	}
	return err
}

func checkLedgerKey(key []byte) error {
	if len(key) == 0 || len(key) > maxLedgerKey {
		return fmt.Errorf("key has %d bytes, want 1 to %d", len(key), maxLedgerKey)
	}
	return nil
}

// entries is the shelf of the entries.
func (c *ledgerChange) entries() *shelf { return c.vault.shelf(kindEntry, c.name) }

// applyLedgers changes ledgers, and the version of the file with the first and the last.
func (db *DB) applyLedgers(tx *bbolt.Tx, changes []*ledgerChange) error {
	if len(changes) == 0 {
		return nil
	}
	for _, c := range changes {
		if err := c.apply(tx, &db.ledgers); err != nil {
			return fmt.Errorf("ledger %q: %w", c.change.Name, err)
		}
		if c.change.Erase {
			if err := markErase(tx); err != nil {
				return err
			}
		}
	}
	root := tx.Bucket(rootBucket)
	some := false
	if ledgers := root.Bucket(ledgersBucket); ledgers != nil {
		first, _ := ledgers.Cursor().First()
		some = first != nil
	}
	if !some {
		if err := deleteBucket(root, ledgersBucket); err != nil {
			return err
		}
	}
	return putFormat(root, formatOf(db.vault != nil, some))
}

func (c *ledgerChange) apply(tx *bbolt.Tx, damage *ledgerDamage) error {
	ledgers, err := ensureBucket(tx, rootBucket, ledgersBucket)
	if err != nil {
		return err
	}
	m, err := c.begin(tx, ledgers, damage)
	if err != nil || c.change.Reset && len(c.change.Put) == 0 {
		return err
	}
	b, err := ledgers.CreateBucketIfNotExists(c.name)
	if err != nil {
		return err
	}
	if c.staged != nil {
		*m = *c.staged // a copy: the transaction may be run again
		err = c.unstage(tx, b)
	} else {
		err = c.write(b, m)
	}
	if err != nil {
		return err
	}
	return c.vault.shelf(kindLedgerMeta, c.name).put(b, metaKey, m.encode())
}

// begin returns what was saved of the entries that the change is added to.
func (c *ledgerChange) begin(tx *bbolt.Tx, ledgers *bbolt.Bucket, damage *ledgerDamage) (*ledgerMeta, error) {
	if c.change.Reset {
		return &ledgerMeta{name: c.change.Name}, deleteBucket(ledgers, c.name)
	}
	_, m, err := damage.open(tx, c.vault, c.name)
	switch {
	case errors.Is(err, errNoLedger):
		return &ledgerMeta{name: c.change.Name}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", cache.ErrCorrupt, err)
	}
	return m, nil
}

// write deletes and puts, and keeps count and sum of what is there.
func (c *ledgerChange) write(b *bbolt.Bucket, m *ledgerMeta) error {
	entries, err := b.CreateBucketIfNotExists(entriesBucket)
	if err != nil {
		return err
	}
	shelf := c.entries()
	if c.change.Reset {
		entries.FillPercent = 1 // in key order nothing comes between any more
	} else {
		for _, key := range c.change.Delete {
			stored := shelf.stored(key)
			m.forget(shelf, entries.Get(stored))
			if err := entries.Delete(stored); err != nil {
				return err
			}
		}
	}
	for _, i := range c.order {
		if err := c.put(entries, shelf, m, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *ledgerChange) put(entries *bbolt.Bucket, s *shelf, m *ledgerMeta, i int) error {
	e, stored := &c.change.Put[i], c.keys[i]
	m.forget(s, entries.Get(stored))
	sealed, err := s.seal(stored, e.Key, encodeEntry(e))
	if err != nil {
		return err
	}
	m.entries++
	m.sum ^= s.sum(sealed)
	return entries.Put(stored, sealed)
}

// forget takes what lies under a key out of count and sum.
func (m *ledgerMeta) forget(s *shelf, sealed []byte) {
	if sealed != nil {
		m.entries--
		m.sum ^= s.sum(sealed)
	}
}

// markLedgerDamaged leaves an empty bucket in the place of a ledger.
func (db *DB) markLedgerDamaged(name string) error {
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	return db.writeLocked(func(tx *bbolt.Tx) error {
		if _, err := ensureBucket(tx, rootBucket, ledgersBucket, db.vault.ledgerName(name)); err != nil {
			return err
		}
		return putFormat(tx.Bucket(rootBucket), formatOf(db.vault != nil, true))
	})
}
