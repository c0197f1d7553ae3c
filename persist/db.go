package persist

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// Options says where the file is and how it is opened. Only Path is needed.
type Options struct {
	// Path of the file. Missing parent directories are made.
	Path string
	// LockTimeout is how long to wait for another process to let go of the
	// file. Default 1 s.
	LockTimeout time.Duration
	// Keys encrypt the file. Nil: it is not encrypted. See Open for a file that is
	// otherwise.
	Keys *Keyring
	// Log receives what was moved aside, left out or compacted. Default: none.
	Log *slog.Logger
	// ReadOnly opens the file so that Commit and Drop return ErrReadOnly and
	// nothing on disk changes, not even a damaged file.
	ReadOnly bool
	// Pause is called between the parts of what is too large for one transaction, with the time
	// that the last one took, so that it need not use a processor all the time. Default: nothing.
	Pause func(took time.Duration)
	// NoSync leaves out fsync: a power cut may then cost the whole file. For
	// tests.
	NoSync bool
	// OpenFile opens the file. Default os.OpenFile. For tests.
	OpenFile func(string, int, os.FileMode) (*os.File, error)

	// stageBytes is how large a Reset may be to fit in one transaction of
	// bbolt, which holds all of it in memory, twice. Default 8 MiB.
	stageBytes int
	// compactBytes is the size from which a file is worth compacting at Open.
	// Default 16 MiB.
	compactBytes int64
	// noJournal has Note commit.
	noJournal bool
}

func (o Options) withDefaults() Options {
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Pause == nil {
		o.Pause = func(time.Duration) {}
	}
	if o.OpenFile == nil {
		o.OpenFile = os.OpenFile
	}
	if o.stageBytes == 0 {
		o.stageBytes = 8 << 20
	}
	if o.compactBytes == 0 {
		o.compactBytes = 16 << 20
	}
	return o
}

// DB is one open snapshot file. It implements cache.Snapshots and cache.Ledgers: any
// number of Loads run beside one Commit.
//
// The file belongs to one process at a time. Reads hold a transaction of bbolt
// for as long as they take and no longer; nothing returned refers to the file.
type DB struct {
	options Options

	writeMu  sync.Mutex // one writer at a time; taken before mu
	replaced bool       // and no Commit has said so yet; guarded by writeMu

	mu    sync.RWMutex // guards bolt being exchanged; held for reading while it is used
	bolt  *bbolt.DB    // nil once closed
	vault *vault       // of bolt; changed with writeMu held, too; nil if it is not encrypted
	// exchanged says that bolt was empty when it was opened, or is not what the journal goes
	// on from, and that nobody was told so.
	exchanged bool
	erased    bool // what was marked was left out of the file, and not yet of its journal
	closed    bool

	// damaged are the resources found damaged at Open or since, by bucket name.
	damagedMu sync.Mutex // innermost
	damaged   map[string]error
	ledgers   ledgerDamage

	journal journal
}

var _ cache.Snapshots = (*DB)(nil)

// Stats are sizes and counts of an open DB.
type Stats struct {
	// FileBytes is the size of the file, FreeBytes what of it holds nothing.
	FileBytes, FreeBytes int64
	// WrittenBytes is how much was written since Open, Writes in how many writes.
	WrittenBytes, Writes int64
}

// Open opens the file, or makes it. A file too damaged to be read is renamed to
// Path + ".damaged", where it replaces an older one, and a fresh one takes its
// place; so does one of which a part is damaged, after all else was copied to
// the fresh one. Both are logged. A file more than half free is compacted.
//
// With Keys, a file that none of them unlocks is renamed to Path + ".encrypted", one that
// is not encrypted is removed, and one that another than the first unlocks is encrypted
// anew; docs/FORMAT.md has all cases.
//
// An error means that there is no DB, and that the file is as it was: ErrLocked,
// ErrNewerFormat, ErrForeign, ErrReadOnly or an error of the file system.
func Open(options Options) (*DB, error) {
	db := &DB{options: options.withDefaults(), damaged: make(map[string]error)}
	db.journal.options, db.journal.noted = &db.options, make(notes)
	if err := db.open(); err != nil {
		return nil, fmt.Errorf("open snapshot %s: %w", options.Path, err)
	}
	db.exchanged = false
	return db, nil
}

// Close waits for calls under way and closes the file. Calls after it return
// ErrClosed.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.closed = true
	db.journal.close()
	if db.bolt == nil {
		return nil
	}
	err := db.bolt.Close()
	db.bolt = nil
	return err
}

// Stats returns zeros once the DB is closed.
func (db *DB) Stats() Stats {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return Stats{}
	}
	s := db.bolt.Stats()
	pages := int64(s.FreePageN + s.PendingPageN)
	stats := Stats{
		FreeBytes:    pages * int64(db.bolt.Info().PageSize),
		WrittenBytes: s.TxStats.GetPageAlloc(),
		Writes:       s.TxStats.GetWrite(),
	}
	if info, err := os.Stat(db.options.Path); err == nil {
		stats.FileBytes = info.Size()
	}
	return stats
}

// Size is the size of the file in bytes, 0 if it is unknown.
func (db *DB) Size() int64 { return db.Stats().FileBytes }

// view runs fn in a read transaction. Whatever bbolt does on a page damaged
// since Open comes back as errDamaged.
func (db *DB) view(fn func(*bbolt.Tx) error) error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return db.unusable()
	}
	return view(db.bolt, fn)
}

// unusable says why there is no bbolt database. The caller holds mu.
func (db *DB) unusable() error {
	if db.closed {
		return ErrClosed
	}
	return errUnopened
}

func view(b *bbolt.DB, fn func(*bbolt.Tx) error) (err error) {
	tx, err := b.Begin(false)
	if err != nil {
		return err
	}
	defer guard(&err)()
	defer tx.Rollback() //nolint:errcheck // of a read transaction
	return fn(tx)
}

// update runs fn in a write transaction and commits it. The caller holds mu.
func update(b *bbolt.DB, fn func(*bbolt.Tx) error) (err error) {
	defer guard(&err)()
	tx, err := b.Begin(true)
	if err != nil {
		return err
	}
	defer release(tx, &err)
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// release ends a write transaction. After a commit, good or bad, it does nothing.
// After a panic it gives back bbolt's write lock, without which Close would wait
// for ever.
func release(tx *bbolt.Tx, err *error) {
	defer func() {
		if p := recover(); p != nil {
			*err = errors.Join(*err, fmt.Errorf("%w: %v", errStuck, p))
		}
	}()
	_ = tx.Rollback()
}

// guard turns a panic, and a fault in mapped memory, into errDamaged:
//
//	defer guard(&err)()
//
// A file that shrinks or a disk that fails under the mapping is a fault, which
// would otherwise end the process.
func guard(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			*err = errors.Join(*err, fmt.Errorf("%w: %v", errDamaged, p))
		}
	}
}

func (db *DB) setDamaged(name []byte, err error) {
	db.damagedMu.Lock()
	defer db.damagedMu.Unlock()
	db.damaged[string(name)] = err
}

func (db *DB) clearDamaged(name []byte) {
	db.damagedMu.Lock()
	defer db.damagedMu.Unlock()
	delete(db.damaged, string(name))
}

func (db *DB) damage(name []byte) error {
	db.damagedMu.Lock()
	defer db.damagedMu.Unlock()
	return db.damaged[string(name)]
}

// corrupt makes err a cache.ErrCorrupt that names what is damaged.
func corrupt(r cache.Resource, err error) error {
	if errors.Is(err, cache.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", r, cache.ErrCorrupt, err)
}
