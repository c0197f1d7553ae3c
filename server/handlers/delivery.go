package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Delivery is one state of one key, on its way to a sink or to whoever claimed it.
type Delivery struct {
	Handler string
	// ID is the same for the same state of the same object however often it is delivered:
	// handler/uid/resourceVersion, with /leaves at the end for an end.
	ID         string
	Transition Transition
	Cluster    string
	GVR        schema.GroupVersionResource
	Kind       string
	Namespace  string
	Name       string
	// UID and ResourceVersion are empty of an object of whose end nothing more is known than
	// that it is gone: it went while nobody looked, and no snapshot of it was left.
	UID             string
	ResourceVersion string
	// Object is what is sent: the newest state, or the last one known of what left. nil where
	// that is not known.
	Object json.RawMessage
	// Attempt counts from 1, deliveries before a restart included.
	Attempt int
	// Since is when the key became pending.
	Since time.Time
	// Sequence grows with each delivery of the handler, restarts included.
	Sequence uint64
}

// Sink takes deliveries. Implementations are safe for concurrent use.
type Sink interface {
	// Deliver returns nil when d has been taken for good. A *RejectedError, a *BusyError, a
	// *DownError and a *GoneError say more; every other error is tried again like a
	// *RejectedError. It returns soon after ctx ends.
	Deliver(ctx context.Context, d *Delivery) error
	// Close lets go of connections. No Deliver is under way, and none follows.
	Close() error
}

// RejectedError is about one delivery: the sink is there and did not take it. Others are not
// held up.
type RejectedError struct {
	// Reason is for people: what the sink answered, without secrets, at most 1 KiB.
	Reason string
	// Never: trying again does not help, so that the key is a dead letter at once.
	Never bool
}

func (e *RejectedError) Error() string { return e.Reason }

// BusyError asks for patience: the sink wants no delivery before After has passed, as
// Retry-After says. It counts as no attempt. Other keys wait, too.
type BusyError struct {
	Reason string
	After  time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s; again after %s", e.Reason, e.After)
}

// DownError says that the sink cannot be reached: no key is to blame.
type DownError struct{ Err error }

func (e *DownError) Error() string { return e.Err.Error() }
func (e *DownError) Unwrap() error { return e.Err }

// GoneError says that the sink wants nothing any more (HTTP's 410): the handler is paused
// until somebody resumes it.
type GoneError struct{ Reason string }

func (e *GoneError) Error() string { return e.Reason }
