package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// What becomes of a file that is not encrypted as the keys at hand would have it.
// docs/FORMAT.md has all cases in one table. A snapshot is a hint: where it cannot be
// read, or must not be believed, everything starts cold.

// vaultOf unlocks a file. Its error is ErrKey or ErrPlain for one that is encrypted
// otherwise than k has it.
func (k *Keyring) vaultOf(l *lock) (*vault, error) {
	switch {
	case l != nil:
		return k.unlock(*l)
	case k != nil:
		return nil, ErrPlain
	}
	return nil, nil
}

// unlock makes the vault of an opened file that of db. The caller holds mu.
func (db *DB) unlock(l *lock) error {
	v, err := db.options.Keys.vaultOf(l)
	if err == nil && !v.sameAs(db.vault) {
		db.vault = v
	}
	return err
}

// begin lays out an empty file, with a data key of its own. The caller holds mu.
func (db *DB) begin(b *bbolt.DB) error {
	db.vault = nil
	var l *lock
	if keys := db.options.Keys; keys != nil {
		v, err := newVault(keys.first())
		if err != nil {
			return fmt.Errorf("make a data key: %w", err)
		}
		db.vault, l = v, &v.lock
	}
	db.exchanged = true
	return update(b, func(tx *bbolt.Tx) error { return layOut(tx, l) })
}

// lockOut clears the path of a file that is not encrypted as the keys have it.
func (db *DB) lockOut(cause error) error {
	path, aside := db.options.Path, db.options.Path+EncryptedSuffix
	if errors.Is(cause, ErrPlain) {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove the snapshot that is not encrypted: %w", err)
		}
		db.options.Log.Error("snapshot file is not encrypted as the configuration demands, removed, starting cold", "path", path)
	}
	if db.unlocks(aside) {
		// The key file was put right. What was written meanwhile, with a wrong one,
		// is of no use to anybody.
		if err := moveWithJournal(aside, path); err != nil {
			return fmt.Errorf("put the snapshot back in its place: %w", err)
		}
		db.options.Log.Info("snapshot file can be decrypted again, and is back in its place", "path", path, "aside", aside)
		return db.makeSound()
	}
	if errors.Is(cause, ErrPlain) {
		return nil
	}
	if err := moveWithJournal(path, aside); err != nil {
		return fmt.Errorf("move encrypted file aside: %w", err)
	}
	db.options.Log.Error("snapshot file cannot be decrypted, moved aside, starting cold", "path", path, "aside", aside, "err", cause)
	return nil
}

// completeLockOut puts a journal back whose file was not moved aside after it: the process ended
// in between, and the key is there now.
func (db *DB) completeLockOut() error {
	aside := db.options.Path + EncryptedSuffix
	if _, err := os.Lstat(aside); !errors.Is(err, os.ErrNotExist) {
		return nil //nolint:nilerr // what lies there is of that file
	}
	return moveJournal(aside, db.options.Path)
}

// unlocks reports whether the file at path is an encrypted one that a key is at hand for.
func (db *DB) unlocks(path string) bool {
	o := db.options
	o.Path = path
	s, err := openSource(o)
	if err != nil {
		return false
	}
	defer s.Close()
	if s.layout != nil || s.found.whole != nil || s.lock == nil {
		return false
	}
	_, err = o.Keys.vaultOf(s.lock)
	return err == nil
}

// rotated reports whether s is to be encrypted with another key.
func (db *DB) rotated(s *source) bool {
	return s.vault != nil && s.lock.key != db.options.Keys.first().name
}

// encryptAnew puts a new file in the place of s that holds the same and has a data key
// of its own, which the first key locks. A failure costs nothing but that the old key
// is still needed: the next Open tries again.
func (db *DB) encryptAnew(s *source) error {
	log, path, key := db.options.Log, db.options.Path, db.options.Keys.first().name
	o := db.options
	o.Path, o.NoSync, o.noJournal = path+newSuffix, true, true // synced once, at the end
	next, err := Open(o)
	if err == nil {
		err = next.takeAll(&DB{options: db.options, bolt: s.bolt, vault: s.vault, damaged: make(map[string]error)})
		if err == nil && !db.options.NoSync {
			err = next.bolt.Sync()
		}
		err = errors.Join(err, next.Close())
		db.ledgers.take(&next.ledgers)
	}
	if err == nil {
		err = rename(o.Path, path)
	}
	if err != nil {
		_ = os.Remove(o.Path)
		log.Error("snapshot file not encrypted with the new key, the old one is still needed", "path", path, "key", s.lock.key, "err", err)
		return nil
	}
	log.Info("snapshot file encrypted with another key", "path", path, "key", key, "before", s.lock.key)
	return db.removeAside()
}

// takeAll saves all that another DB holds and can be read of it.
func (db *DB) takeAll(from *DB) error {
	all, err := from.Saved()
	if err != nil {
		return err
	}
	for _, saved := range all {
		batch := cache.Batch{Saved: saved, Reset: true}
		_, err := from.Load(saved.Spec.Resource, func(rec cache.Record) error {
			batch.Put = append(batch.Put, rec)
			return nil
		})
		if errors.Is(err, cache.ErrCorrupt) {
			from.options.Log.Warn("snapshot dropped, it is damaged", "gvr", saved.Spec.Resource, "err", err)
			continue
		}
		if err == nil {
			err = db.Commit([]cache.Batch{batch}, nil)
		}
		if err != nil {
			return err
		}
	}
	if err := db.takeLedgers(from); err != nil {
		return err
	}
	if err := db.takeNotes(from); err != nil {
		return err
	}
	documents, err := from.Documents()
	for _, d := range documents {
		if err == nil {
			err = db.SaveDocument(d, nil)
		}
	}
	return err
}

// takeNotes enters what the journal of another DB holds, which is encrypted as that is.
func (db *DB) takeNotes(from *DB) error {
	noted, err := (&source{bolt: from.bolt}).noted(from.options.Path, from.vault)
	if err != nil {
		from.options.Log.Warn("all ledgers dropped, their journal is damaged", "path", from.options.Path, "err", err)
		return db.loseLedgers(db.bolt, err)
	}
	return db.enter(db.bolt, noted)
}

// takeLedgers saves all that another DB has. One that is damaged there is so here, too.
func (db *DB) takeLedgers(from *DB) error {
	var names []string
	err := from.view(func(tx *bbolt.Tx) error {
		return forEachLedger(tx, func(stored []byte, b *bbolt.Bucket) error {
			m, err := readLedgerMeta(from.vault, stored, b)
			if err != nil {
				from.options.Log.Warn("ledger dropped, it is damaged", "ledger", from.vault.describeLedger(stored), "err", err)
				db.ledgers.lose(err) // nobody knows its name
				return nil
			}
			names = append(names, m.name)
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		change := cache.LedgerChange{Name: name, Reset: true}
		err := from.Ledger(name, func(e cache.LedgerEntry) error {
			change.Put = append(change.Put, e)
			return nil
		})
		switch {
		case errors.Is(err, cache.ErrCorrupt):
			from.options.Log.Warn("ledger dropped, it is damaged", "ledger", name, "err", err)
			err = db.markLedgerDamaged(name)
		case err == nil:
			err = db.Commit(nil, []cache.LedgerChange{change})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removePlainAside removes what was moved aside before there were keys.
func (db *DB) removePlainAside() error {
	_, err := db.removePlain(db.options.Path + DamagedSuffix)
	return err
}

// removePlain removes the file at path if there are keys, and it is, or was before it
// was damaged, a snapshot that is not encrypted.
func (db *DB) removePlain(path string) (removed bool, err error) {
	if db.options.Keys == nil {
		return false, nil
	}
	plain, err := holdsPlain(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !plain {
		return false, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return false, fmt.Errorf("remove what is not encrypted: %w", err)
	}
	db.options.Log.Error("damaged snapshot file is not encrypted as the configuration demands, removed", "path", path)
	return true, nil
}

// holdsPlain reports whether the format of a snapshot that is not encrypted is somewhere
// in the file: nothing else is to be relied on in a damaged one.
func holdsPlain(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	formats := [][]byte{encodeFormat(plainFormat), encodeFormat(plainLedgersFormat)}
	b := make([]byte, 1<<20)
	kept := 0 // of the bytes before, in which it may begin
	for {
		n, err := io.ReadFull(file, b[kept:])
		for _, format := range formats {
			if bytes.Contains(b[:kept+n], format) {
				return true, nil
			}
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return false, nil
		case err != nil:
			return false, err
		}
		kept = copy(b, b[len(b)-len(formats[0])+1:])
	}
}
