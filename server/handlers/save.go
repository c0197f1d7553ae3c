package handlers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
)

// Save considers every event that was published so far, and gives commit what is to be saved
// then: so a copy that is restored is never ahead of what its handlers know. It implements
// replica.Beside.
func (m *Manager) Save(commit func([]cache.LedgerChange) error) error {
	m.saver.saving.Lock()
	defer m.saver.saving.Unlock()
	running, removed := m.takeAll()
	for _, h := range running {
		h.drain()
	}
	var changes []cache.LedgerChange
	var all []taken
	for name := range removed {
		changes = append(changes, cache.LedgerChange{Name: name, Reset: true})
	}
	for _, h := range running {
		h.mu.Lock()
		c, t, ok := h.takeLocked()
		h.mu.Unlock()
		if ok {
			changes, all = append(changes, c), append(all, t)
		}
	}
	err := commit(changes)
	if err == nil {
		return nil
	}
	for _, t := range all {
		t.h.mu.Lock()
		t.giveBackLocked()
		t.h.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range removed {
		if m.handlers[name] == nil {
			m.removed[name] = struct{}{}
		}
	}
	return err
}

// takeAll are the handlers that run, without those whose ledger could not be read, and the
// names of those that are to be forgotten, of one moment: one that is taken out meanwhile is
// forgotten with the next save.
func (m *Manager) takeAll() (running []*running, removed map[string]struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	removed, m.removed = m.removed, map[string]struct{}{}
	for _, h := range m.allLocked() {
		if !h.isUnread() {
			running = append(running, h)
		}
	}
	return running, removed
}

// SaveAnew makes the next Save hold everything. It implements replica.Beside.
func (m *Manager) SaveAnew() {
	for _, h := range m.all() {
		h.mu.Lock()
		h.anew = true
		h.mu.Unlock()
	}
}

// drain considers what all lines have not yet. Their errors are found by those who run them.
func (h *running) drain() {
	h.mu.Lock()
	lines := make([]*line, 0, len(h.lines))
	for _, l := range h.lines {
		lines = append(lines, l)
	}
	h.mu.Unlock()
	for _, l := range lines {
		_ = l.drain()
	}
}

// saver saves for those who wait for it: one save for all that came while the one before was
// under way.
type saver struct {
	saving sync.Mutex // one Save at a time: a later one must not be overtaken by an earlier

	mu      sync.Mutex // guards all below
	waiting []chan error
	some    chan struct{} // made by run; closed: nobody saves any more
	ended   bool
	err     error // of the last save, nil if it went well
}

// saveRetry is how long a save that failed waits for the next.
const saveRetry = time.Second

func (s *saver) wait(ctx context.Context) error {
	done := make(chan error, 1)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return context.Canceled
	}
	s.waiting = append(s.waiting, done)
	s.signalLocked()
	s.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *saver) signalLocked() {
	if s.some == nil {
		s.some = make(chan struct{}, 1)
	}
	select {
	case s.some <- struct{}{}:
	default:
	}
}

// run saves until ctx ends. Who waits then is told so.
func (s *saver) run(ctx context.Context, save func() error, log *slog.Logger) {
	s.mu.Lock()
	s.signalLocked()
	some := s.some
	s.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			s.end()
			return
		case <-some:
		}
		s.saveAll(ctx, save, log)
	}
}

func (s *saver) saveAll(ctx context.Context, save func() error, log *slog.Logger) {
	s.mu.Lock()
	waiting, before := s.waiting, s.err
	s.waiting = nil
	s.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	err := save()
	switch {
	case err != nil && before == nil:
		log.Error("what handlers delivered cannot be saved: deliveries wait until it can", "err", err)
	case err == nil && before != nil:
		log.Info("what handlers delivered is saved again")
	}
	s.mu.Lock()
	s.err = err
	if err != nil {
		s.waiting = append(waiting, s.waiting...)
	}
	s.mu.Unlock()
	if err == nil {
		for _, done := range waiting {
			done <- nil
		}
		return
	}
	sleep(ctx, saveRetry)
	s.mu.Lock()
	s.signalLocked()
	s.mu.Unlock()
}

func (s *saver) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, done := range s.waiting {
		done <- context.Canceled
	}
	s.waiting = nil
}

// trouble is why what was delivered cannot be saved; "" if it can.
func (s *saver) trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}
