package follow

import (
	"context"
	"sync"
)

// prepares are the Prepares under way, which can be interrupted.
type prepares struct {
	mu          sync.Mutex // guards all below
	running     map[*context.CancelFunc]struct{}
	interrupted int // by how many just now
}

// begin returns a context that ends with ctx, with end, and when it is interrupted.
func (p *prepares) begin(ctx context.Context) (prepare context.Context, end func()) {
	prepare, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interrupted > 0 {
		cancel()
	}
	if p.running == nil {
		p.running = map[*context.CancelFunc]struct{}{}
	}
	p.running[&cancel] = struct{}{}
	return prepare, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, &cancel)
	}
}

// interrupt ends those under way, and those that begin until done.
func (p *prepares) interrupt() (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interrupted++
	for cancel := range p.running {
		(*cancel)()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.interrupted--
	}
}
