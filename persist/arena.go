package persist

// arenaChunk is how many bytes an arena takes at a time.
const arenaChunk = 64 << 10

// arena is memory for the values of one transaction of bbolt, which keeps them until it ends:
// then the next one may have it. The zero arena is empty.
type arena struct {
	chunks [][]byte // each up to what is taken of it
	at     int      // the chunk that is taken from
}

// room is an empty slice with a capacity of n bytes. What is appended to it is the caller's
// once it is taken.
func (a *arena) room(n int) []byte {
	for ; a.at < len(a.chunks); a.at++ {
		if c := a.chunks[a.at]; cap(c)-len(c) >= n {
			return c[len(c) : len(c) : len(c)+n]
		}
	}
	a.chunks = append(a.chunks, make([]byte, 0, max(arenaChunk, n)))
	c := a.chunks[a.at]
	return c[:0:n]
}

// take keeps n bytes of the room that was given last.
func (a *arena) take(n int) {
	c := a.chunks[a.at]
	a.chunks[a.at] = c[:len(c)+n]
}

// reset gives all of it to the next transaction: the one before has ended.
func (a *arena) reset() {
	for i, c := range a.chunks {
		a.chunks[i] = c[:0]
	}
	a.at = 0
}
