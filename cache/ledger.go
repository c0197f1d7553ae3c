package cache

// LedgerChange is what is to be saved of one ledger: notes of a handler that must agree with
// the copies, and so are durable before a snapshot of what they were made of is. Whoever saves
// them does not know what they mean.
type LedgerChange struct {
	// Name names the ledger: 1 to 63 bytes.
	Name string
	// Reset forgets all of it first. With no Put after it the ledger is gone.
	Reset bool
	// Erase: what this replaces or removes must not be kept, as with Snapshots.Erase: Sweep
	// leaves nothing of it on disk.
	Erase bool
	// Put are entries to write, Delete keys to remove. Keys are 1 to 16,384 bytes.
	Put    []LedgerEntry
	Delete [][]byte
}

// LedgerEntry is one note.
type LedgerEntry struct{ Key, Value []byte }

// Ledgers is where ledgers outlive the process. Like a snapshot each is a hint: one that
// cannot be read in full is ErrCorrupt, and what it was about begins anew. One that nobody can
// ask for now is ErrAway: what it is about waits for it.
type Ledgers interface {
	// Ledgers are the names of those that are saved, in order.
	Ledgers() ([]string, error)
	// Ledger yields the entries of one in the order of their keys: none if there is no such
	// ledger. After ErrCorrupt or ErrAway everything yielded must be thrown away. Key and Value belong to
	// the callee.
	Ledger(name string, yield func(LedgerEntry) error) error
}
