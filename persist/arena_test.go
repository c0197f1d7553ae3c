package persist

import (
	"bytes"
	"testing"
)

// TestArena takes rooms of odd sizes, twice, and looks whether each holds what was written into it.
func TestArena(t *testing.T) {
	var a arena
	for round := range 2 {
		a.reset()
		var taken [][]byte
		for i := range 300 {
			n := i * 7 % 1000
			if i%100 == 99 {
				n = arenaChunk + i // larger than a chunk
			}
			room := a.room(n + 20)
			if len(room) != 0 || cap(room) != n+20 {
				t.Fatalf("round %d: a room of %d and %d bytes for %d", round, len(room), cap(room), n+20)
			}
			taken = append(taken, append(room, bytes.Repeat([]byte{byte(i)}, n)...))
			a.take(n)
		}
		for i, b := range taken {
			if len(bytes.Trim(b, string([]byte{byte(i)}))) > 0 {
				t.Fatalf("round %d: room %d was written over", round, i)
			}
		}
		if round == 1 && len(a.chunks) > 12 {
			t.Errorf("%d chunks: those of the first round were not used again", len(a.chunks))
		}
	}
}
