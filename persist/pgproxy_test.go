package persist

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/informerd/informerd/test/postgres"
)

// proxy is a network between an informerd and its database that can lose everything: whoever
// connects is let in, and nothing comes through.
type proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	open  chan struct{} // closed: bytes pass
	conns []net.Conn
	ended bool
}

func newProxy(t *testing.T, s *postgres.Server) *proxy {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: u.Host, open: make(chan struct{})}
	close(p.open)
	var runs sync.WaitGroup
	runs.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			runs.Go(func() { p.serve(in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.pass()
		p.mu.Lock()
		p.ended = true
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		runs.Wait()
	})
	return p
}

// url is the server's, by way of the proxy.
func (p *proxy) url() string {
	return "postgres://postgres@" + p.listener.Addr().String() + "/postgres?sslmode=disable"
}

// hang lets nothing through until pass.
func (p *proxy) hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

func (p *proxy) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

func (p *proxy) isOpen() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func (p *proxy) serve(in net.Conn) {
	defer in.Close()
	<-p.isOpen()
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	p.conns = append(p.conns, in, out)
	if p.ended {
		_ = out.Close()
		_ = in.Close()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(out, in) })
	both.Go(func() { p.copy(in, out) })
	both.Wait()
}

// copy passes on what comes in, while it may; the end of one side is that of the other.
func (p *proxy) copy(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		<-p.isOpen()
		if n > 0 {
			if _, werr := to.Write(b[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			if err != io.EOF {
				_ = from.Close()
			}
			_ = to.Close()
			return
		}
	}
}
