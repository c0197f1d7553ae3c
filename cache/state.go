package cache

import "time"

// State says what a resource's copy is worth.
type State string

const (
	// Unwatched: known, left out by the configuration.
	Unwatched State = "unwatched"
	// Syncing: no data yet; reads are refused.
	Syncing State = "syncing"
	// Warm: served from the snapshot, not yet proven caught up.
	Warm State = "warm"
	// Live: the watch is up and the copy was proven caught up.
	Live State = "live"
	// Stale: was live, the watch is down; the copy is as old as its age says.
	Stale State = "stale"
	// Forbidden: the API server refuses list or watch.
	Forbidden State = "forbidden"
	// Failed: the resource cannot be watched; the reason says why.
	Failed State = "failed"
)

// Readable reports whether a resource in this state has data to answer from.
func (s State) Readable() bool { return s == Warm || s == Live || s == Stale }

// Status is a View with the counts of its resource.
type Status struct {
	View

	Objects  int
	Bytes    int64 // JSON and terms as held, compressed
	RawBytes int64 // JSON before compression
	// ColumnBytes is as in Stats.
	ColumnBytes int64
	// Dictionaries that objects are compressed with now, those trained since the
	// start but for the first list's, and objects compressed anew.
	Dictionaries        int
	Trainings, Repacked uint64
	// Templates are objects as they were, which siblings of theirs are held beside.
	Templates       int
	ResourceVersion string
	LastEvent       time.Time
	Indexes         []string // names, built-in ones first

	Events         uint64 // changes applied
	Relists        uint64 // full syncs, the first one included
	Compared       uint64 // relists of metadata only
	Fetched        uint64 // objects that those found changed and got
	Expired        uint64 // watches answered with 410
	Restarts       uint64 // watches reopened without a relist
	Unextracted    uint64 // values that could not be indexed
	Undecoded      uint64 // objects refused by the decoder
	Verified       time.Time
	Mended         uint64 // differences found by verification
	Subscribers    int
	SnapshotAt     time.Time // when the snapshot was last committed
	SnapshotDrops  uint64    // snapshots of this resource thrown away
	SnapshotReason string    // why the last one was
}

// MissingNamespace is one whose objects are not held, or are held as they were
// when the API server began to refuse them.
type MissingNamespace struct {
	Namespace string
	State     State // Forbidden, Syncing or Failed
	Reason    string
}
