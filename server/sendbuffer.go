package server

import (
	"context"
	"crypto/tls"
	"net"
)

// streamBuffer is what the system may hold of a stream that its client does not read.
// Left alone it lets that grow to megabytes for each, beyond what any limit of this
// process sees.
const streamBuffer = 64 << 10

type connKey struct{}

// withConn lets requests know their connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// boundSendBuffer is for requests that become a stream. Over HTTP/2 many share a
// connection, whose windows bound what is on the way of each.
func boundSendBuffer(ctx context.Context) {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	if secured, ok := c.(*tls.Conn); ok {
		if secured.ConnectionState().NegotiatedProtocol == "h2" {
			return
		}
		c = secured.NetConn()
	}
	if plain, ok := c.(*net.TCPConn); ok {
		_ = plain.SetWriteBuffer(streamBuffer) // a larger one costs memory and nothing else
	}
}
