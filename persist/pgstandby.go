package persist

import (
	"errors"

	"github.com/informerd/informerd/cache"
)

// Several informerds that share a database are one writer and those that stand by. Which one
// writes is decided elsewhere, by a Lease; here it only matters that who stands by reads, and
// neither writes nor takes over. The fence holds whatever is decided: of two that believe to be
// the writer, the one that took over last is.

var (
	// errStandby: this one stands by.
	errStandby = errors.New("another replica writes it")
	// errNoTables: there are none to be read yet.
	errNoTables = errors.New("no replica has made its tables yet")
)

// IsStandby reports whether this Postgres only reads, for now: it was told to stand by, or is
// told to lead and has not taken over yet. Whoever saves has nothing to do then.
func (p *Postgres) IsStandby() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.standby || p.options.Standby && p.held.epoch == 0
}

// standsBy reports whether it was told to stand by.
func (p *Postgres) standsBy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.standby
}

// Lead makes this Postgres the writer, which takes over from whoever was. It does not wait
// for it. It changes nothing if it is the writer and nobody has taken over since.
func (p *Postgres) Lead() {
	over := p.link.isOver()
	p.mu.Lock()
	changes := p.standby || over
	p.standby = false
	if over {
		p.held = fence{}
	}
	p.mu.Unlock()
	if changes {
		p.link.renew()
	}
}

// StandBy ends writing: what is under way succeeds or not, and nothing follows.
func (p *Postgres) StandBy() {
	p.mu.Lock()
	was := p.standby
	p.standby, p.held = true, fence{}
	clear(p.sweeps.due) // who writes finds them in the database
	p.mu.Unlock()
	if !was {
		p.link.renew()
	}
}

var _ interface {
	cache.Snapshots
	IsStandby() bool
} = (*Postgres)(nil)
