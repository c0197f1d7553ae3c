package kafkasink

import (
	"context"
	"sync"
)

// attempt is a record that the client has.
type attempt struct {
	id   string
	done chan struct{} // closed when its fate is known
	err  error         // why it was not written; read it after done
}

func (a *attempt) end(err error) {
	a.err = err
	close(a.done)
}

// wait reports whether it ended before ctx did.
func (a *attempt) wait(ctx context.Context) bool {
	select {
	case <-a.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempts are those that nobody has heard the end of, by key.
//
// A record that was sent and not acknowledged may have been written. The client does not give
// it up: only so it is neither written twice nor after a later one. A delivery is given up
// after its timeout, and is repeated; then it waits for the record of before.
type attempts struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]*attempt
}

func (a *attempts) of(key string) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byKey[key]
}

func (a *attempts) begin(key, id string) *attempt {
	made := &attempt{id: id, done: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[string]*attempt{}
	}
	a.byKey[key] = made
	return made
}

func (a *attempts) forget(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byKey, key)
}
