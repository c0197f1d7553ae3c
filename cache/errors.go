package cache

import (
	"errors"
	"fmt"
)

// Errors that readers branch on.
var (
	// ErrNotFound: the resource is watched and holds no such object.
	ErrNotFound = errors.New("not found")
	// ErrNotWatched: the resource is known but left out by the configuration.
	ErrNotWatched = errors.New("not watched")
	// ErrUnknownResource: no discovered resource has this name.
	ErrUnknownResource = errors.New("unknown resource")
	// ErrNotSynced: there is no data yet, which is not the same as no objects.
	ErrNotSynced = errors.New("not synced")
	// ErrExpired: the version asked for is older than what is remembered (410).
	ErrExpired = errors.New("resourceVersion is too old")
	// ErrTooNew: the version asked for was not reached in time (504).
	ErrTooNew = errors.New("resourceVersion is in the future")
	// ErrWentBack: what was read later is of an earlier version than what is held,
	// which cannot be in one history.
	ErrWentBack = errors.New("versions went back")
	// ErrStopped: the store was closed. Its resource is gone, or has another
	// store by now; or the Factory ends, and this one is still in its place.
	ErrStopped = errors.New("informer stopped")
)

// InvalidError is a mistake in what the caller asked: it names the parameter
// and says what would be right.
type InvalidError struct {
	Parameter string
	Message   string
}

func (e *InvalidError) Error() string { return e.Parameter + ": " + e.Message }

func invalidf(parameter, format string, args ...any) error {
	return &InvalidError{Parameter: parameter, Message: fmt.Sprintf(format, args...)}
}

// EvalError says that a Filter has no value for an object, for example because
// a field is missing.
type EvalError struct{ Message string }

func (e *EvalError) Error() string { return e.Message }

// CostError says that answering takes more than the limit that Message names,
// because of what Parameter asks.
type CostError struct {
	Parameter string
	Message   string
}

func (e *CostError) Error() string { return e.Parameter + ": " + e.Message }

// TooExpensive is the CostError of a Filter that costs more than limit on what.
func TooExpensive(what string, limit uint64) error {
	return &CostError{"filter", fmt.Sprintf("evaluating it on %s costs more than the limit of %d units: select fewer objects by an index, or make it simpler", what, limit)}
}
