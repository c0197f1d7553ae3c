package websocket

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// TokenProtocol begins the subprotocol by which a page in a browser, which cannot set
// headers of a WebSocket, gives its token to an API server: the rest is the token in
// base64 for URLs.
const TokenProtocol = "base64url.bearer.authorization.k8s.io."

const (
	// maxReceived bounds what a client may send over a connection, in bytes: it has
	// nothing to say but that it is there and that it goes.
	maxReceived = 1 << 20
	// readBuffer is for what clients send.
	readBuffer = 512
	// closeWait is how long the word that ends a WebSocket waits for another one.
	closeWait = time.Second
)

// Asked reports whether r asks for a WebSocket.
func Asked(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && websocket.IsWebSocketUpgrade(r)
}

// writeBuffers are for messages while they are written: most of the time none is.
var writeBuffers sync.Pool

// Conn is one WebSocket. Write, Close and Cut belong to one goroutine; another of its own
// reads until the client goes, and has ended when Close or Cut return. Cut may follow
// either.
type Conn struct {
	conn *websocket.Conn
	in   *io.LimitedReader // what the client may still send
	done chan struct{}     // closed when nothing is read any more
}

// HandshakeError says what is wrong with a request for a WebSocket. It is not answered.
type HandshakeError struct{ error }

// TakeOver gives the connection of an answer, which is the caller's to close. Nil takes it
// as it is.
type TakeOver func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error)

// Open answers r with a WebSocket over the connection that take gives, with the headers of
// w. gone is called once, when the client closes it, goes away or does what it may not. A
// *HandshakeError is from before anything was taken; after other errors the connection is
// closed.
//
// Of the subprotocols that a client offers the first is taken: what is sent is the same in
// all of them, and browsers want an answer where they have offered any. One that carries a
// token is not answered with.
func Open(w http.ResponseWriter, r *http.Request, take TakeOver, gone func()) (*Conn, error) {
	header := w.Header().Clone()
	for _, offered := range websocket.Subprotocols(r) {
		if !strings.HasPrefix(offered, TokenProtocol) {
			header.Set("Sec-WebSocket-Protocol", offered)
			break
		}
	}
	c := &Conn{done: make(chan struct{})}
	refused := false
	upgrader := websocket.Upgrader{
		ReadBufferSize:  readBuffer,
		WriteBufferPool: &writeBuffers,
		CheckOrigin:     func(*http.Request) bool { return true },
		Error:           func(_ http.ResponseWriter, _ *http.Request, code int, _ error) { refused = code < 500 },
	}
	var err error
	if c.conn, err = upgrader.Upgrade(&taken{w, take, c}, r, header); refused {
		return nil, &HandshakeError{err}
	}
	if err != nil {
		return nil, err
	}
	go c.read(gone)
	return c, nil
}

// taken gives its connection for c, which is only to hear so much of it.
type taken struct {
	http.ResponseWriter
	take TakeOver
	c    *Conn
}

func (t *taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	take := t.take
	if take == nil {
		take = func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		}
	}
	conn, buffered, err := take(t.ResponseWriter)
	if err != nil {
		return nil, nil, err
	}
	t.c.in = &io.LimitedReader{R: conn, N: maxReceived}
	return &bounded{conn, t.c.in, buffered.Writer}, buffered, nil
}

// bounded is a connection of which only so much is heard.
type bounded struct {
	net.Conn
	in io.Reader
	// head is for what is written first. It is what HTTP would write it to: conn may
	// count what it is given, and a head is not counted elsewhere.
	head *bufio.Writer
}

func (b *bounded) Read(p []byte) (int, error) { return b.in.Read(p) }

func (b *bounded) Write(p []byte) (int, error) {
	head := b.head
	if head == nil {
		return b.Conn.Write(p)
	}
	b.head = nil
	n, err := head.Write(p)
	return n, errors.Join(err, head.Flush())
}

// Write sends a message.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.conn.WriteMessage(websocket.TextMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close tells the client that all is said.
func (c *Conn) Close() error {
	c.sayClose(websocket.CloseNormalClosure)
	return c.Cut()
}

// Cut ends the connection without a word, so that the client cannot take what it got for
// the whole.
func (c *Conn) Cut() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// read takes in what the client sends, and forgets it: clients of the API server that
// talk in a watch are not heard there, either. Pings are answered.
func (c *Conn) read(gone func()) {
	defer close(c.done)
	defer gone()
	for {
		if _, _, err := c.conn.NextReader(); err != nil {
			if c.in.N <= 0 {
				c.sayClose(websocket.CloseMessageTooBig)
			}
			return
		}
	}
}

func (c *Conn) sayClose(reason int) {
	// A client that left does not miss it.
	_ = c.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(reason, ""), time.Now().Add(closeWait))
}
