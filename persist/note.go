package persist

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// Note makes changes of ledgers durable without waiting for a Commit that is under way: see
// cache.Snapshots. Values belong to the DB afterwards. What is large, or cannot be noted now,
// is committed. Its errors are those of Commit.
func (db *DB) Note(ledgers []cache.LedgerChange) error {
	if len(ledgers) == 0 {
		return nil
	}
	for i := range ledgers {
		if err := checkLedgerChange(&ledgers[i]); err != nil {
			return fmt.Errorf("note changes of ledgers: ledger %q: %w", ledgers[i].Name, err)
		}
	}
	// Of a damaged one the transaction says what is to be done.
	if db.anyDamaged(ledgers) || !db.journal.note(ledgers) {
		return db.Commit(nil, ledgers)
	}
	return nil
}

// anyDamaged reports whether one of the ledgers was found damaged.
func (db *DB) anyDamaged(ledgers []cache.LedgerChange) bool {
	if db.ledgers.none() {
		return false
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	return slices.ContainsFunc(ledgers, func(c cache.LedgerChange) bool {
		return db.ledgers.of(db.vault.ledgerName(c.Name)) != nil
	})
}

// flush enters what was noted into the file, for those who read it there.
func (db *DB) flush() error {
	if db.journal.empty() {
		return nil
	}
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	if db.replaced {
		return ErrReplaced // the next Commit says so, too
	}
	return db.commitLocked(nil, nil)
}

// takeJournal enters what the journal of the file that was just opened holds. The caller holds
// mu, or has db to itself.
func (db *DB) takeJournal(b *bbolt.DB) error {
	m, damage := markOf(b)
	if damage == nil && db.journal.is(m) {
		return nil // the file was opened again, and its journal goes on
	}
	var found notes
	var files int
	if damage == nil {
		found, files, damage = readJournal(db.options.Path, m, db.vault)
	}
	if damage != nil {
		db.options.Log.Warn("all ledgers dropped, their journal is damaged", "path", db.options.Path, "err", damage)
		if err := db.loseLedgers(b, damage); err != nil {
			return err
		}
	} else if err := db.enter(b, found); err != nil {
		return err
	}
	if files > 0 && damage == nil {
		db.options.Log.Info("what was noted of ledgers is in the snapshot file", "path", db.options.Path, "ledgers", len(found))
	}
	if damage != nil {
		m = journalMark{}
	}
	m.next += uint64(files) // a number is never used again
	if numbers, _ := journalNumbers(db.options.Path); len(numbers) > 0 && numbers[len(numbers)-1] >= m.next {
		db.options.Log.Warn("there is a journal that is not that of the snapshot file, removed: what handlers noted in it is delivered again",
			"path", db.options.Path)
	}
	if files > 0 || damage != nil {
		if err := update(b, func(tx *bbolt.Tx) error { return putMark(tx, m) }); err != nil {
			return err
		}
	}
	return db.journal.begin(m)
}

// markOf is what the file says of its journal; zero if it has none.
func markOf(b *bbolt.DB) (m journalMark, err error) {
	err = view(b, func(tx *bbolt.Tx) (err error) {
		m, err = readMark(tx)
		return err
	})
	return m, err
}

func readMark(tx *bbolt.Tx) (journalMark, error) {
	value := tx.Bucket(rootBucket).Get(journalKey)
	if value == nil {
		return journalMark{}, nil
	}
	return decodeMark(value)
}

func putMark(tx *bbolt.Tx, m journalMark) error {
	if m.id == ([journalIDSize]byte{}) {
		return tx.Bucket(rootBucket).Delete(journalKey)
	}
	return tx.Bucket(rootBucket).Put(journalKey, m.encode())
}

// enter changes the ledgers as was noted, each by itself: one that is damaged stays so.
func (db *DB) enter(b *bbolt.DB, found notes) error {
	all, err := newLedgerChanges(found.changes(), db.vault)
	if err != nil {
		return err
	}
	for _, c := range all {
		err := update(b, func(tx *bbolt.Tx) error { return db.applyLedgers(tx, []*ledgerChange{c}) })
		switch {
		case errors.Is(err, cache.ErrCorrupt):
			db.options.Log.Warn("what was noted of a ledger is lost, the ledger is damaged", "ledger", c.change.Name, "err", err)
		case err != nil:
			return err
		case c.change.Reset:
			db.ledgers.mended(c.name)
		}
	}
	return nil
}

// loseLedgers makes every ledger a damaged one, in the file, too.
func (db *DB) loseLedgers(b *bbolt.DB, cause error) error {
	db.ledgers.lose(cause)
	return update(b, func(tx *bbolt.Tx) error {
		var names [][]byte
		err := forEachLedger(tx, func(stored []byte, _ *bbolt.Bucket) error {
			names = append(names, append([]byte(nil), stored...))
			return nil
		})
		for _, name := range names {
			if err == nil {
				err = deleteBucket(bucketAt(tx, rootBucket, ledgersBucket), name)
			}
			if err == nil {
				_, err = ensureBucket(tx, rootBucket, ledgersBucket, name)
			}
		}
		return err
	})
}
