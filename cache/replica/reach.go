package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One goroutine a cluster finds out whether its API server answers. However many
// resources meet a fault, it is looked into once, said once, and while the server
// is away it alone asks, so that a dead server costs a request a second at most.
const (
	// probeTimeout is how long an answer may take before the server counts as away.
	probeTimeout = 5 * time.Second
	// probeTries is how many probes must fail one after the other. Behind a
	// balancer the next one may meet another server.
	probeTries = 3
	// probePause is the longest pause between two probes of a server that is away:
	// its return is noticed that soon.
	probePause = time.Second
)

// report notes what became of a request. What may concern the cluster as a whole is
// looked into; an answer that refuses, or an error of this side of the connection,
// concerns nobody else.
func (c *cluster) report(err error) {
	switch code := statusCode(err); {
	case err == nil:
		return
	case code >= 500, code == http.StatusUnauthorized:
	case code != 0, errors.Is(err, context.Canceled), !isTransport(err):
		return
	}
	select {
	case c.suspicion <- struct{}{}:
	default:
	}
}

// watchOver probes the API server whenever something speaks against it, until ctx
// ends.
func (c *cluster) watchOver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.connected:
		case <-c.suspicion:
		case <-c.calm():
			c.calmed()
			continue
		}
		c.lookInto(ctx)
	}
}

// calm is when a server that answered by turns will have answered for long enough; nil,
// which is never, if it did not.
func (c *cluster) calm() <-chan time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if remaining, ok := c.turns.remaining(time.Now()); ok {
		return time.After(remaining)
	}
	return nil
}

// calmed says so when a server that answered by turns does answer.
func (c *cluster) calmed() {
	c.mu.Lock()
	over := c.turns.over(time.Now())
	c.mu.Unlock()
	if over {
		c.log.Info("API server answers")
	}
}

// lookInto returns when the API server answers.
func (c *cluster) lookInto(ctx context.Context) {
	backoff := c.retry.backoff()
	for failed := 0; ctx.Err() == nil; {
		err := c.probe(ctx)
		if err == nil {
			c.setError(nil)
			return
		}
		if failed++; failed >= probeTries && ctx.Err() == nil {
			c.setError(err)
		}
		select {
		case <-ctx.Done():
		case <-c.connected:
		case <-time.After(min(backoff.Step(), probePause)):
		}
	}
}

// probe asks for something small that comes from etcd. Whoever may not have it is
// answered all the same.
func (c *cluster) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := c.metadataAt(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, "")
	switch {
	case err == nil, apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil
	default:
		return fmt.Errorf("probe: %w", err)
	}
}

// awaitReachable returns when the API server is not known to be away; false when
// ctx ended first.
func (c *cluster) awaitReachable(ctx context.Context) bool {
	c.mu.RLock()
	away := c.away
	c.mu.RUnlock()
	if away == nil {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-away:
		return true
	}
}

// pause waits between two attempts, no longer than until the server returns from an
// absence. It reports false when ctx ended first.
func (c *cluster) pause(ctx context.Context, d time.Duration) bool {
	back := c.nextReturn()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-back:
		return true
	case <-t.C:
		return true
	}
}

// nextReturn is closed when the API server returns from an absence, the present one or
// the next, and is another one from then on.
func (c *cluster) nextReturn() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.back
}

// setError notes that the API server answers (nil) or why it does not, and logs
// the change.
func (c *cluster) setError(err error) {
	c.mu.Lock()
	changed := c.reached != (err == nil)
	was := c.err
	c.reached, c.err = err == nil, err
	var tell, many bool
	if changed {
		c.since = time.Now()
		tell, many = c.turns.changed(c.since)
	}
	switch {
	case err == nil && c.away != nil:
		close(c.away)
		close(c.back)
		c.away, c.back = nil, make(chan struct{})
	case err != nil && c.away == nil && c.http != nil:
		c.away = make(chan struct{})
	}
	c.mu.Unlock()
	switch {
	case many:
		c.log.Warn("API server answers by turns, trying on", "err", cmp.Or(err, was))
	case tell && err == nil:
		c.log.Info("API server answers")
	case tell:
		c.log.Warn("API server does not answer, trying on", "err", err)
	}
}

// isTransport reports whether a request failed on its way.
func isTransport(err error) bool {
	var onTheWay *url.Error
	var network net.Error
	return errors.As(err, &onTheWay) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
