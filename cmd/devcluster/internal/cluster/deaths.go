package cluster

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

// A component without which there is no cluster is given up after so many deaths
// within so short a time.
const (
	hopelessDeaths = 5
	hopelessWithin = time.Minute
)

// minBackOff and maxBackOff are how long a dead component waits for its revival:
// twice as long with each death, from the start again after a quiet while.
const (
	minBackOff = time.Second
	maxBackOff = 30 * time.Second
	quiet      = 2 * time.Minute
)

// death is the end of a component that nobody asked for.
type death struct {
	component string
	err       error
}

// deaths are those of one component.
type deaths struct {
	total   int
	recent  []time.Time // the last hopelessDeaths
	backOff time.Duration
}

// note counts a death and returns how long to wait before the revival.
func (d *deaths) note(now time.Time) time.Duration {
	if len(d.recent) == 0 || now.Sub(d.recent[len(d.recent)-1]) > quiet {
		d.backOff = minBackOff
	} else {
		d.backOff = min(2*d.backOff, maxBackOff)
	}
	d.total++
	d.recent = append(d.recent, now)
	d.recent = d.recent[max(0, len(d.recent)-hopelessDeaths):]
	return d.backOff
}

// hopeless says whether the component dies on and on.
func (d *deaths) hopeless(now time.Time) bool {
	return d != nil && len(d.recent) == hopelessDeaths && now.Sub(d.recent[0]) <= hopelessWithin
}

// supervise revives components that die, until ctx ends. It returns the death
// that ends the cluster: any before it was ready, and later one of etcd or of the
// last API server that goes on dying.
func (c *Cluster) supervise(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			select {
			case d := <-c.died:
				wait, err := c.noteDeath(d)
				if err != nil {
					return err
				}
				g.Go(func() error { return c.revive(ctx, d.component, wait) })
			case <-ctx.Done():
				return nil
			}
		}
	})
	return g.Wait()
}

// noteDeath tells of a death and returns how long to wait before the revival, or
// why there is none.
func (c *Cluster) noteDeath(death death) (time.Duration, error) {
	c.mu.Lock()
	if !c.ready {
		c.mu.Unlock()
		return 0, death.err
	}
	if c.deaths[death.component] == nil {
		c.deaths[death.component] = &deaths{}
	}
	d, now := c.deaths[death.component], time.Now()
	wait, total := d.note(now), d.total
	hopeless := c.hopelessLocked(death.component, now)
	c.mu.Unlock()
	c.changed()
	if hopeless {
		return 0, fmt.Errorf("%w\n%s died %d times within %v", death.err, death.component, hopelessDeaths, hopelessWithin)
	}
	c.logf("%v", death.err)
	c.logf("death %d of %s, which is started again in %v", total, death.component, wait)
	return wait, nil
}

// hopelessLocked says whether the cluster is lost with this component: etcd, or
// an API server when the others that nobody stopped die on and on as well.
func (c *Cluster) hopelessLocked(component string, now time.Time) bool {
	if component == etcd {
		return c.deaths[etcd].hopeless(now)
	}
	if applet(component) != apiServer {
		return false
	}
	for _, name := range c.apiServers() {
		stopped := name != component && c.processes[name].Status().State == process.Stopped
		if !stopped && !c.deaths[name].hopeless(now) {
			return false
		}
	}
	return true
}

// revive starts a component that died, unless it was started or stopped on
// request meanwhile. An attempt that fails is one more death.
func (c *Cluster) revive(ctx context.Context, component string, wait time.Duration) error {
	sleep(ctx, wait)
	if ctx.Err() != nil {
		return nil
	}
	if err := c.processes[component].Revive(ctx); err != nil && ctx.Err() == nil {
		c.died <- death{component, err}
	}
	return nil
}
