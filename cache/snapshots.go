package cache

import (
	"context"
	"errors"
	"iter"
	"time"
	"unique"
)

// Snapshots is what a Factory needs from disk. A snapshot is a hint, never the
// truth: whatever cannot be read in full is dropped, and its resource starts
// cold. Implementations are safe for concurrent use; Commit is called by one
// goroutine at a time.
type Snapshots interface {
	// Saved lists the snapshots held, without their objects.
	Saved() ([]Saved, error)
	// Load reads the snapshot of r, calling yield for each object in key order.
	// Records and what they point to belong to the callee after the call. It
	// returns ErrNoSnapshot, or, after any number of yields, ErrCorrupt or ErrAway:
	// then everything yielded must be thrown away. After ErrAway nobody knows what
	// is saved, and nothing of it may be dropped for that.
	Load(r Resource, yield func(Record) error) (Saved, error)
	// Commit makes all batches and all changes of ledgers durable in one
	// transaction: all or nothing. What a batch has to write are its Records.
	// Without batches it is a transaction of the ledgers alone; with neither it
	// does nothing. It refuses with ErrNoSnapshot or
	// ErrCorrupt a batch or a change without Reset that has nothing sound to add
	// to; what was saved is then not to be relied on, and the next batch of every
	// resource, and the next change of every ledger, must be a Reset. So they must
	// after ErrReplaced, which the first Commit after the loss returns, whoever met
	// it. What of a change without Reset there is no ledger of yet begins one.
	Commit(batches []Batch, ledgers []LedgerChange) error
	// Note makes changes of ledgers durable, as Commit of them alone does, and does not wait
	// for one that is under way. They are in order with those of calls that have returned.
	// What is noted belongs to the callee.
	Note(ledgers []LedgerChange) error
	// Drop forgets the snapshot of r.
	Drop(r Resource) error
	// Erase is Drop of what must not be kept. Sweep leaves nothing of it on disk, nor
	// of what a batch took away from what was saved: it is called after each Commit,
	// and again after an error.
	Erase(r Resource) error
	Sweep() error
}

// Finder are Snapshots that find some records without making objects of all.
type Finder interface {
	// Find is Load of those records that may have the term t, and of all that have it, in any
	// order. It reads and checks the others, too: what is damaged is ErrCorrupt. It ends when
	// ctx does.
	Find(ctx context.Context, r Resource, t Term, yield func(Record) error) (Saved, error)
}

var (
	// ErrNoSnapshot means that nothing is saved for the resource.
	ErrNoSnapshot = errors.New("no snapshot")
	// ErrCorrupt means that a snapshot exists and cannot be read in full.
	ErrCorrupt = errors.New("snapshot is damaged")
	// ErrAway means that what is saved cannot be asked or changed now: a database does not
	// answer, or lets nobody in. It says nothing of what is there.
	ErrAway = errors.New("the snapshot is out of reach")
	// ErrReplaced means that nothing is saved of any resource or ledger any more: damage
	// was met while writing, and an empty file has taken the place of the damaged
	// one.
	ErrReplaced = errors.New("damaged file was replaced by an empty one")
)

// Saved describes the snapshot of one resource.
type Saved struct {
	// Spec is the spec the snapshot was made under. Before discovery has
	// answered it is all that is known of the resource.
	Spec Spec
	// ResourceVersions are complete per source: the key is a namespace, or ""
	// for a watch of all namespaces. Each says: every change of that source up
	// to this version is in the snapshot.
	ResourceVersions map[string]string
	// ClusterUID is the UID of the kube-system namespace, or another stable
	// identity of the cluster; ServerVersion its gitVersion.
	ClusterUID    string
	ServerVersion string
	// Lineage is that of the Store, see Store.Lineage; "" in a snapshot of an
	// informerd that knew none.
	Lineage string
	// Dictionaries are the zstd dictionaries that records refer to, by id.
	Dictionaries map[uint32][]byte
	// Terms is the version of what the records' Terms are: those of another one
	// are taken anew from the JSON.
	Terms int
	// Objects is how many records there are.
	Objects int
	// SavedAt is when the last change was committed.
	SavedAt time.Time
	// ProvenAt is when the copy had last been proven current by then, zero if that
	// is not known.
	ProvenAt time.Time
}

// Record is one object as it lies on disk: identity, indexed values and the
// JSON as it is held in memory, so that neither saving nor loading compresses,
// decompresses or parses it.
type Record struct {
	Key
	UID             string
	ResourceVersion string
	// Created is metadata.creationTimestamp in Unix seconds, 0 if absent.
	Created int64
	// Terms are the object's indexed values under Saved.Spec.Indexes and the
	// built-in indexes, those first.
	Terms []unique.Handle[Term]
	// Dictionary is the id of the zstd dictionary Data is compressed with, 0
	// when Data is plain JSON.
	Dictionary uint32
	// Size is the length of the plain JSON in bytes.
	Size uint32
	Data []byte
}

// Batch is what is to be saved of one resource: what changed, and the
// resourceVersions that cover it. The two belong together, in one transaction.
type Batch struct {
	// Saved replaces what was saved, except that Dictionaries holds only new
	// ones and Objects is counted by the implementation.
	Saved Saved
	// Reset drops all records first: this batch holds every object.
	Reset bool
	// Put are records to write, Delete keys to remove.
	Put    []Record
	Delete []Key
	// Objects are objects whose records are to be written as well. Made all at once, the
	// records of a large resource would take as much memory as its objects.
	Objects []*Object
	// Retired are ids of saved dictionaries that no record refers to any more
	// once this batch is committed.
	Retired []uint32
}

// Len is how many records there are to write, those of Objects after those of Put.
func (b *Batch) Len() int { return len(b.Put) + len(b.Objects) }

// Record is the i-th of them. Those of Objects are made for each call.
func (b *Batch) Record(i int) Record {
	if i < len(b.Put) {
		return b.Put[i]
	}
	return b.Objects[i-len(b.Put)].record()
}

// RecordIn is Record, whose Terms may lie in the memory of terms until the next one is made.
func (b *Batch) RecordIn(i int, terms *[]unique.Handle[Term]) Record {
	if i < len(b.Put) {
		return b.Put[i]
	}
	return b.Objects[i-len(b.Put)].recordIn(terms)
}

// Key and Dictionary are those of the i-th record, which need not be made for them.
func (b *Batch) Key(i int) Key {
	if i < len(b.Put) {
		return b.Put[i].Key
	}
	return b.Objects[i-len(b.Put)].Key()
}

func (b *Batch) Dictionary(i int) uint32 {
	if i < len(b.Put) {
		return b.Put[i].Dictionary
	}
	return b.Objects[i-len(b.Put)].dictionaryID()
}

// Records are all of them, one after the other.
func (b *Batch) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i := range b.Len() {
			if !yield(b.Record(i)) {
				return
			}
		}
	}
}

// SnapshotStatus is what is known of the snapshots as a whole.
type SnapshotStatus struct {
	Enabled       bool
	Reason        string // why not enabled
	Err           string // of the last commit, if it failed
	LastCommit    time.Time
	Commits       uint64
	Failures      uint64
	CommitSeconds float64 // spent in all commits
	Bytes         int64   // size of the file, 0 if unknown
}
