package websocket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	client "github.com/informerd/informerd/test/websocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve has answer talk to each client until it returns, and returns where. What was
// heard of the client going comes through gone.
func serve(t *testing.T, answer func(c *Conn, gone <-chan struct{})) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Asked(r) {
			http.Error(w, "no WebSocket is asked for", http.StatusTeapot)
			return
		}
		head, err := Handshake(r, http.Header{"Audit-Id": {"a"}, "Content-Type": {"x"}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		gone := make(chan struct{})
		c, err := Open(conn, buffered, head, func() { close(gone) })
		if err != nil {
			t.Error(err)
			return
		}
		answer(c, gone)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func dial(t *testing.T, url string, header http.Header) *client.Conn {
	t.Helper()
	c, err := client.Dial(t.Context(), url, nil, header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wantFrame(t *testing.T, c *client.Conn, opcode byte, payload []byte) {
	t.Helper()
	got, have, err := c.Read()
	if err != nil || got != opcode || !bytes.Equal(have, payload) {
		t.Fatalf("frame %x of %d bytes (%.40q), %v; want %x of %d (%.40q)", got, len(have), have, err, opcode, len(payload), payload)
	}
}

func closing(reason uint16) []byte { return binary.BigEndian.AppendUint16(nil, reason) }

// TestMessages: messages of all lengths arrive, one after the other, and then the end.
func TestMessages(t *testing.T) {
	lengths := []int{0, 1, 125, 126, 65535, 65536, 300000}
	url := serve(t, func(c *Conn, _ <-chan struct{}) {
		var all []byte
		for _, n := range lengths {
			all = append(AppendText(all, n), strings.Repeat("x", n)...)
		}
		if _, err := c.Write(all); err != nil {
			t.Error(err)
		}
		_ = c.Close()
		if _, err := c.Write(all); err == nil {
			t.Error("something follows the end")
		}
		_ = c.Cut()
	})
	c := dial(t, url, http.Header{"Connection": {"keep-alive, upgrade"}, "Upgrade": {"WebSocket"}})
	if got := c.Head.Header; got.Get("Audit-Id") != "a" || got.Get("Content-Type") != "" || got.Get("Sec-WebSocket-Protocol") != "" {
		t.Errorf("headers are %v", got)
	}
	for _, n := range lengths {
		wantFrame(t, c, client.Text, []byte(strings.Repeat("x", n)))
	}
	wantFrame(t, c, client.Close, closing(closeNormal))
	if _, _, err := c.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end came %v", err)
	}
}

// TestCut: what is cut ends without the frame that says that all was said.
func TestCut(t *testing.T) {
	c := dial(t, serve(t, func(c *Conn, _ <-chan struct{}) { _ = c.Cut() }), nil)
	if opcode, _, err := c.Read(); err == nil {
		t.Errorf("a frame %x came", opcode)
	}
}

// TestReceived: a client is answered as the protocol asks for it, and whatever else it
// sends is of no effect, or ends the connection.
func TestReceived(t *testing.T) {
	raw := func(b ...byte) []byte { return b }
	masked := func(b ...byte) []byte { return append(b, 1, 2, 3, 4) }
	for name, test := range map[string]struct {
		opcode byte
		send   []byte // a frame; raw, if opcode is 0
		reason uint16 // of the end that it brings; 0: none
	}{
		"close":                   {client.Close, closing(1001), closeNormal},
		"close without a reason":  {client.Close, nil, closeNormal},
		"text":                    {client.Text, []byte("hello"), 0},
		"long text":               {client.Text, make([]byte, 70000), 0},
		"binary":                  {client.Binary, make([]byte, 200), 0},
		"a pong nobody asked for": {client.Pong, nil, 0},
		"too much text":           {client.Text, make([]byte, maxReceived), closeTooMuch},
		"it says too much":        {0, masked(0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF), closeTooMuch},
		"not masked":              {0, raw(0x81, 0x01, 'a'), closeProtocol},
		"reserved bits":           {0, masked(0xC1, 0x80), closeProtocol},
		"a ping in parts":         {0, masked(0x09, 0x80), closeProtocol},
		"a long ping":             {0, masked(0x89, 0xFE, 0x01, 0x00), closeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(c *Conn, gone <-chan struct{}) {
				<-gone
				_ = c.Close()
			})
			c := dial(t, url, nil)
			send := func() error { return c.Send(test.opcode, test.send) }
			if test.opcode == 0 {
				send = func() error { return c.SendRaw(test.send) }
			}
			if err := send(); err != nil {
				t.Fatal(err)
			}
			if test.reason == 0 { // it is still there
				for _, payload := range []string{"", "there?", strings.Repeat("p", maxControl)} {
					if err := c.Send(client.Ping, []byte(payload)); err != nil {
						t.Fatal(err)
					}
					wantFrame(t, c, client.Pong, []byte(payload))
				}
				return
			}
			wantFrame(t, c, client.Close, closing(test.reason))
		})
	}
}

// TestGone: a client that goes without a word is noticed.
func TestGone(t *testing.T) {
	noticed := make(chan struct{})
	url := serve(t, func(c *Conn, gone <-chan struct{}) {
		<-gone
		close(noticed)
		_ = c.Cut()
	})
	_ = dial(t, url, nil).Close()
	<-noticed
}

// TestHandshake: which requests are for a WebSocket, and which of these are good.
func TestHandshake(t *testing.T) {
	const token = TokenProtocol + "YWJj"
	url := serve(t, func(c *Conn, _ <-chan struct{}) { _ = c.Close() })
	for name, test := range map[string]struct {
		header   http.Header
		code     int
		protocol string
	}{
		"no version":               {header: http.Header{"Sec-WebSocket-Version": nil}, code: 400},
		"a draft":                  {header: http.Header{"Sec-WebSocket-Version": {"8"}}, code: 400},
		"no key":                   {header: http.Header{"Sec-WebSocket-Key": nil}, code: 400},
		"a short key":              {header: http.Header{"Sec-WebSocket-Key": {"YWJj"}}, code: 400},
		"another protocol":         {header: http.Header{"Upgrade": {"SPDY/3.1"}}, code: 418},
		"no upgrade of this hop":   {header: http.Header{"Connection": {"keep-alive"}}, code: 418},
		"one subprotocol":          {header: http.Header{"Sec-WebSocket-Protocol": {"base64.binary.k8s.io"}}, protocol: "base64.binary.k8s.io"},
		"the first of several":     {header: http.Header{"Sec-WebSocket-Protocol": {token + ", a", "b"}}, protocol: "a"},
		"a token is not repeated":  {header: http.Header{"Sec-WebSocket-Protocol": {token}}},
		"nothing between commas":   {header: http.Header{"Sec-WebSocket-Protocol": {" , ,"}}},
		"compression is not known": {header: http.Header{"Sec-WebSocket-Extensions": {"permessage-deflate"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := client.Dial(t.Context(), url, nil, test.header)
			if refused, ok := errors.AsType[*client.RefusedError](err); ok || test.code != 0 {
				if !ok || refused.Code != test.code {
					t.Errorf("answer is %v, want %d", err, test.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if h := c.Head.Header; h.Get("Sec-WebSocket-Protocol") != test.protocol || h.Get("Sec-WebSocket-Extensions") != "" {
				t.Errorf("headers are %v, want protocol %q", h, test.protocol)
			}
			_ = c.Close()
		})
	}
}
