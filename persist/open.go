package persist

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/informerd/informerd/cache"
)

const (
	// DamagedSuffix is added to the name of a file moved aside.
	DamagedSuffix = ".damaged"
	// newSuffix names a copy in the making.
	newSuffix = ".new"
	// EncryptedSuffix is added to the name of a file whose key is not at hand.
	EncryptedSuffix = ".encrypted"

	// allocSize is by how much the file grows. bbolt's 16 MiB would be most of
	// a small snapshot.
	allocSize = 1 << 20
	// mapSize is address space, not memory. While the file fits in it, a
	// growing Commit need not wait for the end of Loads to map it anew.
	mapSize = 256 << 20
)

// openAgain opens the file anew, in the place of one that was in use. It may be another by then:
// an empty one, or one that knows nothing of the journal. Its error is ErrReplaced then.
func (db *DB) openAgain() error {
	if err := db.open(); err != nil || !db.exchanged {
		return err
	}
	db.ledgers.lose(errEmptied)
	db.exchanged = false
	return ErrReplaced
}

// open makes db.bolt. The caller holds mu, or has db to itself.
func (db *DB) open() error {
	if db.options.ReadOnly {
		return db.openReadOnly()
	}
	if err := os.MkdirAll(filepath.Dir(db.options.Path), 0o700); err != nil {
		return readOnly(err)
	}
	// A copy that was not completed holds what the file held.
	if err := os.RemoveAll(db.options.Path + newSuffix); err != nil {
		return readOnly(err)
	}
	if err := db.removePlainAside(); err != nil {
		return readOnly(err)
	}
	if err := db.makeSound(); err != nil {
		return readOnly(err)
	}
	b, err := db.openWritable()
	if err != nil {
		return readOnly(err)
	}
	err = db.takeJournal(b)
	if err == nil && db.erased && db.journal.discard() != nil {
		err = update(b, markErase) // a file of the journal may hold it
	}
	db.erased = false
	if err != nil {
		_ = b.Close()
		return readOnly(err)
	}
	db.bolt = b
	return nil
}

// readOnly marks the errors of files and folders that cannot be written.
func readOnly(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

func (db *DB) boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout: db.options.LockTimeout,
		// The freelist stays on disk. Without it bbolt would find the free pages
		// by walking the file at Open and after each failed commit, in a
		// goroutine whose panic nobody can recover.
		NoFreelistSync: false,
		FreelistType:   bbolt.FreelistMapType,
		NoSync:         db.options.NoSync,
		OpenFile:       db.options.OpenFile,
	}
}

// openWritable opens a file that is sound, empty or missing.
func (db *DB) openWritable() (*bbolt.DB, error) {
	var file *os.File
	o := db.boltOptions()
	if runtime.GOOS != "windows" { // where the file would grow to this size
		o.InitialMmapSize = mapSize
	}
	o.OpenFile = func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
		file, err = db.options.OpenFile(name, flag, mode)
		return file, err
	}
	b, err := openBolt(db.options.Path, o)
	if err != nil {
		return nil, err
	}
	b.AllocSize = allocSize
	if err := db.settle(b, file); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// settle makes a file just opened ready for use.
func (db *DB) settle(b *bbolt.DB, file *os.File) error {
	// While this process waited for the lock, another may have put a new file in
	// the place of the one that is locked now.
	here, err := os.Stat(db.options.Path)
	if err != nil {
		return err
	}
	if locked, err := file.Stat(); err != nil || !os.SameFile(here, locked) {
		return ErrLocked
	}
	empty := false
	var locked *lock
	err = view(b, func(tx *bbolt.Tx) (err error) {
		k, _ := tx.Cursor().First()
		if empty = k == nil; !empty {
			locked, err = checkLayout(tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if empty {
		return db.begin(b)
	}
	if err := db.unlock(locked); err != nil {
		return err
	}
	return clearStaging(b)
}

// private is the mode of the file: it holds what its cluster holds.
const private = fs.FileMode(0o600)

// makePrivate takes the rights of others at the file away, of which found is known.
func (db *DB) makePrivate(found fs.FileInfo) error {
	if runtime.GOOS == "windows" || found.Mode().Perm()&^private == 0 {
		return nil
	}
	file, err := db.options.OpenFile(db.options.Path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !os.SameFile(info, found) {
		return errors.Join(errors.New("replaced while it is opened"), err)
	}
	if err := file.Chmod(private); err != nil {
		return fmt.Errorf("others may read or write it (mode %04o), and that cannot be changed: %w", found.Mode().Perm(), err)
	}
	return nil
}

func openBolt(path string, o *bbolt.Options) (b *bbolt.DB, err error) {
	defer guard(&err)()
	b, err = bbolt.Open(path, private, o)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, ErrLocked
	}
	return b, err
}

// source is a file opened for reading only, its structure checked.
type source struct {
	bolt  *bbolt.DB
	size  int64
	found *structure
	// layout says whose file it is; see checkLayout. Nil if that could not be
	// found out.
	layout error
	// lock is nil if the file is not encrypted; vault, if it is not or was not unlocked.
	lock  *lock
	vault *vault
	// marked says that there is something to erase.
	marked bool
}

func (s *source) Close() error { return s.bolt.Close() }

// openSource opens the file and checks it. The lock it holds keeps writers out.
// A file that is not bbolt's is errDamaged.
func openSource(options Options) (*source, error) {
	// bbolt takes an empty file for a new one and writes to it, though it may only
	// read: the error would be that of a bad descriptor.
	if info, err := os.Stat(options.Path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return nil, fmt.Errorf("%w: the file is empty", errDamaged)
	}
	o := (&DB{options: options}).boltOptions()
	o.ReadOnly = true
	b, err := openBolt(options.Path, o)
	if err != nil {
		if notBolt(err) || !isSystem(err) {
			err = fmt.Errorf("%w: %w", errDamaged, err)
		}
		return nil, err
	}
	s := &source{bolt: b}
	if err := s.check(options); err != nil {
		_ = b.Close()
		return nil, err
	}
	return s, nil
}

// isSystem tells errors of the system from bbolt's own, some of which have no
// name: "file size too small".
func isSystem(err error) bool {
	var path *fs.PathError
	var errno syscall.Errno
	return errors.As(err, &path) || errors.As(err, &errno) || errors.Is(err, ErrLocked)
}

func (s *source) check(options Options) error {
	file, err := options.OpenFile(options.Path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	return view(s.bolt, func(tx *bbolt.Tx) error {
		s.found = check(tx, file, s.size)
		if s.found.whole == nil {
			s.lock, s.layout = checkLayout(tx)
			s.marked = marked(tx)
			if s.found.ledgers == nil && s.layout == nil {
				s.found.ledgers = missingLedgers(tx)
			}
		}
		if errors.Is(s.layout, errDamaged) {
			s.found.whole, s.layout = s.layout, nil
		}
		return nil
	})
}

// openReadOnly serves the file as it is, without the damaged resources.
func (db *DB) openReadOnly() error {
	s, err := openSource(db.options)
	if err != nil {
		return public(err)
	}
	err = errors.Join(s.layout, asCorrupt(s.found.whole))
	if err == nil {
		err = db.unlock(s.lock)
	}
	if err != nil {
		_ = s.Close()
		return err
	}
	for name, err := range s.found.parts {
		db.setDamaged([]byte(name), err)
	}
	db.ledgers.found(s.found)
	if noted, err := s.noted(db.options.Path, db.vault); err != nil || len(noted) > 0 {
		db.ledgers.lose(cmp.Or(err, errNoted))
	}
	db.bolt = s.bolt
	return nil
}

// errNoted: what only reads the snapshot file does not know the ledgers.
var errNoted = errors.New("the journal beside the file holds changes of ledgers, which are entered when it is opened for writing")

// noted is what the journal beside the file at path holds.
func (s *source) noted(path string, v *vault) (notes, error) {
	m, err := markOf(s.bolt)
	if err != nil {
		return nil, err
	}
	found, _, err := readJournal(path, m, v)
	return found, err
}

func asCorrupt(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", cache.ErrCorrupt, err)
}

// makeSound leaves at the path a file that bbolt can be trusted with, or none.
func (db *DB) makeSound() error {
	info, err := os.Lstat(db.options.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		// Whoever may write to the folder could have it name a file of somebody else's.
		return errors.New("a symbolic link: name the file that is meant")
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	}
	if err := db.makePrivate(info); err != nil || info.Size() == 0 {
		return err
	}
	s, err := openSource(db.options)
	if errors.Is(err, errDamaged) {
		return db.moveAside(err)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	switch {
	case s.layout != nil:
		return s.layout
	case s.found.whole != nil:
		return db.moveAside(s.found.whole)
	}
	if s.vault, err = db.options.Keys.vaultOf(s.lock); err != nil {
		return db.lockOut(err)
	}
	if err := db.completeLockOut(); err != nil {
		return err
	}
	switch {
	case !s.found.sound():
		return db.salvage(s)
	case db.rotated(s):
		db.erased = s.marked
		return db.encryptAnew(s)
	case s.marked:
		if db.compact(s) {
			db.erased = true
			return db.removeAside()
		}
	case db.wasteful(s):
		db.compact(s)
	}
	return nil
}

// moveAside renames a file of which nothing can be read.
func (db *DB) moveAside(cause error) error {
	if removed, err := db.removePlain(db.options.Path); removed || err != nil {
		return err
	}
	aside := db.options.Path + DamagedSuffix
	if err := rename(db.options.Path, aside); err != nil {
		return fmt.Errorf("move damaged file aside: %w", err)
	}
	db.options.Log.Warn("snapshot file is damaged, moved aside, starting cold",
		"path", db.options.Path, "aside", aside, "err", cause)
	return nil
}

// salvage puts a copy of all that is sound in the place of a file that is
// damaged in part, and the file aside.
func (db *DB) salvage(s *source) error {
	for name, err := range s.found.parts {
		db.setDamaged([]byte(name), err)
		db.options.Log.Warn("snapshot dropped, its pages are damaged", "gvr", s.vault.describe([]byte(name)), "err", err)
	}
	db.ledgers.found(s.found)
	for name, err := range s.found.ledgerParts {
		db.options.Log.Warn("ledger dropped, its pages are damaged", "ledger", s.vault.describeLedger([]byte(name)), "err", err)
	}
	if s.found.ledgers != nil {
		db.options.Log.Warn("all ledgers dropped, their pages are damaged", "err", s.found.ledgers)
	}
	cause := errors.Join(s.found.rest, s.found.ledgers,
		fmt.Errorf("%d resources and %d ledgers are damaged", len(s.found.parts), len(s.found.ledgerParts)))
	copied, err := copyAside(s, db.options)
	if err != nil {
		return db.moveAside(errors.Join(cause, fmt.Errorf("copy what is sound: %w", err)))
	}
	if err := rename(db.options.Path, db.options.Path+DamagedSuffix); err != nil {
		return fmt.Errorf("move damaged file aside: %w", err)
	}
	if err := rename(copied, db.options.Path); err != nil {
		return err
	}
	db.options.Log.Warn("snapshot file is damaged in part, replaced by a copy of the rest",
		"path", db.options.Path, "aside", db.options.Path+DamagedSuffix, "err", cause)
	return nil
}

// wasteful reports whether compacting s gives back more than half of it.
func (db *DB) wasteful(s *source) bool {
	free := int64(s.found.free) * int64(s.bolt.Info().PageSize)
	return s.size >= db.options.compactBytes && free > s.size/2
}

// compact is done for the space, or to erase something, which Sweep tries again: a
// failure costs nothing else.
func (db *DB) compact(s *source) bool {
	copied, err := copyAside(s, db.options)
	if err == nil {
		err = rename(copied, db.options.Path)
	}
	if err != nil {
		db.options.Log.Warn("snapshot file not compacted", "path", db.options.Path, "err", err)
		return false
	}
	after, _ := os.Stat(db.options.Path)
	db.options.Log.Info("snapshot file compacted", "path", db.options.Path, "before", s.size, "after", after.Size())
	return true
}

// reopen closes bbolt's database and opens the file again.
func (db *DB) reopen() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return ErrClosed
	}
	if db.bolt != nil {
		_ = db.bolt.Close()
		db.bolt = nil
	}
	return db.openAgain()
}

// replace puts an empty file in the place of one on which bbolt has panicked.
func (db *DB) replace(cause error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return ErrClosed
	}
	if db.bolt != nil && !errors.Is(cause, errStuck) {
		_ = db.bolt.Close()
	}
	db.bolt = nil
	err := db.moveAside(cause)
	if err == nil {
		err = db.openAgain()
	}
	if err != nil && !errors.Is(err, ErrReplaced) {
		return fmt.Errorf("replace damaged file: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrReplaced, cause)
}

// rename also makes the new name durable.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	_ = syncFolder(to) // renamed all the same
	return nil
}

// syncFolder makes the name of a file durable, where the system can.
func syncFolder(name string) error {
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // not possible on every system
	}
	return err
}
