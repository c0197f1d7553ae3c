package persist

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"
)

// ledgerDamage is what was found damaged of the ledgers when the file was opened. The file
// that is in use may have nothing left of them, and a ledger that is not there would be
// taken for one that never was.
type ledgerDamage struct {
	mu sync.Mutex // guards all below; innermost
	// all is set if nobody knows which ledgers there were.
	all error
	// by bucket name; nil for one that was saved anew since.
	by map[string]error
}

func (d *ledgerDamage) found(s *structure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.ledgers != nil {
		d.all, d.by = s.ledgers, nil
	}
	for name, err := range s.ledgerParts {
		d.setLocked(name, err)
	}
}

func (d *ledgerDamage) setLocked(name string, err error) {
	if d.by == nil {
		d.by = make(map[string]error)
	}
	d.by[name] = err
}

// mended notes that a ledger was saved anew.
func (d *ledgerDamage) mended(name []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all != nil {
		d.setLocked(string(name), nil)
	} else {
		delete(d.by, string(name))
	}
}

// lose notes that there are, or were, ledgers whose names nobody knows.
func (d *ledgerDamage) lose(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all, d.by = err, nil // what was saved anew is lost, too
}

// take is for the file that another DB, which is closed, has written.
func (d *ledgerDamage) take(other *ledgerDamage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all, d.by = other.all, other.by
}

// damaged reports whether the ledger of a name is, in the file of a vault.
func (d *ledgerDamage) damaged(v *vault, name string) bool {
	d.mu.Lock()
	none := d.all == nil && len(d.by) == 0
	d.mu.Unlock()
	return !none && d.of(v.ledgerName(name)) != nil
}

// misplaced says that a ledger may lie under the name of another: names of buckets have no
// checksum.
func misplaced(tx *bbolt.Tx, v *vault, name []byte) (found error) {
	_ = forEachLedger(tx, func(stored []byte, b *bbolt.Bucket) error {
		if b.Get(metaKey) == nil {
			return nil // it was salvaged, and its name checked then
		}
		_, err := readLedgerMeta(v, stored, b)
		var other *otherLedgerError
		if err != nil && (v != nil || errors.As(err, &other) && other.name == string(name)) {
			found = fmt.Errorf("it may be in the bucket %s: %w", v.describeLedger(stored), err)
		}
		return nil
	})
	return found
}

// of is what is wrong with the ledger of a bucket; without one, with all of them.
func (d *ledgerDamage) of(name []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err, ok := d.by[string(name)]; ok && name != nil {
		return err
	}
	return d.all
}

// open returns the bucket of a ledger and what its meta says; errNoLedger if there is none.
func (d *ledgerDamage) open(tx *bbolt.Tx, v *vault, name []byte) (*bbolt.Bucket, *ledgerMeta, error) {
	if err := d.of(name); err != nil {
		return nil, nil, err
	}
	b := bucketAt(tx, rootBucket, ledgersBucket, name)
	if b == nil {
		return nil, nil, cmp.Or(misplaced(tx, v, name), errNoLedger)
	}
	m, err := readLedgerMeta(v, name, b)
	return b, m, err
}

// missingLedgers says that the bucket of ledgers is not where the version of the file says
// that there is one. The layout is known to be right.
func missingLedgers(tx *bbolt.Tx) error {
	root := tx.Bucket(rootBucket)
	version, err := decodeFormat(root.Get(formatKey))
	if err != nil || version < plainLedgersFormat || root.Bucket(ledgersBucket) != nil {
		return err
	}
	return fmt.Errorf("bucket %s is missing", ledgersBucket)
}
