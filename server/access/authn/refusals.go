package authn

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// refusedRate is how many tokens of one address may be nobody's in a second, and
	// refusedBurst at once: who makes up tokens has the API server work for each. Those who
	// wait together go on together, as many as there are places for them: a token is known to
	// be nobody's afterwards, and one that is good must not count.
	refusedRate  = 64
	refusedBurst = 32
	// maxAddresses is how many are remembered before those are forgotten that need not wait.
	maxAddresses = 4096
)

// errManyRefused says that an address would have to wait for longer than it may.
var errManyRefused = errors.New("many tokens of this address were refused")

// refusals are those of tokens, by the addresses they came from. They are safe for concurrent
// use, and the zero value is ready.
type refusals struct {
	mu sync.Mutex // guards of
	of map[string]*rate.Limiter
}

// wait waits until what was refused of an address is over, so that one more token of it may be
// asked about.
func (f *refusals) wait(ctx context.Context, address string) error {
	f.mu.Lock()
	l := f.of[address]
	f.mu.Unlock()
	if l == nil {
		return nil
	}
	left := time.Duration(-l.Tokens() / refusedRate * float64(time.Second))
	if left <= 0 {
		return nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < left {
		return errManyRefused
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note counts a token of an address that was refused.
func (f *refusals) note(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.of[address]
	if l == nil {
		f.forgetLocked()
		l = rate.NewLimiter(refusedRate, refusedBurst)
		f.of[address] = l
	}
	l.Reserve()
}

// forgetLocked makes room for one more.
func (f *refusals) forgetLocked() {
	if f.of == nil {
		f.of = map[string]*rate.Limiter{}
	}
	if len(f.of) < maxAddresses {
		return
	}
	for address, l := range f.of {
		if l.Tokens() >= refusedBurst {
			delete(f.of, address)
		}
	}
}
