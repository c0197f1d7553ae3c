package server

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"
)

// takenConn is the connection of a WebSocket. What is written to it is treated like what
// is written to an answer: each write has a deadline, and is counted. One goroutine
// writes at a time.
type takenConn struct {
	net.Conn
	out     *responseWriter // nil: nobody counts
	timeout time.Duration
}

// takeOver gives the connection of w to a WebSocket, which closes it. Until the handler of w
// has returned, awaitTaken waits: it may still be asking a copy, and its record and its place
// are settled after that.
func (s *Server) takeOver(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	taken := &takenConn{Conn: conn, out: nearest(w), timeout: s.WriteTimeout}
	if taken.out != nil {
		s.taken.Add(1)
		taken.out.ended = s.taken.Done
	}
	taken.extend() // for what is buffered
	return taken, buffered, nil
}

// nearest is the writer of w that is nearest to the connection.
func nearest(w http.ResponseWriter) *responseWriter {
	for {
		switch at := w.(type) {
		case *responseWriter:
			return at
		case interface{ Unwrap() http.ResponseWriter }:
			w = at.Unwrap()
		default:
			return nil
		}
	}
}

func (c *takenConn) Write(p []byte) (int, error) {
	c.extend()
	n, err := c.write(p)
	if c.out != nil {
		c.out.bytes += int64(n)
	}
	return n, err
}

// write waits for the client, and not for a processor.
func (c *takenConn) write(p []byte) (int, error) {
	if c.out != nil {
		defer c.out.pause()()
	}
	return c.Conn.Write(p)
}

func (c *takenConn) extend() { _ = c.SetWriteDeadline(time.Now().Add(c.timeout)) }

// awaitTaken waits for the requests of WebSockets to end, but not beyond ctx. No more must be
// opened.
func (s *Server) awaitTaken(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		s.taken.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
