package persist

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// bbolt writes what changed to other pages and leaves the old ones as they are until
// they are needed again. What a rule takes away would so stay readable in the file, in
// records and in the dictionaries that were trained on them. Whoever commits under
// such a rule therefore marks the file, in the same transaction, and a marked file is
// rewritten: at the next Sweep, or at the next Open, if the process ended before.
//
// The mark is a key beside the buckets, of which copies know nothing: a file that was
// rewritten has none.

// eraseKey is the mark. Its value says nothing.
var eraseKey = []byte("erase")

// markErase marks the file in the transaction that takes something away.
func markErase(tx *bbolt.Tx) error {
	return tx.Bucket(rootBucket).Put(eraseKey, []byte{1})
}

// marked reports whether there is something to erase.
func marked(tx *bbolt.Tx) bool {
	b := tx.Bucket(rootBucket)
	return b != nil && b.Get(eraseKey) != nil
}

// takesAway reports whether what is saved under before may hold what after leaves
// out. A rule that leaves out less is not told from one that leaves out more: both are
// rare.
func takesAway(before, after *cache.Spec) bool {
	return !before.SameSelection(*after) ||
		!slices.Equal(before.Drop, after.Drop) || !slices.Equal(before.Redact, after.Redact)
}

// erases reports whether a batch that begins anew leaves something in free pages that
// its rule takes away. b is the bucket as it was, nil if there is none: then it may be
// in a damaged file that was moved aside.
func (c *change) erases(b *bbolt.Bucket, aside bool) bool {
	spec := &c.batch.Saved.Spec
	if b == nil || b.Get(metaKey) == nil {
		return aside && (len(spec.Redact) > 0 || slices.ContainsFunc(spec.Drop, func(p string) bool { return p != managedFields }))
	}
	m, err := readMeta(c.vault, c.name, b)
	return err != nil || takesAway(&m.Spec, spec)
}

// managedFields are dropped by default, for their size and not to be out of sight.
const managedFields = "metadata.managedFields"

// Erase forgets the snapshot of r, like Drop, since it must not be kept: Sweep leaves
// nothing of it in the file.
func (db *DB) Erase(r cache.Resource) error {
	if err := db.drop(r, true); err != nil {
		return fmt.Errorf("erase snapshot of %s: %w", r, err)
	}
	return nil
}

// Sweep rewrites the file if it was marked, so that what was taken away is in no
// page of it, and removes what was moved aside. Loads wait meanwhile. After an error
// the file is as it was, marked, and Sweep may be called again.
func (db *DB) Sweep() error {
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	if db.options.ReadOnly {
		return nil
	}
	due := false
	err := db.view(func(tx *bbolt.Tx) error {
		due = marked(tx)
		return nil
	})
	if err == nil && due {
		err = db.erase()
	}
	if err != nil {
		return fmt.Errorf("erase what rules take away: %w", public(err))
	}
	return nil
}

// erase leaves nothing in the journal, and then in the file, of what was taken away. The caller
// holds writeMu.
func (db *DB) erase() error {
	if err := db.turn(nil, nil, true); err != nil {
		return err
	}
	if err := db.journal.discard(); err != nil {
		return err
	}
	return db.rewrite()
}

// rewrite puts a copy in the place of the file. The caller holds writeMu.
func (db *DB) rewrite() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.bolt == nil {
		return db.unusable()
	}
	s := &source{bolt: db.bolt}
	if err := s.check(db.options); err != nil {
		return err
	}
	if !s.found.sound() {
		return db.salvageOpen()
	}
	copied, err := copyAside(s, db.options)
	if err == nil {
		err = rename(copied, db.options.Path)
	}
	if err != nil {
		return err
	}
	_ = db.bolt.Close()
	db.bolt = nil
	b, err := db.openWritable()
	if err != nil {
		return err // the next write tries again
	}
	db.bolt = b
	after, _ := os.Stat(db.options.Path)
	db.options.Log.Info("snapshot file rewritten, without what was dropped for good", "path", db.options.Path, "before", s.size, "after", after.Size())
	return db.removeAside()
}

// salvageOpen opens a damaged file anew, which keeps what is sound. Nothing was found
// out by a Commit, so the next one says that all must be saved anew. The caller holds mu.
func (db *DB) salvageOpen() error {
	_ = db.bolt.Close()
	db.bolt = nil
	db.replaced = true
	if err := db.openAgain(); err != nil && !errors.Is(err, ErrReplaced) {
		return err
	}
	return db.removeAside()
}

// hasAside reports whether a damaged file was moved aside, now or once. One whose key is
// not at hand does not count: nobody can read it, and it is to be there when the key is.
func (db *DB) hasAside() bool {
	_, err := os.Lstat(db.options.Path + DamagedSuffix)
	return err == nil
}

// removeAside removes what was moved aside: it holds what the file held.
func (db *DB) removeAside() error {
	var errs []error
	for _, suffix := range []string{DamagedSuffix, EncryptedSuffix} {
		if err := os.Remove(db.options.Path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, removeJournal(db.options.Path+suffix))
	}
	return errors.Join(errs...)
}
