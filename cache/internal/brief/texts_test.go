package brief

import (
	"fmt"
	"strings"
	"testing"
)

// TestTexts: texts stay what they are until they are released, however many come, and the memory of
// usual ones is used again.
func TestTexts(t *testing.T) {
	texts := New()
	var kept []string
	for i := range 1000 {
		kept = append(kept, texts.Add(fmt.Append(nil, "text ", i)), texts.Append(func(dst []byte) []byte {
			return append(dst, "taken back"...)[:len(dst)+len("taken")]
		}))
	}
	for i := range 1000 {
		if got, want := kept[2*i], fmt.Sprint("text ", i); got != want || kept[2*i+1] != "taken" {
			t.Fatalf("%q and %q, want %q and taken", got, kept[2*i+1], want)
		}
	}
	if texts.Add(nil) != "" {
		t.Error("nothing is something")
	}
	texts.Add([]byte(strings.Repeat("x", 2*most)))
	if texts.Release(); cap(texts.room) > most {
		t.Errorf("%d bytes are held for nothing", cap(texts.room))
	}
	raw := []byte("some text")
	if n := testing.AllocsPerRun(100, func() {
		texts.Add(raw)
		texts.Append(func(dst []byte) []byte { return append(dst, raw...) })
		texts.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
