package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// A ledger is a bucket of entries with a meta beside it that says how many there are and
// what the sum of their checksums is, so that a lost entry is noticed as a lost record of a
// resource is. A ledger without a meta is a damaged one: a file that was salvaged has such
// in the place of those that could not be.

// Bounds of what LedgerChange may name.
const (
	maxLedgerName = 63
	maxLedgerKey  = 16 << 10
)

var (
	_ cache.Ledgers = (*DB)(nil)

	errNoLedger = errors.New("no such ledger")
)

// Ledgers are the names of those that the file has, damaged ones included whose names can
// still be read.
func (db *DB) Ledgers() ([]string, error) {
	noted := db.journal.ledgers() // before what is committed is looked at
	var names []string
	err := db.view(func(tx *bbolt.Tx) error {
		if db.options.ReadOnly && db.ledgers.of(nil) != nil {
			return nil // their bucket cannot be read
		}
		return forEachLedger(tx, func(stored []byte, b *bbolt.Bucket) error {
			name := string(stored)
			if db.vault != nil {
				if db.ledgers.of(stored) != nil {
					return nil
				}
				m, err := readLedgerMeta(db.vault, stored, b)
				if err != nil {
					return nil //nolint:nilerr // nobody can tell its name
				}
				name = m.name
			}
			names = append(names, name)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list ledgers: %w", public(err))
	}
	names = slices.DeleteFunc(names, func(n string) bool { _, ok := noted[n]; return ok })
	for name, there := range noted {
		if there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Ledger reads one; see cache.Ledgers. A read transaction is open while yield runs, so
// yield must not call the DB. An error of yield ends the reading and is returned as it is.
func (db *DB) Ledger(name string, yield func(cache.LedgerEntry) error) error {
	if err := checkLedgerName(name); err != nil {
		return err
	}
	if err := db.flush(name); err != nil {
		return fmt.Errorf("ledger %q: %w", name, err)
	}
	var stopped error // what yield returned
	var yielding bool
	err := db.view(func(tx *bbolt.Tx) error {
		stored := db.vault.ledgerName(name)
		b, m, err := db.ledgers.open(tx, db.vault, stored)
		if err != nil {
			return err
		}
		return m.read(db.vault.shelf(kindEntry, stored), b, func(e cache.LedgerEntry) error {
			yielding = true
			stopped = yield(e)
			yielding = false
			return stopped
		})
	})
	switch {
	case yielding:
		panic(err) // yield's own panic is not damage of the file
	case err == nil, errors.Is(err, errNoLedger):
		return nil
	case stopped != nil:
		return stopped
	case errors.Is(err, ErrClosed), errors.Is(err, ErrReplaced):
		return fmt.Errorf("ledger %q: %w", name, err)
	}
	return corruptLedger(name, err)
}

// corruptLedger makes err a cache.ErrCorrupt that names what is damaged.
func corruptLedger(name string, err error) error {
	return fmt.Errorf("ledger %q: %w: %w", name, cache.ErrCorrupt, err)
}

func checkLedgerName(name string) error {
	if name == "" || len(name) > maxLedgerName {
		return fmt.Errorf("name of a ledger has %d bytes, want 1 to %d", len(name), maxLedgerName)
	}
	return nil
}

// ledgerName is the name of a ledger's bucket in the file.
func (v *vault) ledgerName(name string) []byte {
	if v == nil {
		return []byte(name)
	}
	return v.token(nil, []byte{kindLedger}, []byte(name))
}

// describeLedger names the bucket of one for people, as well as it can.
func (v *vault) describeLedger(stored []byte) string {
	if v != nil {
		return fmt.Sprintf("encrypted %x", stored)
	}
	return fmt.Sprintf("%q", stored)
}

func forEachLedger(tx *bbolt.Tx, fn func(stored []byte, b *bbolt.Bucket) error) error {
	ledgers := bucketAt(tx, rootBucket, ledgersBucket)
	if ledgers == nil {
		return nil
	}
	return ledgers.ForEachBucket(func(stored []byte) error {
		return fn(stored, ledgers.Bucket(stored))
	})
}

// ledgerMeta is what the meta of a ledger says: its name, and the count and sum of the
// entries that were committed with it.
type ledgerMeta struct {
	name    string
	entries uint64
	sum     uint64
}

func (m *ledgerMeta) encode() []byte {
	b := appendString(make([]byte, sealSize), m.name)
	b = binary.AppendUvarint(b, m.entries)
	b = binary.LittleEndian.AppendUint64(b, m.sum)
	seal(metaKey, b, ledgerVersion)
	return b
}

func decodeLedgerMeta(key, value []byte) (*ledgerMeta, error) {
	body, err := unseal(key, value, ledgerVersion)
	if err != nil {
		return nil, err
	}
	r := reader{b: body}
	m := &ledgerMeta{name: string(r.bytes()), entries: r.uvarint()}
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.b) < 8:
		return nil, errShort
	case len(r.b) > 8:
		return nil, errTrailing
	}
	m.sum = binary.LittleEndian.Uint64(r.b)
	return m, nil
}

func readLedgerMeta(v *vault, stored []byte, b *bbolt.Bucket) (*ledgerMeta, error) {
	value := b.Get(metaKey)
	if value == nil {
		return nil, errors.New("meta is missing")
	}
	key, value, err := v.shelf(kindLedgerMeta, stored).open(metaKey, value)
	if err != nil {
		return nil, fmt.Errorf("meta: %w", err)
	}
	m, err := decodeLedgerMeta(key, value)
	if err != nil {
		return nil, fmt.Errorf("meta: %w", err)
	}
	if !bytes.Equal(v.ledgerName(m.name), stored) {
		return nil, &otherLedgerError{m.name}
	}
	return m, nil
}

// otherLedgerError says that the meta in the bucket of a ledger is of another.
type otherLedgerError struct{ name string }

func (e *otherLedgerError) Error() string { return fmt.Sprintf("meta is that of ledger %q", e.name) }

// read yields every entry, in the order of their keys.
func (m *ledgerMeta) read(s *shelf, b *bbolt.Bucket, yield func(cache.LedgerEntry) error) error {
	if !s.hidden {
		return m.each(s, b, yield)
	}
	// They lie in the order of their tokens, which is none.
	var all []cache.LedgerEntry
	err := m.each(s, b, func(e cache.LedgerEntry) error {
		all = append(all, e)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b cache.LedgerEntry) int { return bytes.Compare(a.Key, b.Key) })
	for _, e := range all {
		if err := yield(e); err != nil {
			return err
		}
	}
	return nil
}

// each yields every entry and then checks that none is missing, too many, or of another
// commit.
func (m *ledgerMeta) each(s *shelf, b *bbolt.Bucket, yield func(cache.LedgerEntry) error) error {
	var count, sum uint64
	err := forEachEntry(b, func(stored, sealed []byte) error {
		e, err := decodeEntry(s, stored, sealed)
		if err != nil {
			return fmt.Errorf("entry %q: %w", stored, err)
		}
		count++
		sum ^= s.sum(sealed)
		return yield(e)
	})
	if err != nil {
		return err
	}
	return m.complete(count, sum)
}

func (m *ledgerMeta) complete(count, sum uint64) error {
	if count != m.entries {
		return fmt.Errorf("%d entries, %d were saved", count, m.entries)
	}
	if sum != m.sum {
		return fmt.Errorf("checksum of all entries is %08x, %08x was saved", sum, m.sum)
	}
	return nil
}

func forEachEntry(b *bbolt.Bucket, fn func(stored, sealed []byte) error) error {
	entries := b.Bucket(entriesBucket)
	if entries == nil {
		return nil
	}
	return entries.ForEach(func(stored, sealed []byte) error {
		if sealed == nil {
			return errors.New("a bucket among the entries")
		}
		return fn(stored, sealed)
	})
}

func encodeEntry(e *cache.LedgerEntry) []byte {
	b := append(make([]byte, sealSize, sealSize+len(e.Value)), e.Value...)
	seal(e.Key, b, entryVersion)
	return b
}

// decodeEntry returns an entry that shares nothing with the file.
func decodeEntry(s *shelf, stored, sealed []byte) (cache.LedgerEntry, error) {
	key, value, err := s.open(stored, sealed)
	if err != nil {
		return cache.LedgerEntry{}, err
	}
	body, err := unseal(key, value, entryVersion)
	if err != nil {
		return cache.LedgerEntry{}, err
	}
	slab := make([]byte, 0, len(key)+len(body))
	slab = append(append(slab, key...), body...)
	return cache.LedgerEntry{Key: slab[:len(key):len(key)], Value: slab[len(key):]}, nil
}
