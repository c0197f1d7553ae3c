package handlers

import (
	"context"
	"errors"
	"time"
)

// Surface is what is seen of handlers and done with them from outside. *Manager is one.
// Names that are unknown are ErrUnknown.
type Surface interface {
	// Handlers are all, by name, without their Lines.
	Handlers() []Status
	Handler(name string) (Status, error)
	// DeadLetters are the first limit ones after the key after, in the order of cluster,
	// resource, namespace and name; next is the key to go on after, "" at the end.
	DeadLetters(name string, limit int, after string) (letters []DeadLetter, next string, err error)

	// Claim waits until at least one key is to be had, or Wait has passed: then it is none.
	// They are fewer than Max where their objects are large: what one answer holds is bounded.
	// A handler with a sink is ErrHasSink, one that is paused ErrPaused after Wait has passed.
	Claim(ctx context.Context, name string, o ClaimOptions) ([]Claimed, error)
	// Ack says that what was claimed has been dealt with. It returns when that is saved: a
	// restart delivers it no more. Each token has its own result; see TokenError.
	Ack(ctx context.Context, name string, owner string, tokens []string) ([]error, error)
	// Nack gives claims back; each is to be had again after a while: after, or what Retry says
	// if it is nil. It counts as a failed attempt, with reason as its error.
	Nack(ctx context.Context, name string, owner string, tokens []string, after *time.Duration, reason string) ([]error, error)
	// Extend makes leases last for lease from now on; 0 as for Claim.
	Extend(ctx context.Context, name string, owner string, tokens []string, lease time.Duration) ([]error, error)

	Pause(ctx context.Context, name string) error
	Resume(ctx context.Context, name string) error
	// Redrive makes dead letters pending again: those named, or all if there are none. It
	// returns how many.
	Redrive(ctx context.Context, name string, keys []KeyName) (int, error)
}

// ClaimOptions say what is claimed.
type ClaimOptions struct {
	// Owner is who claims: tokens are good for nobody else.
	Owner string
	// Max is the most keys, at least 1.
	Max int
	// Lease is for how long they are whose claim it is; at most the handler's MaxLease. 0: half
	// a minute, or MaxLease where that is less.
	Lease time.Duration
	// Wait is how long to wait for the first.
	Wait time.Duration
}

// Claimed is one key that was claimed.
type Claimed struct {
	Delivery
	// Token stands for the claim. It is good until Expires, unless it is extended.
	Token   string
	Expires time.Time
}

// KeyName names one key of a handler.
type KeyName struct {
	Cluster   string `json:"cluster"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

var (
	// ErrUnknown means that there is no such handler.
	ErrUnknown = errors.New("there is no such handler")
	// ErrHasSink means that a handler delivers by itself, so that nothing can be claimed.
	ErrHasSink = errors.New("the handler has a sink, so nothing can be claimed of it")
	// ErrPaused means that a handler is paused.
	ErrPaused = errors.New("the handler is paused")
	// ErrLease means that a lease is longer than the handler allows.
	ErrLease = errors.New("the lease is longer than the handler allows")
	// ErrToken means that a token stands for no claim: it was used, its lease has run out, it
	// is another owner's or another handler's, or the process was restarted since. Which of
	// them is not told apart: it would tell of the claims of others.
	ErrToken = errors.New("the token stands for no claim of yours: it was used, its lease ran out, or informerd was restarted; the key is to be had again")
)
