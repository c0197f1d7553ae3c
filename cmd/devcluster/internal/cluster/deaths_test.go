package cluster

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

func TestBackOff(t *testing.T) {
	var d deaths
	now := time.Now()
	for i, want := range []int{1, 2, 4, 8, 16, 30, 30} {
		if got := d.note(now); got != time.Duration(want)*time.Second {
			t.Errorf("after death %d: %v, want %d s", i+1, got, want)
		}
		now = now.Add(40 * time.Second)
	}
	if got := d.note(now.Add(quiet)); got != minBackOff {
		t.Errorf("after a quiet while: %v, want %v", got, minBackOff)
	}
	if d.total != 8 {
		t.Errorf("%d deaths counted, want 8", d.total)
	}
}

func TestHopeless(t *testing.T) {
	var d deaths
	now := time.Now()
	for range hopelessDeaths {
		if d.hopeless(now) {
			t.Error("given up too early")
		}
		now = now.Add(14 * time.Second)
		d.note(now)
	}
	if !d.hopeless(now) {
		t.Error("five deaths in 56 s, and there is hope")
	}
	now = now.Add(40 * time.Second)
	d.note(now)
	if d.hopeless(now) {
		t.Error("given up although the deaths are further apart")
	}
}

// TestNoteDeath: which deaths end a cluster.
func TestNoteDeath(t *testing.T) {
	newReady := func() *Cluster {
		c := newCluster(Options{Dir: t.TempDir(), APIServers: 2, Components: Components, Stderr: io.Discard})
		var err error
		if c.creds, err = openCredentials(c.opts.Dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range c.names {
			c.processes[name] = process.New(process.Options{Name: name, Path: "/bin/sleep", Args: []string{"60"}, Log: c.opts.Dir + "/log"})
			if err := c.processes[name].Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.processes[name].Kill() })
		}
		c.ready = true
		return c
	}
	died := errors.New("died")
	die := func(c *Cluster, component string, times int) (err error) {
		for range times {
			_, err = c.noteDeath(death{component, died})
		}
		return err
	}

	c := newReady()
	c.ready = false
	if err := die(c, scheduler, 1); !errors.Is(err, died) {
		t.Errorf("a death before the cluster is ready: %v", err)
	}
	c = newReady()
	if err := die(c, scheduler, 20); err != nil {
		t.Errorf("deaths of a component that can be missing: %v", err)
	}
	if err := die(c, etcd, 4); err != nil {
		t.Errorf("four deaths of etcd: %v", err)
	}
	if err := die(c, etcd, 1); !errors.Is(err, died) {
		t.Errorf("the fifth death of etcd: %v", err)
	}
	c = newReady()
	if err := die(c, apiServer, 9); err != nil {
		t.Errorf("one of two API servers dies: %v", err)
	}
	if err := die(c, "kube-apiserver-2", 5); !errors.Is(err, died) {
		t.Errorf("the other one too: %v", err)
	}
	c = newReady()
	if err := c.processes["kube-apiserver-2"].Stop(); err != nil {
		t.Fatal(err)
	}
	if err := die(c, apiServer, 5); !errors.Is(err, died) {
		t.Errorf("one dies, the other was stopped: %v", err)
	}
}
