package replica

import (
	"context"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// streamSilence is how long a connection of a list or watch may bring nothing.
// The API server sends each watch a bookmark a minute. HTTP/1.1 has no pings, so
// this is how a server that is frozen, or gone without a word, is noticed.
const streamSilence = 90 * time.Second

// newStreamClient makes the client of lists and watches. It speaks HTTP/1.1, so
// each of them has a connection of its own. Over HTTP/2 all would share one:
// events of one resource would wait behind the list of another, and in the API
// server each event would pass through two more goroutines on its way out. On a
// busy server both of them wait for their turn, which takes tens of milliseconds
// for one event in a hundred.
func newStreamClient(rc *rest.Config, l *Line, wrapped func(http.RoundTripper) http.RoundTripper) (*http.Client, error) {
	rc = rest.CopyConfig(rc)
	rc.NextProtos = []string{"http/1.1"}
	dial := DialOf(rc)
	rc.Dial = l.Over(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &heardConn{conn, streamSilence}, nil
	})
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, err
	}
	client.Transport = tierTransport{attemptTransport{wrapped(client.Transport)}}
	return client, nil
}

// newPlainClient makes the client of everything else.
func newPlainClient(rc *rest.Config, l *Line, wrapped func(http.RoundTripper) http.RoundTripper) (*http.Client, error) {
	rc = rest.CopyConfig(rc)
	rc.Dial = l.Over(DialOf(rc))
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, err
	}
	client.Transport = tierTransport{wrapped(client.Transport)}
	return client, nil
}

// heardConn fails to read after silence.
type heardConn struct {
	net.Conn
	silence time.Duration
}

func (c *heardConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}
