package cache

import (
	"time"

	"github.com/informerd/informerd/cache/internal/inside"
)

// How an informerd tells another one, and everybody else, how old its answers are.
const (
	// StateHeader and AgeHeader are of every answer about objects: the State, and
	// the Age in seconds.
	StateHeader = "Informerd-State"
	AgeHeader   = "Informerd-Age"
	// AgeAnnotation is of the bookmarks of Kubernetes watches: the Age in seconds, or
	// AgeUnknown.
	AgeAnnotation = "informerd.io/age"
	AgeUnknown    = "unknown"
	// ReadsHeader is of a request: with ConsistentReads its answer is what the API
	// server held when it was asked.
	ReadsHeader     = "Informerd-Reads"
	ConsistentReads = "consistent"
	// ReplicaHeader is of the requests of a replica to the one that it follows.
	ReplicaHeader = "Informerd-Replica"
	// DiscoveryHeader is of documents of discovery that may lack resources, since the
	// cluster has not told yet what it serves.
	DiscoveryHeader     = "Informerd-Discovery"
	DiscoveryIncomplete = "incomplete"
)

// View is what one resource is, and what its copy is worth, at one moment: the
// state, the age and the Store of an answer always come from the same View, and
// are never read apart. It is immutable; Informers publish a new one when
// something changes.
//
// The Store goes on after the moment of the View. A state may therefore
// understate what the answer is worth, and never overstates it.
type View struct {
	// Spec is the rule and the definition that the objects of Store are under. A
	// newer one may be on its way: its copy takes over when it is complete.
	Spec  Spec
	State State
	// Reason says why the resource is not live; of a live one, why a successor of its
	// copy is being filled, and mostly nothing.
	Reason string
	// Since is when State was entered.
	Since time.Time
	// Proof is when the API server last proved the copy current: by a bookmark, or
	// a list of the latest version. Of several sources it is the one that waits
	// longest for its proof. Zero: not known.
	Proof time.Time
	// Lease is how long a proof makes the copy Live; 0: for as long as the View lasts.
	Lease time.Duration
	// Missing are the namespaces, of those to be watched one by one, that cannot
	// be answered for although the resource as a whole can: the API server
	// refuses them, or there is no data of them yet.
	Missing []MissingNamespace

	store *Store
}

// Readable reports whether there is a copy to be asked. One that never was complete
// is none.
func (v *View) Readable() bool { return v.store != nil }

// Reader reads what may be seen of the copy; nil unless it is Readable.
func (v *View) Reader(s Scope) *Reader {
	if v.store == nil {
		return nil
	}
	return &Reader{store: v.store, scope: s}
}

// ForgetColumns gives back the memory of what is kept for questions that are asked again and
// again, and reports whether there was any. Nothing is kept for some minutes.
func (v *View) ForgetColumns() bool { return v.store != nil && v.store.forgetColumns() }

// Len is how many objects the copy has, whoever may see them. It says what a way to an answer
// costs, and is not for anybody's eyes: Reader.Len is.
func (v *View) Len() int {
	if v.store == nil {
		return 0
	}
	return v.store.Len()
}

// Store is the copy as a whole; nil unless it is Readable. It is for what keeps copies
// and what is computed from them: nobody else has the key.
func (v *View) Store(inside.Key) *Store { return v.store }

// Hold makes v, before it is published, one of a copy; nil: of none. It returns v.
func (v *View) Hold(s *Store) *View {
	v.store = s
	return v
}

// SameCopy reports whether both are of one copy, so that versions of the one have the
// same meaning in the other. That of none is none.
func (v *View) SameCopy(o *View) bool { return v.store != nil && v.store == o.store }

// HiddenReason stands for the Reason of what is seen in part: it is told to who sees the
// whole.
const HiddenReason = "who may see all of it is told why"

// SeenBy is the View as it may be shown to who sees no more than a Scope: without the
// names of namespaces that nothing is seen of, and without reasons. Those are what the
// API server answered to informerd, and what went wrong with objects and connections:
// they may name objects, namespaces, users and addresses.
func (v *View) SeenBy(s Scope) *View {
	if s.Whole() {
		return v
	}
	seen := *v
	seen.Reason, seen.Missing = "", nil
	if v.Reason != "" && v.State != Live {
		seen.Reason = HiddenReason
	}
	for _, m := range v.Missing {
		if s.Touches(m.Namespace) {
			seen.Missing = append(seen.Missing, m.SeenBy(s))
		}
	}
	return &seen
}

// SeenBy is m as it may be shown to who sees no more than a Scope, which is something of
// the namespace: without its reason.
func (m MissingNamespace) SeenBy(s Scope) MissingNamespace {
	if !s.Whole() && m.Reason != "" {
		m.Reason = HiddenReason
	}
	return m
}

// Aged is the View as it is now: who waited long since it was taken, for a version that
// was asked for, may have outlived the lease of its proof.
func (v *View) Aged() *View {
	age, known := v.Age()
	if v.State != Live || v.Lease == 0 || !known || age <= v.Lease {
		return v
	}
	aged := *v
	aged.State, aged.Reason = Stale, "the API server has proven nothing for "+age.Round(time.Second).String()
	return &aged
}

// Age is the time since the copy was last proven current. It is never less than
// the age of the oldest part, and not known of a copy without a proof. Nor is it
// of one whose proof is still to come: a clock has been set since, by nobody knows
// how much.
func (v *View) Age() (age time.Duration, known bool) {
	if v.Proof.IsZero() {
		return 0, false
	}
	if age = time.Since(v.Proof); age < 0 {
		return 0, false
	}
	return age, true
}
