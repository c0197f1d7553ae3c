package kubeapi

import (
	"io"
	"net/http"
	"sync"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/websocket"
)

// batchBytes bounds what of a watch is held until it is written. A client that
// does not read keeps its server from writing, and this in memory.
const batchBytes = 32 << 10

// batch writes the events of a watch. Those that are waiting when a watch comes
// to write leave together: what a write costs, the client's waking included, is
// more than all else that a watch does for an event. None waits for another. A
// watch that has nothing to write holds no memory here.
type batch struct {
	w       io.Writer
	control *http.ResponseController // nil: what is written has left
	each    bool                     // each event is written by itself, and at once
	memory  *[]byte                  // nil while it is empty
	unsent  bool                     // something was written and may not have left
	err     error                    // the first of the client
}

// newBatch begins an answer; its headers count as written.
func newBatch(w http.ResponseWriter) *batch {
	return &batch{w: w, control: http.NewResponseController(w), unsent: true}
}

// newMessages is a batch of a WebSocket, of which each write is a message.
func newMessages(s *websocket.Conn) *batch { return &batch{w: s, each: true} }

// add enters one event. flush returns what the client did. A large object is not copied,
// but for a message: as long as a client does not read, a batch holds on to what it
// writes, and thousands may be written the same object.
func (b *batch) add(t cache.EventType, object []byte) {
	if len(object) >= batchBytes && !b.each {
		b.begin(t)
		b.write()
		b.send(object)
		b.end()
		return
	}
	b.begin(t)
	*b.memory = append(*b.memory, object...)
	b.end()
	if len(*b.memory) >= batchBytes || b.each {
		b.write()
	}
}

func (b *batch) begin(t cache.EventType) {
	b.hold()
	buf := append(*b.memory, `{"type":"`...)
	buf = append(buf, t...)
	*b.memory = append(buf, `","object":`...)
}

func (b *batch) end() {
	b.hold()
	*b.memory = append(*b.memory, "}\n"...)
}

func (b *batch) hold() {
	if b.memory == nil {
		b.memory = batches.Get().(*[]byte)
	}
}

func (b *batch) write() {
	if b.memory == nil {
		return
	}
	b.send(*b.memory)
	if *b.memory = (*b.memory)[:0]; cap(*b.memory) <= 2*batchBytes {
		batches.Put(b.memory)
	}
	b.memory = nil
}

func (b *batch) send(data []byte) {
	if b.err == nil {
		b.unsent = true
		_, b.err = b.w.Write(data)
	}
}

// flush sends what there is to send.
func (b *batch) flush() error {
	b.write()
	if b.err == nil && b.unsent && b.control != nil {
		b.unsent = false
		b.err = b.control.Flush()
	}
	return cut(b.err)
}

var batches = sync.Pool{New: func() any { return new([]byte) }}
