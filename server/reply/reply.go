// Package reply is how both of the server's APIs answer: a Status and JSON have
// one shape, and an answer that may be long leaves in few and large writes. It
// knows nothing of what is asked.
package reply

import (
	"context"
	"net/http"
	"strconv"
	"sync"
)

const (
	// Whole is how much of an answer is held. One that is no longer leaves when
	// it is complete, with its length; of a longer one, the next part is made
	// when the one before has left.
	Whole = 512 << 10
	// writeSize is what is written at a time. Of each write net/http makes a chunk, in
	// two system calls that both wake the client. The deadline of a client that does
	// not read is one of each write, so they must not be as large as they could be.
	writeSize = 256 << 10
	// checkEvery is how many times something is appended between two looks at
	// the context.
	checkEvery = 64
)

// Writer collects an answer and writes it. Small writes cost more than what is
// in them: each is a system call or two and wakes the client, and an answer of
// unknown length is framed and read in the pieces it was written in.
//
// After an error nothing more may be done than to ask for its circumstances.
type Writer struct {
	ctx      context.Context
	w        http.ResponseWriter
	memory   *[]byte
	buf      []byte
	appended int
	begun    bool
	gone     bool
}

// New begins an answer, whose headers may be changed until it has Begun. It ends
// early when ctx does. Release it.
func New(ctx context.Context, w http.ResponseWriter) *Writer {
	memory := buffers.Get().(*[]byte)
	return &Writer{ctx: ctx, w: w, memory: memory, buf: (*memory)[:0]}
}

// Append adds what add appends to its argument.
func (w *Writer) Append(add func(dst []byte) ([]byte, error)) error {
	if w.appended%checkEvery == 0 && w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	w.appended++
	buf, err := add(w.buf)
	if err != nil {
		return err
	}
	if w.buf = buf; len(buf) <= Whole {
		return nil
	}
	return w.write()
}

// Finish writes what has not left yet.
func (w *Writer) Finish() error {
	if !w.begun {
		w.w.Header().Set("Content-Length", strconv.Itoa(len(w.buf)))
	}
	return w.write()
}

func (w *Writer) write() error {
	for rest := w.buf; len(rest) > 0; {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		w.begun = true
		n, err := w.w.Write(rest[:min(len(rest), writeSize)])
		if err != nil {
			w.gone = true
			return err
		}
		rest = rest[n:]
	}
	w.buf = w.buf[:0]
	return nil
}

// Begun reports whether the client has, or may have, a part of the answer. Until
// then an error can be answered as such.
func (w *Writer) Begun() bool { return w.begun }

// Gone reports whether it was the client that could not be written to.
func (w *Writer) Gone() bool { return w.gone }

// Release gives back the memory of the answer.
func (w *Writer) Release() {
	if cap(w.buf) <= 2*Whole { // one huge object must not hold on to its memory
		*w.memory = w.buf[:0]
	}
	buffers.Put(w.memory)
	w.memory, w.buf = nil, nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}
