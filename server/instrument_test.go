package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/cache"
)

// pipeListener accepts the far ends of pipes: connections without a kernel, whose
// deadlines are of a test's own time.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.done); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	l.conns <- far
	return near, nil
}

// serveOverPipes serves until the test ends; the client speaks HTTP/2.
func serveOverPipes(t *testing.T, h http.Handler) (*pipeListener, *http.Client) {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	var both, second http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	second.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: h, Protocols: &both}
	go func() { _ = srv.Serve(l) }()
	transport := &http.Transport{Protocols: &second, DialContext: l.dial, DisableCompression: true}
	t.Cleanup(func() {
		_ = srv.Close()
		transport.CloseIdleConnections()
	})
	return l, &http.Client{Transport: transport}
}

// dialPipe is a connection to a server of its own, to speak HTTP/1.1.
func dialPipe(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	l, _ := serveOverPipes(t, h)
	conn, err := l.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func getOverHTTP2(t *testing.T, c *http.Client, target string) io.ReadCloser {
	t.Helper()
	resp, err := c.Get("http://localhost" + target)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s is answered %s in %s", target, resp.Status, resp.Proto)
	}
	return resp.Body
}

// TestQuietStreams: over HTTP/2, too, a stream may be silent, and an answer late,
// for longer than a write may take.
func TestQuietStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, client := serveOverPipes(t, w.Handler())
		body := getOverHTTP2(t, client, "/api/v1/pods?watch=true&resourceVersion=100")
		defer body.Close()
		lines := bufio.NewScanner(body)
		for _, version := range []int{150, 151} {
			time.Sleep(10 * w.WriteTimeout)
			w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", version))
			if !lines.Scan() || !strings.Contains(lines.Text(), `"MODIFIED"`) {
				t.Fatalf("after a silence: %q, %v", lines.Text(), lines.Err())
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, client := serveOverPipes(t, w.instrument(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			time.Sleep(2 * w.WriteTimeout)
			_, _ = io.WriteString(out, "early, ")
			time.Sleep(2 * w.WriteTimeout)
			_, _ = io.WriteString(out, "late")
		})))
		body := getOverHTTP2(t, client, "/")
		defer body.Close()
		if got, err := io.ReadAll(body); string(got) != "early, late" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestStuckClients: who does not read is dropped after WriteTimeout, be it within
// the answer or at its end.
func TestStuckClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stuck := make(chan error, 1)
		_, client := serveOverPipes(t, w.instrument(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			var err error
			for err == nil {
				_, err = out.Write(make([]byte, 64<<10))
			}
			stuck <- err
		})))
		start := time.Now()
		body := getOverHTTP2(t, client, "/")
		defer body.Close()
		if err := <-stuck; err == nil || time.Since(start) != w.WriteTimeout {
			t.Errorf("dropped after %v with %v", time.Since(start), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn := dialPipe(t, w.instrument(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(out, "held back until the end")
		})))
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(w.WriteTimeout + time.Second)
		if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection gives %d bytes and %v", n, err)
		}
	})
}
