// Package balancer spreads TCP connections over the API servers of a devcluster,
// and misbehaves on request. It is a balancer of connections: it knows nothing
// of what they carry and asks no backend whether it is well. One that refuses a
// connection is skipped; one that is frozen accepts, and so keeps its share.
package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Backend is where connections can be led to.
type Backend struct {
	Name    string
	Address string // host:port
}

// Modes, as Order takes them. The others of Order change no mode.
const (
	normal = "normal"
	reset  = "reset"
	hold   = "hold"
	only   = "only"
	drop   = "drop"
)

// State is a snapshot of a Balancer.
type State struct {
	Mode     string         `json:"mode"`
	Accepted int            `json:"accepted"` // connections since the start
	Backends []BackendState `json:"backends"`
}

// BackendState is a snapshot of one backend.
type BackendState struct {
	Component      string `json:"component"`
	Address        string `json:"address"`
	Out            bool   `json:"out,omitempty"` // gets no new connections
	BytesPerSecond int    `json:"bytesPerSecond,omitempty"`
	Connections    int    `json:"connections"`
}

// Balancer is one balancer. Its methods may be called concurrently.
type Balancer struct {
	mu       sync.Mutex // guards all below
	mode     string
	backends []*backend
	next     int // backend whose turn it is
	accepted int
	conns    map[*conn]struct{}
	changed  chan struct{} // closed and replaced with each order
}

type backend struct {
	Backend
	out  bool
	rate int // bytes a second on each connection from it; 0: no limit
}

// New returns a balancer over the given backends.
func New(backends ...Backend) *Balancer {
	b := &Balancer{mode: normal, conns: map[*conn]struct{}{}, changed: make(chan struct{})}
	for _, to := range backends {
		b.backends = append(b.backends, &backend{Backend: to})
	}
	return b
}

// Serve accepts connections until ctx ends, and then resets all of them. It
// returns after its last goroutine has.
func (b *Balancer) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var carried sync.WaitGroup
	for {
		client, err := listener.Accept()
		if err != nil {
			_ = listener.Close()
			b.cut(nil)
			carried.Wait()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept for the API servers: %w", err)
		}
		carried.Go(func() { b.carry(ctx, client.(*net.TCPConn)) })
	}
}

// Order carries out one of `ctl balancer`'s arguments; none at all is a question.
func (b *Balancer) Order(args ...string) (State, error) {
	if len(args) == 0 {
		return b.State(), nil
	}
	order, args := args[0], args[1:]
	var to *backend
	if len(args) > 0 {
		if to = b.find(args[0]); to == nil {
			return State{}, fmt.Errorf("the balancer has no backend %q", args[0])
		}
	}
	want := map[string][2]int{normal: {0, 0}, reset: {0, 0}, hold: {0, 0}, only: {1, 1}, drop: {1, 1}, "cut": {0, 1}, "slow": {2, 2}}
	count, ok := want[order]
	if !ok {
		return State{}, fmt.Errorf("unknown mode %q; there are: normal, reset, hold, only, drop, cut, slow", order)
	}
	if len(args) < count[0] || len(args) > count[1] {
		return State{}, fmt.Errorf("balancer %s takes other arguments than %q", order, args)
	}
	switch order {
	case "cut":
		b.cut(to)
	case "slow":
		rate, err := strconv.Atoi(args[1])
		if err != nil || rate < 0 {
			return State{}, fmt.Errorf("%q is not a number of bytes a second", args[1])
		}
		b.slow(to, rate)
	default:
		b.set(order, to)
	}
	return b.State(), nil
}

// State returns what the balancer does at present.
func (b *Balancer) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{Mode: b.mode, Accepted: b.accepted}
	for _, to := range b.backends {
		bs := BackendState{Component: to.Name, Address: to.Address, Out: to.out, BytesPerSecond: to.rate}
		for c := range b.conns {
			if c.to == to {
				bs.Connections++
			}
		}
		s.Backends = append(s.Backends, bs)
	}
	return s
}

func (b *Balancer) find(name string) *backend {
	i := slices.IndexFunc(b.backends, func(to *backend) bool { return to.Name == name })
	if i < 0 {
		return nil
	}
	return b.backends[i]
}

func (b *Balancer) set(mode string, chosen *backend) {
	b.mu.Lock()
	for _, to := range b.backends {
		switch mode {
		case only:
			to.out = to != chosen
		case drop:
			to.out = to == chosen || b.mode == drop && to.out
		default:
			to.out = false
		}
		if mode == normal {
			to.rate = 0
		}
	}
	b.mode = mode
	b.wakeLocked()
	b.mu.Unlock()
	if mode == reset {
		b.cut(nil)
	}
}

func (b *Balancer) slow(to *backend, rate int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to.rate = rate
	b.wakeLocked()
}

func (b *Balancer) wakeLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// cut resets all connections, or those to one backend.
func (b *Balancer) cut(to *backend) {
	b.mu.Lock()
	var doomed []*conn
	for c := range b.conns {
		if to == nil || c.to == to {
			doomed = append(doomed, c)
		}
	}
	b.mu.Unlock()
	for _, c := range doomed {
		c.abort()
	}
}

// carry leads one connection to a backend and returns when it has ended.
func (b *Balancer) carry(ctx context.Context, client *net.TCPConn) {
	c := &conn{client: client, ended: make(chan struct{})}
	defer c.abort()
	b.mu.Lock()
	b.accepted++
	b.conns[c] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.conns, c)
		b.mu.Unlock()
	}()
	if ctx.Err() != nil || !b.awaitFlow(c) || b.resets() {
		return
	}
	if !b.connect(ctx, c) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { b.copy(c, c.client, c.server, false) })
	both.Go(func() { b.copy(c, c.server, c.client, true) })
	both.Wait()
}

func (b *Balancer) resets() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mode == reset
}

// connect tries the backends in turn.
func (b *Balancer) connect(ctx context.Context, c *conn) bool {
	for _, to := range b.turn() {
		server, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", to.Address)
		if err != nil {
			continue
		}
		if !c.connected(server.(*net.TCPConn)) {
			return false
		}
		b.mu.Lock()
		c.to = to
		b.mu.Unlock()
		return true
	}
	return false
}

// turn is the order in which a new connection tries the backends.
func (b *Balancer) turn() []*backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	var order []*backend
	for i := range b.backends {
		if to := b.backends[(b.next+i)%len(b.backends)]; !to.out {
			order = append(order, to)
		}
	}
	if len(order) > 0 {
		b.next = (slices.Index(b.backends, order[0]) + 1) % len(b.backends)
	}
	return order
}

// awaitFlow returns when the balancer does not hold connections; false when c
// ended first.
func (b *Balancer) awaitFlow(c *conn) bool {
	for {
		b.mu.Lock()
		held, changed := b.mode == hold, b.changed
		b.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-changed:
		case <-c.ended:
			return false
		}
	}
}

// copy carries one direction. A clean end is passed on, so that a client may
// finish sending and still read; anything else resets both sides.
func (b *Balancer) copy(c *conn, from, to *net.TCPConn, answers bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !b.forward(c, to, buf[:n], answers) {
			c.abort()
			return
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) || to.CloseWrite() != nil {
			c.abort()
		}
		return
	}
}

// forward writes data at the pace of the backend, if it is the backend's.
func (b *Balancer) forward(c *conn, to *net.TCPConn, data []byte, answer bool) bool {
	for len(data) > 0 {
		if !b.awaitFlow(c) {
			return false
		}
		piece := len(data)
		if rate, _ := b.rate(c); answer && rate > 0 {
			piece = min(piece, max(rate/10, 1))
		}
		if _, err := to.Write(data[:piece]); err != nil {
			return false
		}
		if answer {
			b.pace(c, piece)
		}
		data = data[piece:]
	}
	return true
}

func (b *Balancer) rate(c *conn) (int, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.to.rate, b.changed
}

// pace waits as long as n bytes take at the backend's rate, at most until the
// next order.
func (b *Balancer) pace(c *conn, n int) {
	rate, changed := b.rate(c)
	if rate == 0 {
		return
	}
	timer := time.NewTimer(time.Duration(n) * time.Second / time.Duration(rate))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-c.ended:
	}
}
