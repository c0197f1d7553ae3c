package websocket

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// maxReceived bounds what a client may send over a connection, in bytes: it has nothing
// to say but that it is there and that it goes.
const maxReceived = 1 << 20

// Opcodes of frames. Those of control have a bit of their own.
const (
	opText    = 0x1
	opClose   = 0x8
	opPing    = 0x9
	opPong    = 0xA
	opControl = 0x8

	final  = 0x80 // the last frame of its message
	masked = 0x80
)

// maxControl is what a control frame may carry.
const maxControl = 125

// Reasons to close.
const (
	closeNormal   = 1000
	closeProtocol = 1002
	closeTooMuch  = 1009
)

// Conn is one WebSocket. Write, Close and Cut belong to one goroutine; another of its own
// reads until the client goes, and has ended when Close or Cut return. Cut may follow
// either. What is written to conn is written by one goroutine at a time.
type Conn struct {
	conn   net.Conn
	in     io.Reader
	closed func()
	done   chan struct{} // closed when nothing is read any more

	mu   sync.Mutex // guards the following, and writing to conn
	over bool       // a close frame was sent: nothing may follow it
}

// Open sends the head of the answer and begins to read. closed is called once, when the
// client closes the WebSocket, goes away or does what it may not. conn is closed in the
// end, also if Open fails.
func Open(conn net.Conn, buffered *bufio.ReadWriter, head *http.Response, closed func()) (*Conn, error) {
	if err := errors.Join(head.Write(buffered), buffered.Flush()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &Conn{conn: conn, in: io.LimitReader(buffered.Reader, maxReceived), closed: closed, done: make(chan struct{})}
	go c.read()
	return c, nil
}

// AppendText begins a message of so many bytes, which must follow.
func AppendText(b []byte, n int) []byte { return appendHead(b, opText, n) }

func appendHead(b []byte, opcode byte, n int) []byte {
	b = append(b, final|opcode)
	switch {
	case n <= maxControl:
		return append(b, byte(n))
	case n <= 0xFFFF:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
}

// Write sends messages, each whole and begun by AppendText.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, net.ErrClosed
	}
	return c.conn.Write(p)
}

// Close tells the client that all is said.
func (c *Conn) Close() error {
	c.sayClose(closeNormal)
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
// talk in a watch are not heard there, either.
func (c *Conn) read() {
	defer close(c.done)
	defer c.closed()
	for {
		opcode, payload, err := c.frame()
		switch {
		case errors.Is(err, errFrame):
			c.sayClose(closeProtocol)
			return
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			c.sayClose(closeTooMuch) // or it is gone, and does not hear it
			return
		case err != nil:
			return
		case opcode == opClose:
			c.sayClose(closeNormal)
			return
		case opcode == opPing:
			c.sayPong(payload)
		}
	}
}

var errFrame = errors.New("no frame of a client")

// frame is the next one; of data, the payload is not kept.
func (c *Conn) frame() (opcode byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	opcode = head[0] & 0x0F
	length, wide := uint64(head[1]&^masked), 0
	switch length {
	case 126:
		wide = 2
	case 127:
		wide = 8
	}
	control := opcode&opControl != 0
	if head[1]&masked == 0 || head[0]&0x70 != 0 || control && (length > maxControl || head[0]&final == 0) {
		return 0, nil, errFrame
	}
	rest := make([]byte, wide+4) // the length, and what the payload is masked with
	if _, err := io.ReadFull(c.in, rest); err != nil {
		return 0, nil, err
	}
	switch wide {
	case 2:
		length = uint64(binary.BigEndian.Uint16(rest))
	case 8:
		length = binary.BigEndian.Uint64(rest)
	}
	if !control {
		if length > maxReceived {
			return 0, nil, io.ErrUnexpectedEOF
		}
		_, err := io.CopyN(io.Discard, c.in, int64(length))
		return opcode, nil, err
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(c.in, payload); err != nil {
		return 0, nil, err
	}
	for n := range payload {
		payload[n] ^= rest[wide+n%4]
	}
	return opcode, payload, nil
}

func (c *Conn) sayClose(reason uint16) {
	frame := binary.BigEndian.AppendUint16(appendHead(nil, opClose, 2), reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		_, _ = c.conn.Write(frame) // a client that left does not miss it
	}
}

func (c *Conn) sayPong(payload []byte) {
	_, _ = c.Write(append(appendHead(nil, opPong, len(payload)), payload...)) // the next write meets the same error
}
