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

// add enters one event. flush returns what the client did.
func (b *batch) add(t cache.EventType, object []byte) {
	if b.memory == nil {
		b.memory = batches.Get().(*[]byte)
	}
	const begin, between, end = `{"type":"`, `","object":`, "}\n"
	buf := *b.memory
	if b.messages {
		buf = websocket.AppendText(buf, len(begin)+len(t)+len(between)+len(object)+len(end))
	}
	buf = append(append(buf, begin...), t...)
	buf = append(append(buf, between...), object...)
	*b.memory = append(buf, end...)
	if len(*b.memory) >= batchBytes {
		b.write()
	}
}

func (b *batch) write() {
	if b.memory == nil {
		return
	}
	if b.err == nil {
		b.unsent = true
		_, b.err = b.w.Write(*b.memory)
	}
	if *b.memory = (*b.memory)[:0]; cap(*b.memory) <= 2*batchBytes {
		batches.Put(b.memory)
	}
	b.memory = nil
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
