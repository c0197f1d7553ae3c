// Package brief has texts that are good for a short time. What is read of each of a million
// objects is mostly garbage as soon as the object is entered, and small: of each piece of memory
// full of such texts something that stays would be left, and keep all of it.
package brief

import "unsafe"

// Texts are the texts of one object, in memory that those of the next one get. A text is good until
// Release: who keeps one has to clone it. Make them with New. They are not safe for concurrent use.
type Texts struct{ room []byte }

const (
	usual = 512      // bytes that most objects need no more of
	most  = 16 << 10 // the size up to which the memory is used again
)

// New has no text yet.
func New() Texts { return Texts{make([]byte, 0, usual)} }

// Add has a copy of text.
func (t *Texts) Add(text []byte) string {
	return t.Append(func(dst []byte) []byte { return append(dst, text...) })
}

// Append has the text that write appends. It may take back of that, but nothing else.
func (t *Texts) Append(write func(dst []byte) []byte) string {
	start := len(t.room)
	t.room = write(t.room)
	text := t.room[start:] // what is appended later goes behind it, or elsewhere
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Released is told of memory whose texts must not be used any more: tests overwrite it.
var Released = func([]byte) {}

// Release has no text any more.
func (t *Texts) Release() {
	Released(t.room)
	if t.room = t.room[:0]; cap(t.room) > most {
		*t = New()
	}
}
