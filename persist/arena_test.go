package persist

import (
	"bytes"
	"math/rand/v2"
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

// TestArenaBounded: however the sizes of values change from one transaction to the next, an arena
// holds about as much as the largest of them.
func TestArenaBounded(t *testing.T) {
	const limit = 8 << 20
	rng := rand.New(rand.NewPCG(3, 4))
	var a arena
	for range 100 {
		a.reset()
		for taken := 0; taken < limit; {
			n := 500 + rng.IntN(3000)
			if rng.IntN(50) == 0 {
				n = 64<<10 + rng.IntN(960<<10) // such as ConfigMaps of Helm
			}
			a.room(n)
			a.take(n)
			taken += n
		}
	}
	held := 0
	for _, c := range a.chunks {
		held += cap(c)
	}
	if held > 3*limit {
		t.Errorf("%d MiB are held for transactions of %d MiB", held>>20, limit>>20)
	}
}
