package websocket

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
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
		w.Header().Set("Audit-Id", "a")
		gone := make(chan struct{})
		c, err := Open(w, r, nil, func() { close(gone) })
		if wrong, ok := errors.AsType[*HandshakeError](err); ok {
			http.Error(w, wrong.Error(), http.StatusBadRequest)
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		answer(c, gone)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func dial(t *testing.T, url string, header http.Header) (*websocket.Conn, *http.Response) {
	t.Helper()
	c, head, err := client.Dial(t.Context(), url, nil, header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, head
}

// wantClose reads on until the server says for which reason it ends.
func wantClose(t *testing.T, c *websocket.Conn, reason int) {
	t.Helper()
	if _, message, err := c.ReadMessage(); !websocket.IsCloseError(err, reason) {
		t.Errorf("%.40q, %v; want the end, %d", message, err, reason)
	}
}

// TestMessages: each write is a message, of any length, and then comes the end.
func TestMessages(t *testing.T) {
	lengths := []int{0, 1, 125, 126, 4096, 65535, 65536, 300000}
	url := serve(t, func(c *Conn, _ <-chan struct{}) {
		for _, n := range lengths {
			if wrote, err := c.Write([]byte(strings.Repeat("x", n))); err != nil || wrote != n {
				t.Errorf("%d of %d bytes, %v", wrote, n, err)
			}
		}
		_ = c.Close()
		if _, err := c.Write([]byte("more")); err == nil {
			t.Error("something follows the end")
		}
		_ = c.Cut()
	})
	c, head := dial(t, url, nil)
	if h := head.Header; h.Get("Audit-Id") != "a" || h.Get("Sec-WebSocket-Protocol") != "" {
		t.Errorf("headers are %v", h)
	}
	for _, n := range lengths {
		if kind, message, err := c.ReadMessage(); err != nil || kind != websocket.TextMessage || string(message) != strings.Repeat("x", n) {
			t.Fatalf("message %d of %d bytes, %v; want %d", kind, len(message), err, n)
		}
	}
	wantClose(t, c, websocket.CloseNormalClosure)
}

// TestCut: what is cut ends without the word that says that all was said.
func TestCut(t *testing.T) {
	c, _ := dial(t, serve(t, func(c *Conn, _ <-chan struct{}) { _ = c.Cut() }), nil)
	wantClose(t, c, websocket.CloseAbnormalClosure) // which is said of none
}

// TestReceived: what a client says is of no effect, unless it says too much; pings are
// answered.
func TestReceived(t *testing.T) {
	for name, say := range map[string]struct {
		kind  int
		bytes int
	}{
		"text":                    {websocket.TextMessage, 5},
		"long text":               {websocket.TextMessage, 70_000},
		"binary":                  {websocket.BinaryMessage, 200},
		"a pong nobody asked for": {websocket.PongMessage, 0},
		"too much text":           {websocket.TextMessage, maxReceived},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := dial(t, serve(t, func(c *Conn, gone <-chan struct{}) {
				<-gone
				_ = c.Close()
			}), nil)
			if err := c.WriteMessage(say.kind, make([]byte, say.bytes)); err != nil {
				t.Fatal(err)
			}
			if say.bytes >= maxReceived {
				wantClose(t, c, websocket.CloseMessageTooBig)
				return
			}
			var pong string
			c.SetPongHandler(func(text string) error {
				pong = text
				return c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""), time.Now().Add(time.Minute))
			})
			if err := c.WriteMessage(websocket.PingMessage, []byte("there?")); err != nil {
				t.Fatal(err)
			}
			wantClose(t, c, websocket.CloseGoingAway)
			if pong != "there?" {
				t.Errorf("the ping is answered with %q", pong)
			}
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
	c, _ := dial(t, url, nil)
	_ = c.Close()
	<-noticed
}

// TestHandshake: which requests are for a WebSocket, and which of these are good.
func TestHandshake(t *testing.T) {
	url := serve(t, func(c *Conn, _ <-chan struct{}) { _ = c.Close() })
	for name, test := range map[string]struct {
		header http.Header
		code   int
	}{
		"good":                   {nil, http.StatusSwitchingProtocols},
		"no version":             {http.Header{"Sec-Websocket-Version": nil}, http.StatusBadRequest},
		"a draft":                {http.Header{"Sec-Websocket-Version": {"8"}}, http.StatusBadRequest},
		"no key":                 {http.Header{"Sec-Websocket-Key": nil}, http.StatusBadRequest},
		"a short key":            {http.Header{"Sec-Websocket-Key": {"YWJj"}}, http.StatusBadRequest},
		"another protocol":       {http.Header{"Upgrade": {"SPDY/3.1"}}, http.StatusTeapot},
		"no upgrade of this hop": {http.Header{"Connection": {"keep-alive"}}, http.StatusTeapot},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{
				"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"WebSocket"},
				"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
			}
			for name, values := range test.header {
				r.Header[name] = values
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != test.code {
				t.Errorf("answer is %s, want %d", resp.Status, test.code)
			}
		})
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestSubprotocol: the first that is offered is taken, but no token is repeated.
func TestSubprotocol(t *testing.T) {
	const token = TokenProtocol + "YWJj"
	url := serve(t, func(c *Conn, _ <-chan struct{}) { _ = c.Close() })
	for offered, want := range map[string]string{
		"base64.binary.k8s.io": "base64.binary.k8s.io",
		token + ", a, b":       "a",
		token:                  "",
	} {
		_, head := dial(t, url, http.Header{"Sec-WebSocket-Protocol": {offered}})
		if got := head.Header.Get("Sec-WebSocket-Protocol"); got != want {
			t.Errorf("of %s %q is taken, want %q", offered, got, want)
		}
	}
}
