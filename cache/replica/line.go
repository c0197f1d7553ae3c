package replica

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Line is all connections to where a cluster is reached, until it is cut. Unlike
// client-go's connrotation.Dialer it brings nothing after that, so that nobody who was
// about to connect goes on with a place that has been left.
type Line struct {
	mu    sync.Mutex // guards all below
	isCut bool
	conns map[*lineConn]struct{}
}

// lineConn is a connection of a Line.
type lineConn struct {
	net.Conn
	line *Line
}

var errLineCut = errors.New("the cluster is reached elsewhere by now")

// NewLine has no connection yet.
func NewLine() *Line { return &Line{conns: map[*lineConn]struct{}{}} }

// Over is a dial whose connections are of the line.
func (l *Line) Over(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.isCut {
			_ = conn.Close()
			return nil, errLineCut
		}
		c := &lineConn{conn, l}
		l.conns[c] = struct{}{}
		return c, nil
	}
}

// Cut closes every connection, whatever it is used for, and lets none begin.
func (l *Line) Cut() {
	l.mu.Lock()
	l.isCut = true
	conns := l.conns
	l.conns = map[*lineConn]struct{}{}
	l.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close()
	}
}

func (c *lineConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}

// DialOf is how a configuration dials; its default is as client-go's.
func DialOf(rc *rest.Config) dialFunc {
	if rc.Dial != nil {
		return rc.Dial
	}
	return (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
}
