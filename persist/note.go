package persist

import (
	"bytes"
	"errors"
	"fmt"

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
	if !db.journal.note(ledgers, db.ledgers.damaged) {
		return db.Commit(nil, ledgers)
	}
	return nil
}

// flush enters what was noted of a ledger into the file, for those who read it there.
func (db *DB) flush(ledger string) error {
	if !db.journal.holds(ledger) {
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
	m, err := markOf(b)
	if err == nil && db.journal.is(m) {
		return nil // the file was opened again, and its journal goes on
	}
	if db.journal.begun() { // in another file, or in this one before it was put back
		db.exchanged = true
	}
	var found notes
	var files int
	if err == nil {
		found, files, err = readJournal(db.options.Path, m, db.vault)
	}
	switch {
	case err != nil:
		db.options.Log.Warn("all ledgers dropped, their journal is damaged", "path", db.options.Path, "err", err)
		if err := db.loseLedgers(b, err); err != nil {
			return err
		}
	case files > 0:
		if err := db.enter(b, found); err != nil {
			return err
		}
		db.options.Log.Info("what was noted of ledgers is in the snapshot file", "path", db.options.Path, "ledgers", len(found))
	}
	return db.journal.begin()
}

// markOf is what the file says of its journal; zero if it has none.
func markOf(b *bbolt.DB) (m journalMark, err error) {
	err = view(b, func(tx *bbolt.Tx) (err error) {
		if value := tx.Bucket(rootBucket).Get(journalKey); value != nil {
			m, err = decodeMark(value)
		}
		return err
	})
	return m, err
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

// loseLedgers makes every ledger a damaged one, in the file, too, which has no journal then. Of
// one that is only in the journal nobody knows after the next start that it ever was.
func (db *DB) loseLedgers(b *bbolt.DB, cause error) error {
	db.ledgers.lose(cause)
	return update(b, func(tx *bbolt.Tx) error {
		var names [][]byte
		err := forEachLedger(tx, func(stored []byte, _ *bbolt.Bucket) error {
			names = append(names, bytes.Clone(stored))
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
		return errors.Join(err, tx.Bucket(rootBucket).Delete(journalKey))
	})
}
