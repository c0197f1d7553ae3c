package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/informerd/informerd/cache"
)

// unreadInterval is how often a ledger is asked for that was out of reach.
const unreadInterval = time.Second

// readUnread asks for what was out of reach.
func (m *Manager) readUnread(ctx context.Context) {
	m.applying.Lock()
	defer m.applying.Unlock()
	for _, h := range m.all() {
		if h.isUnread() && ctx.Err() == nil {
			m.read(h)
		}
	}
	if !m.unlisted || ctx.Err() != nil {
		return
	}
	if err := m.forgetOthers(); err != nil && !errors.Is(err, cache.ErrAway) {
		m.options.Log.Error("ledgers of handlers that are not configured any more may be left", "err", err)
	}
}

// read begins with a handler that waits for its ledger, once that can be read. Called with
// applying.
func (m *Manager) read(h *running) {
	m.saver.saving.Lock()
	defer m.saver.saving.Unlock()
	next := newRunning(m, *h.asked())
	err := next.load(m.options.Ledgers)
	switch {
	case errors.Is(err, cache.ErrAway):
		next.discard()
		h.mu.Lock()
		h.unread = err
		h.mu.Unlock()
		return
	case err != nil:
		m.options.Log.Error("what was known of a handler cannot be read: it begins anew", "handler", h.name, "err", err)
		next.discard()
		next = newRunning(m, *h.asked())
		next.anew = true
	default:
		m.options.Log.Info("what was known of a handler is read: it goes on", "handler", h.name)
	}
	m.install(next)
	h.discard()
}

// isUnread reports whether what was known of the handler is out of reach. It does nothing
// then, and nothing is saved of it.
func (h *running) isUnread() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unread != nil
}

// discard ends a handler that was never started. Its sink is another's.
func (h *running) discard() {
	h.remove()
	h.queue.ShutDown()
}
