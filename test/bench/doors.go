package main

import (
	"net"
	"sync"
	"time"
)

// door is a listener that can hang, as a host does whose network is gone, and flap, as a load
// balancer does without anybody behind it. What is connected already hangs and falls with it.
type door struct {
	net.Listener

	mu    sync.Mutex
	open  chan struct{} // closed while nothing hangs
	down  bool          // whoever connects is sent away
	conns map[*doorConn]bool
	calm  chan struct{} // ends the flapping
}

func newDoor(l net.Listener) *door {
	open := make(chan struct{})
	close(open)
	return &door{Listener: l, open: open, conns: map[*doorConn]bool{}}
}

func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		conn := &doorConn{Conn: c, door: d, closed: make(chan struct{})}
		d.mu.Lock()
		down := d.down
		if !down {
			d.conns[conn] = true
		}
		d.mu.Unlock()
		if !down {
			return conn, nil
		}
		c.Close()
	}
}

// hang has nothing come through from now on.
func (d *door) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = make(chan struct{})
}

// flapping is for how long one that flaps is up, and down.
const flapping = 500 * time.Millisecond

// flap has it be down and up again, over and over.
func (d *door) flap() {
	calm := make(chan struct{})
	d.mu.Lock()
	d.calm = calm
	d.mu.Unlock()
	go func() {
		for {
			d.setDown(true)
			time.Sleep(flapping)
			d.setDown(false)
			select {
			case <-calm:
				return
			case <-time.After(flapping):
			}
		}
	}()
}

func (d *door) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
	for c := range d.conns {
		if down {
			c.Conn.Close()
		}
	}
}

// beCalm ends what is wrong.
func (d *door) beCalm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.open:
	default:
		close(d.open)
	}
	if d.calm != nil {
		close(d.calm)
		d.calm = nil
	}
}

// doorConn is a connection through a door.
type doorConn struct {
	net.Conn
	door   *door
	once   sync.Once
	closed chan struct{}
}

func (c *doorConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wait()
	return n, err
}

func (c *doorConn) Write(b []byte) (int, error) {
	c.wait()
	return c.Conn.Write(b)
}

func (c *doorConn) wait() {
	c.door.mu.Lock()
	open := c.door.open
	c.door.mu.Unlock()
	select {
	case <-open:
	case <-c.closed:
	}
}

func (c *doorConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.door.mu.Lock()
		delete(c.door.conns, c)
		c.door.mu.Unlock()
	})
	return c.Conn.Close()
}
