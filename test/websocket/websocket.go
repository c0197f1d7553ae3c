// Package websocket opens WebSockets and reads them, as a browser or a proxy of one does.
package websocket

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Opcodes of the frames that there are.
const (
	Text   = 0x1
	Binary = 0x2
	Close  = 0x8
	Ping   = 0x9
	Pong   = 0xA
)

// Conn is a WebSocket, for one goroutine that reads and one that sends.
type Conn struct {
	// Head is the head of the server's answer.
	Head *http.Response
	conn net.Conn
	in   *bufio.Reader
}

// RefusedError is an answer that is no WebSocket.
type RefusedError struct {
	Code int
	Body string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Body) }

// Dial opens a WebSocket at the URL of a server, which begins with http or https. It
// shakes hands as RFC 6455 has it in its example; header is sent, too, and may say that
// differently.
func Dial(ctx context.Context, server string, tlsConfig *tls.Config, header http.Header) (*Conn, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		tlsConfig = tlsConfig.Clone()
		if tlsConfig == nil {
			tlsConfig = &tls.Config{}
		}
		tlsConfig.ServerName, tlsConfig.NextProtos = u.Hostname(), []string{"http/1.1"}
		conn = tls.Client(conn, tlsConfig)
	}
	c := &Conn{conn: conn, in: bufio.NewReader(conn)}
	if err := c.shakeHands(u, header); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) shakeHands(u *url.URL, header http.Header) error {
	r := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}}
	for name, values := range header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	err := r.Write(c.conn)
	if err == nil {
		c.Head, err = http.ReadResponse(c.in, r)
	}
	if err != nil {
		return err
	}
	if c.Head.StatusCode != http.StatusSwitchingProtocols {
		refused := &RefusedError{Code: c.Head.StatusCode}
		if refused.Code >= 300 { // else it may be a stream
			body, _ := io.ReadAll(io.LimitReader(c.Head.Body, 2000))
			refused.Body = string(body)
		}
		return refused
	}
	if proof := c.Head.Header.Get("Sec-WebSocket-Accept"); r.Header.Get("Sec-Websocket-Key") == "dGhlIHNhbXBsZSBub25jZQ==" && proof != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		return fmt.Errorf("the server's proof is %q", proof)
	}
	return nil
}

// Read is the next frame, which the server must send whole and not masked.
func (c *Conn) Read() (opcode byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	if head[0]&0xF0 != 0x80 || head[1]&0x80 != 0 {
		return 0, nil, fmt.Errorf("a frame begins with %x", head)
	}
	length, wide := uint64(head[1]), 0
	switch length {
	case 126:
		wide = 2
	case 127:
		wide = 8
	}
	long := make([]byte, 8)
	if _, err := io.ReadFull(c.in, long[8-wide:]); err != nil {
		return 0, nil, err
	}
	if wide > 0 {
		length = binary.BigEndian.Uint64(long)
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(c.in, payload)
	return head[0] & 0x0F, payload, err
}

// Send sends a frame, masked as a client must.
func (c *Conn) Send(opcode byte, payload []byte) error {
	mask := [4]byte{1, 2, 3, 4}
	frame := []byte{0x80 | opcode}
	switch n := len(payload); {
	case n < 126:
		frame = append(frame, 0x80|byte(n))
	case n <= 0xFFFF:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(n))
	}
	frame = append(frame, mask[:]...)
	for n, b := range payload {
		frame = append(frame, b^mask[n%4])
	}
	return c.SendRaw(frame)
}

// SendRaw sends bytes that need be no frame.
func (c *Conn) SendRaw(p []byte) error {
	_, err := c.conn.Write(p)
	return err
}

// Close ends the connection without a word.
func (c *Conn) Close() error { return c.conn.Close() }
