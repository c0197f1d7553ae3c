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
	w        io.Writer
	control  *http.ResponseController // nil: what is written has left
	messages bool                     // each event is a message of a WebSocket
	memory   *[]byte                  // nil while it is empty
	unsent   bool                     // something was written and may not have left
	err      error                    // the first of the client
}

// newBatch begins an answer; its headers count as written.
func newBatch(w http.ResponseWriter) *batch {
	return &batch{w: w, control: http.NewResponseController(w), unsent: true}
}

// newMessages is a batch of a WebSocket.
func newMessages(s *websocket.Conn) *batch { return &batch{w: s, messages: true} }

// What is around the object of an event.
const (
	eventBegin   = `{"type":"`
	eventBetween = `","object":`
	eventEnd     = "}\n"
)

// add enters one event. flush returns what the client did. A large object is not copied:
// as long as a client does not read, a batch holds on to what it writes, and thousands may
// be written the same object. A message is, since it has to be written at once: between
// its parts the WebSocket might answer a ping.
func (b *batch) add(t cache.EventType, object []byte) {
	if len(object) >= batchBytes && !b.messages {
		b.begin(t, len(object))
		b.write()
		b.send(object)
		b.end()
		return
	}
	b.begin(t, len(object))
	*b.memory = append(*b.memory, object...)
	b.end()
	if len(*b.memory) >= batchBytes {
		b.write()
	}
}

// begin is of an event with an object of size bytes.
func (b *batch) begin(t cache.EventType, size int) {
	if b.memory == nil {
		b.memory = batches.Get().(*[]byte)
	}
	buf := *b.memory
	if b.messages {
		buf = websocket.AppendText(buf, len(eventBegin)+len(t)+len(eventBetween)+size+len(eventEnd))
	}
	buf = append(append(buf, eventBegin...), t...)
	*b.memory = append(buf, eventBetween...)
}

func (b *batch) end() {
	if b.memory == nil {
		b.memory = batches.Get().(*[]byte)
	}
	*b.memory = append(*b.memory, eventEnd...)
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
