package cache

import (
	"context"
	"sync"
	"sync/atomic"
)

// await waits for a change. It returns ErrStopped where done is closed, and the error of ctx.
func await(ctx context.Context, changed, done <-chan struct{}) error {
	defer Pause(ctx)()
	select {
	case <-changed:
		return nil
	case <-done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitVersion blocks until every source of the Store has reached version, but
// for those that the API server refuses: they may never. It returns ErrTooNew
// when ctx ends first, ErrStopped when the Store closed, and an *InvalidError for
// what is no resourceVersion; "" and "0" ask for nothing.
func (s *Store) WaitVersion(ctx context.Context, version string) error {
	return s.WaitVersionIn(ctx, "", version)
}

// WaitVersionIn is WaitVersion for one namespace: it does not wait for what
// watches others. The namespace "" is all of them.
func (s *Store) WaitVersionIn(ctx context.Context, namespace, version string) error {
	if version == "" || version == "0" {
		return nil
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	for {
		changed := s.notify.wait(context.Background()) // it ends with one wake
		reached, closed := s.reached(namespace, version)
		switch {
		case reached:
			return nil
		case closed:
			return ErrStopped
		}
		if await(ctx, changed, nil) != nil {
			if reached, _ := s.reached(namespace, version); reached {
				return nil
			}
			return ErrTooNew
		}
	}
}

func (s *Store) reached(namespace, version string) (reached, closed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if namespace != "" {
		src := s.sourceOf(namespace)
		return src != nil && src.reached(version), s.closed
	}
	for _, src := range s.sources {
		if src.refused {
			continue
		}
		if reached = src.reached(version); !reached {
			break
		}
	}
	return reached, s.closed
}

func (p *progress) reached(version string) bool {
	return p.synced && !p.refused && !Newer(version, p.version)
}

// maxEvents bounds what one Next returns.
const maxEvents = 256

// Subscription reads the events of a Store in order. It is a position in the
// Store's ring of recent events and nothing more: a slow reader holds up nobody
// and costs no memory. Next must not be called concurrently.
type Subscription struct {
	store  *Store
	scope  Scope // events of other objects are passed over
	next   uint64
	future string // events up to this version are passed over
	// proofs makes Next return for a new proof, too; told is how many of them Proven has
	// told of.
	proofs bool
	told   uint64
	closed atomic.Bool
	done   chan struct{}

	mu      sync.Mutex // guards version
	version string
}

// Watch returns a Subscription that delivers everything after from, or after
// now when from is empty. A version that the Store has not reached yet is waited
// for. It returns ErrExpired when the events after from are no longer
// remembered, and ErrNotSynced when there is nothing to begin with yet.
//
// With several sources, events that leave the Store's version alone may be
// delivered although from covers them: at least once, never less.
func (s *Store) Watch(from string) (*Subscription, error) { return s.watch(from, WholeScope()) }

func (s *Store) watch(from string, scope Scope) (*Subscription, error) {
	if from != "" {
		if err := checkVersion(from); err != nil {
			return nil, err
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrStopped
	}
	if err := s.askableLocked(); err != nil {
		return nil, err
	}
	sub := &Subscription{store: s, scope: scope, next: s.ring.next, version: s.version, done: make(chan struct{})}
	if s.gaps.within(from) {
		return nil, ErrExpired
	}
	if from != "" {
		next, ok := s.ring.seek(from, s.version)
		if !ok {
			return nil, ErrExpired
		}
		sub.next, sub.version = next, from
		if Newer(from, s.version) {
			sub.future = from
		}
	}
	s.subscribers.Add(1)
	return sub, nil
}

// Version is where the Subscription stands: everything up to it was delivered.
func (u *Subscription) Version() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.version
}

// Close ends the Subscription; a Next that waits returns ErrStopped.
func (u *Subscription) Close() {
	if u.closed.Swap(true) {
		return
	}
	close(u.done)
	u.store.subscribers.Add(-1)
}

// Next blocks until there is at least one event, see also FollowProofs. It returns ErrExpired when the
// reader was so slow that events it has not read are forgotten, ErrStopped after
// the last event of a Store that closed, and the error of ctx.
func (u *Subscription) Next(ctx context.Context) ([]Event, error) {
	for {
		if u.closed.Load() {
			return nil, ErrStopped
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		changed := u.store.notify.wait(ctx)
		events, more, err := u.read()
		if len(events) > 0 || err != nil {
			return events, err
		}
		if more {
			continue
		}
		if u.proofs && u.store.proofs.Load() != u.told {
			return nil, nil
		}
		if err := await(ctx, changed, u.done); err != nil {
			return nil, err
		}
	}
}

// FollowProofs makes Next return without events, too, when the Store was proven current,
// until Proven was called. To begin with, it may have been a moment ago. None of these
// may be called concurrently.
func (u *Subscription) FollowProofs() {
	u.proofs, u.told = true, u.store.proofs.Load()-1
}

// Proven reports whether the Store may have been proven current since it was last
// called, to a Subscription that follows that.
func (u *Subscription) Proven() bool {
	told := u.told
	if u.proofs {
		u.told = u.store.proofs.Load()
	}
	return told != u.told
}

// Changed returns a channel that the next change of the Store closes, and its Close. Take
// it first, then Poll until there are no events, then receive: what happens in between
// closes it. Changes of what a Scope hides, and of the version alone, close it too. It tells
// nothing of the Subscription's own Close.
func (u *Subscription) Changed() <-chan struct{} { return u.store.notify.wait(context.Background()) }

// Poll is Next for those who do not wait: no events when there are none. It sees all that
// was published when it is called.
func (u *Subscription) Poll() ([]Event, error) {
	if u.closed.Load() {
		return nil, ErrStopped
	}
	for {
		events, more, err := u.read()
		if len(events) > 0 || err != nil || !more {
			return events, err
		}
	}
}

// read returns what is there; more says that there may be more at once.
func (u *Subscription) read() (events []Event, more bool, err error) {
	s := u.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if u.next < s.ring.first || u.future != "" && s.gaps.within(u.future) {
		return nil, false, ErrExpired
	}
	end := min(s.ring.next, u.next+maxEvents)
	for ; u.next < end; u.next++ {
		e := s.ring.at(u.next)
		if u.future != "" && !Newer(e.after, u.future) {
			continue
		}
		if !u.scope.all && !u.scope.Sees(e.Object.Key()) {
			continue
		}
		if events == nil {
			events = make([]Event, 0, end-u.next)
		}
		events = append(events, e.Event)
	}
	u.advance(events, s.version)
	if s.closed && len(events) == 0 && u.next == s.ring.next {
		return nil, false, ErrStopped
	}
	return events, u.next < s.ring.next, nil
}

// advance notes how far the reader is: to the last event it was given, or to
// where the Store is when it has read all of them.
func (u *Subscription) advance(events []Event, version string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(events); n > 0 {
		u.version = events[n-1].Resume
	}
	if u.next == u.store.ring.next && (u.future == "" || Newer(version, u.future)) {
		u.version = version
	}
}
