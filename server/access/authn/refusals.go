package authn

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// refusedRest is how long an address waits after a token that is nobody's, once
	// refusedBurst were: who makes up tokens has the API server work for each.
	refusedRest  = time.Second / 64
	refusedBurst = 32
	// maxAddresses is how many are remembered before those are forgotten that need not wait.
	maxAddresses = 4096
)

// errManyRefused says that an address would have to wait for longer than it may.
var errManyRefused = errors.New("many tokens of this address were refused")

// refusals are those of tokens, by the addresses they came from. They are safe for concurrent
// use, and the zero value is ready.
type refusals struct {
	mu   sync.Mutex
	next map[string]time.Time // when what was refused of an address is paid for
}

// wait waits until one more token of an address may be asked about, and counts it as refused;
// good takes that back.
func (f *refusals) wait(ctx context.Context, address string) (good func(), err error) {
	now := time.Now()
	end, ends := ctx.Deadline()
	f.mu.Lock()
	f.forgetLocked(now)
	next := f.next[address]
	if least := now.Add(-refusedBurst * refusedRest); next.Before(least) {
		next = least
	}
	if ends && next.After(end) {
		f.mu.Unlock()
		return nil, errManyRefused
	}
	if f.next == nil {
		f.next = map[string]time.Time{}
	}
	f.next[address] = next.Add(refusedRest)
	f.mu.Unlock()
	good = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if at, ok := f.next[address]; ok {
			f.next[address] = at.Add(-refusedRest)
		}
	}
	timer := time.NewTimer(next.Sub(now)) // at once, if that is over
	defer timer.Stop()
	select {
	case <-timer.C:
		return good, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *refusals) forgetLocked(now time.Time) {
	if len(f.next) < maxAddresses {
		return
	}
	for address, at := range f.next {
		if now.Sub(at) >= refusedBurst*refusedRest {
			delete(f.next, address)
		}
	}
}
