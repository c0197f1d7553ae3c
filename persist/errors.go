package persist

import (
	"errors"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/informerd/informerd/cache"
)

// Errors of Open. After each of them the file is as it was, and informerd runs
// from memory.
var (
	// ErrLocked: another process has the file open.
	ErrLocked = errors.New("file is in use by another process")
	// ErrNewerFormat: a newer informerd wrote the file.
	ErrNewerFormat = errors.New("file was written by a newer informerd")
	// ErrForeign: the file is the sound bbolt database of another program.
	ErrForeign = errors.New("file is a database of another program")
)

// ErrKey: the file is encrypted, and with no key that is at hand. Open moves such a file
// aside; what only reads returns this.
var ErrKey = errors.New("the key of the snapshot is not at hand")

// ErrPlain: the file is not encrypted, and there is a key, so that it ought to be. Open
// removes such a file; what only reads returns this.
var ErrPlain = errors.New("the snapshot is not encrypted")

// Errors of an open DB.
var (
	// ErrReadOnly: the file cannot be written, or was opened so as not to be.
	ErrReadOnly = errors.New("file is read-only")
	// ErrClosed: the DB was closed.
	ErrClosed = errors.New("database is closed")
	// ErrReplaced: damage was met while writing, so an empty file has taken the
	// place of the damaged one. Nothing is saved of any resource any more.
	ErrReplaced = cache.ErrReplaced
)

// errDamaged is damage to the structure of a file. It never leaves the package:
// callers see what was done about it.
var errDamaged = errors.New("file is damaged")

// errUnopened: the file could not be opened again after it had been replaced.
var errUnopened = errors.New("database could not be opened again")

// notBolt reports whether bbolt refused a file for what is in it.
func notBolt(err error) bool {
	return errors.Is(err, berrors.ErrInvalid) ||
		errors.Is(err, berrors.ErrChecksum) ||
		errors.Is(err, berrors.ErrVersionMismatch)
}

// errEmptied: a ledger that was not saved anew since the file was replaced.
var errEmptied = errors.New("it was not saved since the file was replaced")

// errUnstaged: what lay in the staging bucket is gone, since the file had to be opened anew.
var errUnstaged = errors.New("what was staged is lost")

// errStuck: bbolt's write lock was lost in a panic, so its database cannot even
// be closed.
var errStuck = errors.New("database is stuck")
