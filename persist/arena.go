package persist

const (
	// arenaChunk is how many bytes an arena takes at a time.
	arenaChunk = 64 << 10
	// arenaLargest is the largest value that lies in a chunk, so that little of one is left
	// over. Others have memory of their own: where sizes change from one transaction to the
	// next, chunks made for them would not be found again.
	arenaLargest = arenaChunk / 4
)

// arena is memory for the values of one transaction of bbolt, which keeps them until it ends:
// then the next one may have it. The zero arena is empty.
type arena struct {
	chunks [][]byte // each up to what is taken of it
	at     int      // the chunk that is taken from
	apart  bool     // the room that was given last is in no chunk
}

// room is an empty slice with a capacity of n bytes. What is appended to it is the caller's
// once it is taken.
func (a *arena) room(n int) []byte {
	if a.apart = n > arenaLargest; a.apart {
		return make([]byte, 0, n)
	}
	for ; a.at < len(a.chunks); a.at++ {
		if c := a.chunks[a.at]; cap(c)-len(c) >= n {
			return c[len(c) : len(c) : len(c)+n]
		}
	}
	a.chunks = append(a.chunks, make([]byte, 0, arenaChunk))
	c := a.chunks[a.at]
	return c[:0:n]
}

// take keeps n bytes of the room that was given last.
func (a *arena) take(n int) {
	if a.apart {
		return
	}
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
