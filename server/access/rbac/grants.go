package rbac

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/informerd/informerd/cache/follow"
)

// Options of Grants. Every zero value is useful.
type Options struct {
	// Interval is how often Run looks for changes; 0: 250 ms.
	Interval time.Duration
	// Users is how many users' rights are kept ready, at least; 0: 1024.
	Users int
	// MaxAge is how long ago the API server may have proved a role or a binding that is
	// not live for rights to be told from it; 0: DefaultMaxAge, less: any time.
	MaxAge time.Duration
}

// DefaultMaxAge is for how long an outage of the API server goes unnoticed by users.
const DefaultMaxAge = 5 * time.Minute

// User is who asks, as authentication tells; user.Info of k8s.io/apiserver is one.
type User interface {
	GetName() string
	GetGroups() []string
}

// Grants are the roles and bindings of one cluster. They are safe for concurrent
// use.
type Grants struct {
	resources func() []follow.Resource
	updater   *follow.Updater[*parsed]
	interval  time.Duration
	maxAge    time.Duration

	mu sync.RWMutex // guards all below; taken before known.mu
	*state
	sources    sources
	told       bool // sources could be read when Learn looked last
	generation uint64
	changed    chan struct{}

	known known
}

// New makes Grants over resources, which is called with every question and lists
// the resources of one cluster: all of them, or the four that matter.
func New(resources func() []follow.Resource, opts Options) *Grants {
	g := &Grants{
		resources: resources,
		interval:  opts.Interval,
		maxAge:    opts.MaxAge,
		state:     newState(),
		changed:   make(chan struct{}),
	}
	if g.interval <= 0 {
		g.interval = 250 * time.Millisecond
	}
	if g.maxAge == 0 {
		g.maxAge = DefaultMaxAge
	}
	if opts.Users <= 0 {
		opts.Users = 1024
	}
	g.known = newKnown(opts.Users)
	g.updater = follow.NewUpdater(func() []follow.Resource { return four(g.resources()) }, sink{g})
	return g
}

// Rights are what a user may do, as of now. An *UnreadableError says what cannot be
// read of roles and bindings, or is too old: then it is not known, and nothing may be told.
func (g *Grants) Rights(ctx context.Context, u User) (*Rights, error) {
	// Nobody waits here while roles stay what they are. What time alone changes is for
	// Update to take in.
	if err := g.updater.Current(ctx, g.mu.RLocker()); err != nil {
		return nil, fmt.Errorf("read roles and bindings: %w", err)
	}
	unknown := g.sources.err(g.maxAge)
	if (unknown == nil) != g.told {
		g.mu.RUnlock()
		if err := g.updater.Update(ctx, g.mu.RLocker()); err != nil {
			return nil, fmt.Errorf("read roles and bindings: %w", err)
		}
		unknown = g.sources.err(g.maxAge)
	}
	defer g.mu.RUnlock()
	if unknown != nil {
		return nil, unknown
	}
	return g.known.rights(g.state, u), nil
}

// Update takes in what changed since the last time, as Rights does first.
func (g *Grants) Update(ctx context.Context) error {
	if err := g.updater.Update(ctx, g.mu.RLocker()); err != nil {
		return fmt.Errorf("read roles and bindings: %w", err)
	}
	g.mu.RUnlock()
	return nil
}

// Run looks for changes until ctx ends, so that Changed tells of them soon although
// nobody asks.
func (g *Grants) Run(ctx context.Context) error {
	ticker := time.NewTicker(g.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := g.Update(ctx); err != nil && ctx.Err() == nil {
			// Whoever relies on rights told before has to ask again, and gets the error.
			g.mu.Lock()
			g.raise()
			g.mu.Unlock()
		}
	}
}

// Generation rises whenever rights may have changed, or whether they can be told.
func (g *Grants) Generation() uint64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.generation
}

// Changed is closed when the Generation rises. Who took it before asking for Rights
// misses no change of them. The rights of most users are the same after it, and so
// is their Digest.
func (g *Grants) Changed() <-chan struct{} {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.changed
}

// raise makes a new generation. The caller holds mu.
func (g *Grants) raise() {
	g.generation++
	close(g.changed)
	g.changed = make(chan struct{})
}

// Stats are counts as of the last update.
type Stats struct {
	Roles    int // those only named by bindings included
	Rulesets int // different ones
	Bindings int
	Grantees int // users and groups with bindings
	// Unread counts objects that could not be read. They grant nothing.
	Unread uint64
}

// Stats returns the counts of Grants.
func (g *Grants) Stats() Stats {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return Stats{
		Roles:    len(g.roles.byKey),
		Rulesets: len(g.roles.sets),
		Bindings: len(g.local.rows) + len(g.cluster.rows),
		Grantees: len(g.grantees.ids),
		Unread:   g.unread,
	}
}

// Close forgets everything. Grants remain usable and begin anew.
func (g *Grants) Close() { g.updater.Close() }
