package handlers

import (
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// Transition is what became of a key since its last delivery, as the handler's question
// sees it.
type Transition string

// The transitions. An object that is deleted leaves, and so does one that is not selected
// any more.
const (
	Enters  Transition = "enters"
	Changes Transition = "changes"
	Leaves  Transition = "leaves"
)

// Transitions are all there are, in the order in which they happen.
var Transitions = []Transition{Enters, Changes, Leaves}

// Start says where a handler begins that nothing is saved of.
type Start string

const (
	// FromNow: objects that were created before the handler was first loaded are known, and
	// not delivered until they change or leave.
	FromNow Start = "now"
	// FromBeginning: every object that there is enters.
	FromBeginning Start = "beginning"
)

// Handler is what one handler selects and where it is delivered to. It is a value: once
// given away it must not be modified.
type Handler struct {
	// Name is a DNS label; it names the handler's ledger.
	Name string
	// Clusters it is about; none: all.
	Clusters []string
	// Resources are names as kubectl writes them, or globs over such as deployments.apps.
	Resources []string
	// Query selects objects. Its Filter must not depend on the clock. Sort is not used.
	Query cache.Query
	// Change is a condition on a change, over object and old; nil: every change counts. A
	// change for which it holds makes its key pending, and the newest state is delivered.
	// Where the state before is not known, after a restart without a snapshot for one, the
	// change counts.
	Change Change
	// On are the transitions that are delivered; others are noted as known.
	On   []Transition
	From Start
	// Fields are the paths of what is sent; none: whole objects.
	Fields []string
	Retry  Retry
	// Sink is where it is delivered to; nil: it is claimed.
	Sink Sink
	// SinkKind names the kind of the sink, for those who look: webhook, nats, kafka.
	SinkKind string
	// Concurrency is how many deliveries of a sink are under way at once.
	Concurrency int
	// Rate bounds the deliveries of a sink per second; 0: no bound.
	Rate float64
	// MaxLease bounds the lease of a claim.
	MaxLease time.Duration
	// As says whose rights it acts with: it sees nothing else.
	As access.Asker
	// Digest is another one whenever something of the question or of what is sent is: every
	// object is then looked at again, and what differs from what was delivered is delivered.
	Digest string
	// SinkDigest is another one whenever something of Sink, Concurrency, Rate, Retry or
	// MaxLease is. Workers are then replaced; no key is touched.
	SinkDigest string
}

// Change is a condition on two states of an object; cache/filter has it.
type Change interface {
	// MatchChange evaluates it on the JSON of the new state and of the one before, which is
	// nil where there was none. An *cache.EvalError says that it has no value.
	MatchChange(object, old []byte) (bool, error)
}

// Retry says when a delivery that failed is tried again: after Base, twice as long after
// each further failure, up to Max. After Attempts failures of one state the key is a dead
// letter, until it changes or is sent again by hand.
type Retry struct {
	Base     time.Duration
	Max      time.Duration
	Attempts int
}
