package balancer

import (
	"net"
	"sync"
)

// conn is one client's connection and the one to its backend.
type conn struct {
	client *net.TCPConn
	to     *backend // guarded by Balancer.mu; nil until connected

	mu     sync.Mutex // guards server; not taken with Balancer.mu
	server *net.TCPConn
	once   sync.Once
	ended  chan struct{} // closed by abort
}

// connected takes the connection to the backend, unless c ended meanwhile.
func (c *conn) connected(server *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ended:
		_ = server.Close()
		return false
	default:
		c.server = server
		return true
	}
}

// abort ends both connections with a RST, which a connection that has ended
// regularly on both sides no longer sends.
func (c *conn) abort() {
	c.once.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.ended)
		for _, side := range []*net.TCPConn{c.client, c.server} {
			if side != nil {
				_ = side.SetLinger(0)
				_ = side.Close()
			}
		}
	})
}
