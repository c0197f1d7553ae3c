package rawjson

import (
	"math/rand/v2"
	"testing"
)

// TestBoundary holds words against looking at one byte after the other, of what is JSON and
// what is not, in pieces of all sizes.
func TestBoundary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		p := []byte{"{["[random.IntN(2)]}
		alphabet := []string{"{}[]\"\\|a\x00\xfb\xdb", "{}\"a", "\"\\a", "[[[]\"aaaaaaaaaaaaaaaa", "{}aaaaaaaaaaaa"}[random.IntN(5)]
		for range random.IntN(100) {
			p = append(p, alphabet[random.IntN(len(alphabet))])
		}
		want, wantDone := byStep(p)
		var b boundary
		n, done := 0, false
		for n < len(p) && !done {
			var k int
			piece := p[n : n+1+random.IntN(len(p)-n)]
			if k, done = b.feed(piece); k != len(piece) && !done {
				t.Fatalf("%q: takes %d of %q, and does not end", p, k, piece)
			}
			n += k
		}
		if n != want || done != wantDone {
			t.Fatalf("%q: ends after %d bytes (%t), want %d (%t)", p, n, done, want, wantDone)
		}
	}
}

func byStep(p []byte) (n int, done bool) {
	b := boundary{mode: inNested, open: p[0], depth: 1}
	for i := 1; i < len(p); i++ {
		if b.step(p[i]) {
			return i + 1, true
		}
	}
	return len(p), false
}
