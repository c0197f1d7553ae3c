package search

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache/internal/rows"
)

// TestTokens: after any texts came and went, the beginning of a word finds what a look at every
// text would, in blocks that are in order and not too many.
func TestTokens(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 9))
		var values rows.Rows[value]
		all := tokens{values: &values}
		texts := map[valueID]string{}
		word := func() string { return fmt.Sprintf("%c%d", 'a'+r.IntN(4), r.IntN(1500)) }
		for step := range 12_000 {
			if growing := step < 7000; len(texts) > 0 && (growing && r.IntN(4) == 0 || !growing && r.IntN(8) > 0) {
				for id := range texts {
					all.remove(id)
					values.Remove(uint32(id))
					delete(texts, id)
					break
				}
			} else {
				text := word()
				for range r.IntN(3) {
					text += "-" + word()
				}
				if r.IntN(50) == 0 {
					text += strings.Repeat("-", 1<<16) + word() + "." + word()
				}
				id := valueID(values.Add(value{text: text}))
				texts[id] = text
				all.add(id)
			}
			if step%50 == 0 {
				prefix := word()
				compareTokens(t, &all, texts, prefix[:1+r.IntN(len(prefix))])
			}
		}
		checkBlocks(t, &all)
		for id := range maps.Clone(texts) {
			all.remove(id)
			values.Remove(uint32(id))
		}
		if all.len()+len(all.blocks)+all.lists.Len() > 0 {
			t.Errorf("seed %d: %d words in %d blocks, and %d lists are left", seed, all.len(), len(all.blocks), all.lists.Len())
		}
	}
}

func compareTokens(t *testing.T, all *tokens, texts map[valueID]string, prefix string) {
	t.Helper()
	begins, has := map[uint32]bool{}, map[uint32]bool{}
	for id, text := range texts {
		for start, end := range words(text) {
			begins[uint32(id)] = begins[uint32(id)] || strings.HasPrefix(text[start:end], prefix)
			has[uint32(id)] = has[uint32(id)] || text[start:end] == prefix
		}
	}
	for sought, want := range map[string]map[uint32]bool{prefix: begins, prefix + "-": has} {
		maps.DeleteFunc(want, func(_ uint32, is bool) bool { return !is })
		got := slices.Sorted(all.candidates(sought))
		if got = slices.Compact(got); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%q: %d values, want %d", sought, len(got), len(want))
		}
	}
}

func checkBlocks(t *testing.T, all *tokens) {
	t.Helper()
	last := ""
	for i, b := range all.blocks {
		if len(b.words) == 0 || len(b.words) > blockMost || b.first > all.word(b.words[0]) || i > 0 && b.first <= last {
			t.Errorf("block %d of %d words begins with %q, after %q", i, len(b.words), b.first, last)
		}
		for _, w := range b.words {
			if word := all.word(w); word <= last {
				t.Errorf("%q comes after %q", word, last)
			}
			last = all.word(w)
		}
	}
	if n := len(all.blocks); n > 1 && n > 4*all.len()/blockMost+2 {
		t.Errorf("%d words are in %d blocks", all.len(), n)
	}
}
