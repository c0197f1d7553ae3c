package balancer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// rig is a balancer before two backends, a and b, that answer each line with
// their name and the line.
type rig struct {
	*Balancer
	address string
	a, b    net.Listener
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{a: echo(t, "a"), b: echo(t, "b")}
	r.Balancer = New(Backend{"a", r.a.Addr().String()}, Backend{"b", r.b.Addr().String()})
	listener := listen(t)
	r.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return r
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func echo(t *testing.T, name string) net.Listener {
	listener := listen(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				for s := bufio.NewScanner(conn); s.Scan(); {
					if _, err := io.WriteString(conn, name+s.Text()+"\n"); err != nil {
						return
					}
				}
			})
		}
	})
	// Runs after the balancer has ended, which ends the connections.
	t.Cleanup(func() { listener.Close(); running.Wait() })
	return listener
}

func (r *rig) order(t *testing.T, args ...string) State {
	t.Helper()
	s, err := r.Order(args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type client struct {
	net.Conn
	lines *bufio.Reader
}

func (r *rig) dial(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{conn, bufio.NewReader(conn)}
}

func (c *client) say(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return c.hear()
}

func (c *client) hear() (string, error) {
	answer, err := c.lines.ReadString('\n')
	return strings.TrimSpace(answer), err
}

// who are the backends of n new connections, in order.
func (r *rig) who(t *testing.T, n int) string {
	t.Helper()
	var who string
	for range n {
		answer, err := r.dial(t).say("")
		if err != nil {
			t.Fatal(err)
		}
		who += answer
	}
	return who
}

func TestTurns(t *testing.T) {
	r := newRig(t)
	if got := r.who(t, 4); got != "abab" {
		t.Errorf("backends %s, want abab", got)
	}
	r.order(t, "only", "b")
	if got := r.who(t, 3); got != "bbb" {
		t.Errorf("only b: %s", got)
	}
	r.order(t, "drop", "b")
	if got := r.who(t, 3); got != "aaa" {
		t.Errorf("drop b: %s", got)
	}
	s := r.order(t, "normal")
	if s.Mode != "normal" || s.Accepted != 10 || s.Backends[0].Out || s.Backends[1].Out {
		t.Errorf("state %+v", s)
	}
	r.a.Close() // refuses
	if got := r.who(t, 3); got != "bbb" {
		t.Errorf("a is gone: %s", got)
	}
	r.order(t, "drop", "a")
	if s := r.order(t, "drop", "b"); !s.Backends[0].Out || !s.Backends[1].Out {
		t.Errorf("both dropped: %+v", s)
	}
	r.wantRefusal(t)
}

// wantRefusal: a new connection is reset, perhaps before the dialer has returned.
func (r *rig) wantRefusal(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	wantReset(t, &client{conn, bufio.NewReader(conn)})
}

// wantReset: the connection ends with an error, not regularly.
func wantReset(t *testing.T, c *client) {
	t.Helper()
	if answer, err := c.say("x"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("answer %q, %v, want a reset", answer, err)
	}
}

func TestCutAndReset(t *testing.T) {
	r := newRig(t)
	a := r.dial(t)
	if answer, err := a.say(""); answer != "a" || err != nil { // it has its backend before b has one
		t.Fatal(answer, err)
	}
	b := r.dial(t)
	if answer, err := b.say(""); answer != "b" || err != nil {
		t.Fatal(answer, err)
	}
	r.order(t, "cut", "a")
	wantReset(t, a)
	if answer, err := b.say("1"); answer != "b1" || err != nil {
		t.Errorf("the other backend's connection: %q, %v", answer, err)
	}
	r.order(t, "reset")
	wantReset(t, b)
	r.wantRefusal(t)
	r.order(t, "normal")
	if _, err := r.dial(t).say(""); err != nil {
		t.Error(err)
	}
}

func TestHold(t *testing.T) {
	r := newRig(t)
	old := r.dial(t)
	if _, err := old.say(""); err != nil {
		t.Fatal(err)
	}
	r.order(t, "hold")
	young := r.dial(t)
	for _, c := range []*client{old, young} {
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var timeout net.Error
		if answer, err := c.say("held"); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("on hold: %q, %v", answer, err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	r.order(t, "normal")
	for want, c := range map[string]*client{"aheld": old, "bheld": young} {
		if answer, err := c.hear(); answer != want || err != nil {
			t.Errorf("after the hold: %q, %v, want %s", answer, err, want)
		}
	}
}

// TestSlow: at a byte a second the second byte of the answer is late, and comes
// as soon as the limit is lifted.
func TestSlow(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	if _, err := c.say(""); err != nil {
		t.Fatal(err)
	}
	if s := r.order(t, "slow", "a", "1"); s.Backends[0].BytesPerSecond != 1 || s.Backends[0].Connections != 1 {
		t.Errorf("state %+v", s)
	}
	began := time.Now()
	answer, err := c.say("1")
	if took := time.Since(began); answer != "a1" || err != nil || took < 1500*time.Millisecond {
		t.Errorf("%q, %v after %v: three bytes at one a second", answer, err, took)
	}
	if _, err := io.WriteString(c, strings.Repeat("x", 1000)+"\n"); err != nil {
		t.Fatal(err)
	}
	r.order(t, "slow", "a", "0")
	if answer, err := c.hear(); len(answer) != 1001 || err != nil {
		t.Errorf("%d bytes, %v", len(answer), err)
	}
}

func TestOrderErrors(t *testing.T) {
	r := newRig(t)
	for _, args := range []string{"explode", "only", "only c", "drop a b", "slow a", "slow a fast", "slow a -1", "hold a"} {
		if _, err := r.Order(strings.Fields(args)...); err == nil {
			t.Errorf("Order(%s) succeeds", args)
		}
	}
	if s := r.order(t); s.Mode != "normal" {
		t.Errorf("mode %q after errors", s.Mode)
	}
}
