package cache

import (
	"context"
	"time"
)

// Mirrors is where copies are mirrored for SQL: each object is a row, and one row for each
// resource says which version all of its rows are of. Like a snapshot a mirror follows the
// copy, and nothing is ever read from it but to compare it. Implementations are safe for
// concurrent use.
type Mirrors interface {
	// Mirrored lists what there are rows of.
	Mirrored(ctx context.Context) ([]Resource, error)
	// Mirror makes a change in one transaction: all or nothing. It refuses with
	// ErrNoSnapshot a change that is not Whole, unless it is added to what this process has
	// left there; then the next must be Whole. After ErrAway nobody knows whether it was
	// made, and it may be made again.
	Mirror(ctx context.Context, c MirrorChange) (MirrorResult, error)
	// Unmirror deletes all rows of a resource, of whatever version of its group, which must
	// not be kept.
	Unmirror(ctx context.Context, r Resource) error
}

// MirrorChange is what is to become of the mirror of one resource.
type MirrorChange struct {
	// Spec is the rule that the objects are under.
	Spec Spec
	// Version is that of the copy of which the rows are once the change is made. Empty: no
	// row changes, and the version stays; only State and Proof are new.
	Version string
	// State and Proof are those of the View.
	State State
	Proof time.Time
	// Whole: Put are all the objects there are. Rows of others go; those that are as they
	// are to be are not written again.
	Whole  bool
	Put    []*Object
	Delete []Key
}

// MirrorResult says what a change came to.
type MirrorResult struct {
	Written, Deleted int // rows
	// Altered are those of the written rows that SQL cannot hold as they are.
	Altered int
}
