package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Tunnel carries connections through an API server into a pod, as kubectl port-forward
// does, but without a port on this machine that others could use, too.
type Tunnel struct {
	streams  httpstream.Connection
	port     string
	requests atomic.Int64
}

// Pod says which port of which pod.
type Pod struct {
	Namespace, Name string
	Port            int
}

// faultWait is how long after the end of a connection the kubelet may take to say why.
const faultWait = 500 * time.Millisecond

// Open opens a tunnel: over a WebSocket, or over SPDY where the API server, or what is
// before it, knows no WebSockets.
func Open(config *rest.Config, pod Pod) (*Tunnel, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	target := base.JoinPath("api/v1/namespaces", url.PathEscape(pod.Namespace), "pods", url.PathEscape(pod.Name), "portforward")
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	websockets, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(websockets, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	streams, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("forward to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return &Tunnel{streams: streams, port: strconv.Itoa(pod.Port)}, nil
}

// Close ends the tunnel with all connections in it.
func (t *Tunnel) Close() { _ = t.streams.Close() }

// Dial is a connection to the port of the pod, whatever the address.
func (t *Tunnel) Dial(context.Context, string, string) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, t.port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(t.requests.Add(1), 10))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	faults, err := t.streams.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = faults.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.streams.CreateStream(headers)
	if err != nil {
		_ = faults.Reset()
		return nil, err
	}
	c := &tunnelConn{Stream: data, tunnel: t, faults: faults, over: make(chan struct{})}
	go c.readFaults()
	return c, nil
}

// tunnelConn is one connection in a tunnel.
type tunnelConn struct {
	httpstream.Stream
	tunnel *Tunnel
	faults httpstream.Stream
	over   chan struct{} // closed when fault is known
	fault  error         // what the kubelet says went wrong
}

func (c *tunnelConn) readFaults() {
	defer close(c.over)
	if text, _ := io.ReadAll(c.faults); len(text) > 0 {
		c.fault = errors.New(string(text))
		_ = c.Reset() // whoever reads would wait for ever
	}
}

func (c *tunnelConn) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if err == nil {
		return n, nil
	}
	select { // both streams end at once, and who is first is chance
	case <-c.over:
		if c.fault != nil {
			err = c.fault
		}
	case <-time.After(faultWait):
	}
	return n, err
}

func (c *tunnelConn) Close() error {
	err := errors.Join(c.Reset(), c.faults.Reset())
	c.tunnel.streams.RemoveStreams(c.Stream, c.faults)
	return err
}

// address names the end of a tunnel.
type address string

func (address) Network() string  { return "portforward" }
func (a address) String() string { return string(a) }

func (c *tunnelConn) LocalAddr() net.Addr  { return address("here") }
func (c *tunnelConn) RemoteAddr() net.Addr { return address(c.tunnel.port) }

// Deadlines are those of requests; the connection has none.
func (c *tunnelConn) SetDeadline(time.Time) error      { return nil }
func (c *tunnelConn) SetReadDeadline(time.Time) error  { return nil }
func (c *tunnelConn) SetWriteDeadline(time.Time) error { return nil }
