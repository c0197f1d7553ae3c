package kubeapi

import (
	"context"
	"sync"
	"time"
)

const (
	// outagePause is how long an API server that did not answer is left alone
	// where there is something to answer with: each question would be waited for
	// in vain.
	outagePause = documentTimeout
	// tooShort is a wait that proves nothing if it is the caller who ends it.
	tooShort = time.Second
)

// outages remembers which API servers did not answer. The zero value is ready.
type outages struct {
	mu    sync.Mutex           // guards until
	until map[string]time.Time // by cluster: when to ask again
}

// last reports whether a cluster is better left alone. Of all who want to know
// after a pause, one is told to ask, and the others need not wait for it.
func (o *outages) last(cluster string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	until, silent := o.until[cluster]
	if !silent || now.Before(until) {
		return silent
	}
	o.until[cluster] = now.Add(outagePause)
	return false
}

// begin notes that a cluster did not answer to who asked at start.
func (o *outages) begin(caller context.Context, cluster string, start time.Time) {
	now := time.Now()
	if caller.Err() != nil && now.Sub(start) < tooShort {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.until == nil {
		o.until = map[string]time.Time{}
	}
	o.until[cluster] = now.Add(outagePause)
}

func (o *outages) end(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.until, cluster)
}
