package handlers

// Rest has every handler wait until what is known of it can be read again: another process has
// taken over its ledger, and delivers. Ledgers must be out of reach by then (cache.ErrAway), and
// stay so until it is this process that delivers; why is what people are told. What was under
// way and is not saved may be delivered once more, by whoever took over. Rest returns when
// nothing is under way.
func (m *Manager) Rest(why error) {
	m.applying.Lock()
	defer m.applying.Unlock()
	for _, h := range m.all() {
		if !h.isUnread() {
			m.rest(h, why)
		}
	}
}

// rest puts a handler that waits in the place of one that runs. From the first step on nothing
// more is saved of that one, see durable.
func (m *Manager) rest(h *running, why error) {
	h.mu.Lock()
	h.unread = why
	h.mu.Unlock()
	h.remove()
	h.halt()
	next := newRunning(m, *h.asked())
	next.unread = why
	m.install(next)
}
