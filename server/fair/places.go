package fair

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFull says that there was no place within the time that was waited for one, or that
// so many wait already that it is no use to.
var ErrFull = errors.New("no place is free")

const (
	// waitersPerPlace bounds who waits: so many for each place there is.
	waitersPerPlace = 16
	// ownersShare is the part of them that are of one owner, at most.
	ownersShare = 4
)

// Places bounds what goes on at once, by weight, and what of it one owner may have: no
// more than is free before they get the last of it. One alone may have half of what there is,
// two who come at once may have a third each, and whoever comes then finds a third. These are the dynamic thresholds of Choudhury
// and Hahne (1998), of switches whose ports share a memory. Whoever has least is first when
// a place gets free.
//
// Who waits is bounded as well, since each costs memory: 16 for each place, of which one
// owner has at most a quarter. When all of these wait, whoever comes takes the turn of
// the last one of the owner who has most of them, as long as that has more than they
// have: many who wait do not keep out one who does not.
type Places struct {
	limit, share int

	mu     sync.Mutex // guards all below
	taken  int
	owners map[string]*holder // those who hold places or wait for some
	queued lobby
}

// NewPlaces has room for a weight of limit.
func NewPlaces(limit int) *Places {
	return &Places{limit: limit, share: max(1, limit/2), owners: map[string]*holder{}}
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
// ErrFull, as it is at once where too many wait. A weight above half of what there is
// counts as that half, so that it can be had at all. release gives it back, once.
func (p *Places) Take(ctx context.Context, owner string, weight int, patience time.Duration) (release func(), err error) {
	weight = max(1, min(weight, p.share))
	p.mu.Lock()
	o := p.ownerLocked(owner)
	// Of those who wait none fits, or it would have been let in.
	if p.fits(o, weight) {
		p.grantLocked(o, weight)
		p.mu.Unlock()
		return p.releaser(o, weight), nil
	}
	if patience <= 0 || !p.roomLocked(o) {
		defer p.mu.Unlock()
		defer p.forgetLocked(o)
		return nil, p.fullLocked(o)
	}
	c := p.queued.join(o, weight)
	p.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	err = ErrFull
	select {
	case <-c.ready:
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.admitted { // perhaps at the moment when it gave up
		return p.releaser(o, weight), nil
	}
	if c.waits() {
		p.queued.leave(c)
	}
	if errors.Is(err, ErrFull) {
		err = p.fullLocked(o)
	}
	p.forgetLocked(o)
	return nil, err
}

func (p *Places) ownerLocked(name string) *holder {
	o := p.owners[name]
	if o == nil {
		o = &holder{name: name}
		p.owners[name] = o
	}
	return o
}

// forgetLocked drops an owner who has nothing and waits for nothing.
func (p *Places) forgetLocked(o *holder) {
	if o.holds == 0 && o.waiting == 0 && p.owners[o.name] == o {
		delete(p.owners, o.name)
	}
}

func (p *Places) fits(o *holder, weight int) bool {
	return o.holds+weight <= min(p.share, p.limit-p.taken)
}

func (p *Places) fullLocked(o *holder) error {
	return fmt.Errorf("%w: %d of %d are taken, %d of them by the one who asks, who may have no more than are free, and %d wait", ErrFull, p.taken, p.limit, o.holds, p.queued.waiting)
}

// roomLocked reports whether one more of an owner may wait, and makes the room if that
// is for somebody else to give.
func (p *Places) roomLocked(o *holder) bool {
	most := max(1, waitersPerPlace*p.limit)
	if o.waiting >= max(1, most/ownersShare) {
		return false
	}
	if p.queued.waiting < most {
		return true
	}
	crowd := p.queued.crowd()
	if crowd.waiting <= o.waiting+1 {
		return false
	}
	last := crowd.last()
	p.queued.leave(last)
	close(last.ready)
	return true
}

func (p *Places) grantLocked(o *holder, weight int) {
	p.taken += weight
	o.holds += weight
	p.queued.moved(o)
}

func (p *Places) releaser(o *holder, weight int) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken -= weight
		o.holds -= weight
		p.queued.moved(o)
		p.admitLocked()
		p.forgetLocked(o)
	})
}

// admitLocked lets in who fits, those first who hold least.
func (p *Places) admitLocked() {
	for {
		c := p.queued.first(p.fits)
		if c == nil {
			return
		}
		p.queued.leave(c)
		p.grantLocked(c.owner, c.weight)
		c.admitted = true
		close(c.ready)
	}
}
