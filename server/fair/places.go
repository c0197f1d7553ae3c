package fair

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFull says that there was no place within the time that was waited for one.
var ErrFull = errors.New("no place is free")

// Places bounds what goes on at once, by weight, and what of it one owner may have
// while others want something, too: half of what there is. Whoever has least is first
// when a place gets free.
type Places struct {
	limit, share int

	mu      sync.Mutex // guards all below
	taken   int
	holds   map[string]int // weight by owner
	waiting []*claimant    // in the order in which they came
}

// claimant waits for places.
type claimant struct {
	owner  string
	weight int
	ready  chan struct{}
}

// NewPlaces has room for a weight of limit.
func NewPlaces(limit int) *Places {
	return &Places{limit: limit, share: max(1, limit/2), holds: map[string]int{}}
}

// Taken is the weight that is held now, and Limit what there may be.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Limit is the weight there is room for.
func (p *Places) Limit() int { return p.limit }

// Take waits for room for weight, at most for as long as patience: then the error is
// ErrFull. A weight above the share of an owner counts as that share, so that it can
// be had at all. release gives it back, once.
func (p *Places) Take(ctx context.Context, owner string, weight int, patience time.Duration) (release func(), err error) {
	weight = max(1, min(weight, p.share))
	p.mu.Lock()
	if len(p.waiting) == 0 && p.fitsLocked(owner, weight) {
		p.grantLocked(owner, weight)
		p.mu.Unlock()
		return p.releaser(owner, weight), nil
	}
	c := &claimant{owner, weight, make(chan struct{})}
	p.waiting = append(p.waiting, c)
	p.admitLocked() // it may fit where those before it do not
	p.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	err = ErrFull
	select {
	case <-c.ready:
		return p.releaser(owner, weight), nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leaveLocked(c) { // it was let in at the same moment
		return p.releaser(owner, weight), nil
	}
	if errors.Is(err, ErrFull) {
		err = fmt.Errorf("%w: %d of %d are taken, %d of them by the one who asks", ErrFull, p.taken, p.limit, p.holds[owner])
	}
	return nil, err
}

func (p *Places) fitsLocked(owner string, weight int) bool {
	return p.taken+weight <= p.limit && p.holds[owner]+weight <= p.share
}

func (p *Places) grantLocked(owner string, weight int) {
	p.taken += weight
	p.holds[owner] += weight
}

func (p *Places) releaser(owner string, weight int) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken -= weight
		if p.holds[owner] -= weight; p.holds[owner] == 0 {
			delete(p.holds, owner)
		}
		p.admitLocked()
	})
}

// admitLocked lets in who fits, those first who hold least.
func (p *Places) admitLocked() {
	for {
		next := -1
		for i, c := range p.waiting {
			if p.fitsLocked(c.owner, c.weight) && (next < 0 || p.holds[c.owner] < p.holds[p.waiting[next].owner]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		c := p.waiting[next]
		p.waiting = append(p.waiting[:next], p.waiting[next+1:]...)
		p.grantLocked(c.owner, c.weight)
		close(c.ready)
	}
}

// leaveLocked takes c out of those who wait; false if it waits no more.
func (p *Places) leaveLocked(c *claimant) bool {
	for i, other := range p.waiting {
		if other == c {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return true
		}
	}
	return false
}
