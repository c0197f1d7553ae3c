package follow

import "sync"

// haste says whether somebody waits for what is done.
type haste struct {
	mu      sync.Mutex // guards all below
	waiting int
	hurry   chan struct{} // closed when somebody begins to wait; nil: nobody looks
}

// begin is called by who waits; done ends it.
func (h *haste) begin() (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting++; h.hurry != nil {
		close(h.hurry)
		h.hurry = nil
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waiting--
	}
}

// begun is closed when somebody begins to wait; nil: somebody does.
func (h *haste) begun() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting > 0 {
		return nil
	}
	if h.hurry == nil {
		h.hurry = make(chan struct{})
	}
	return h.hurry
}
