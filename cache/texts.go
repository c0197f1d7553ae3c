package cache

import (
	"encoding/binary"
	"hash/maphash"
)

// textBlock is how much memory texts take at a time. An address within a block has 16 bits.
const textBlock = 1 << 16

// texts are different texts, which are numbered from 1 on. They are only added to, so that
// what there was at a moment can be read without a lock. The zero value is ready.
type texts struct {
	textsAt
	used  int               // of the last block
	codes map[uint64]uint32 // by hash
}

// textsAt are the texts that there were at a moment.
type textsAt struct {
	blocks [][]byte
	starts []uint32 // of each text: its block, and 16 bits for where in that
}

func (t *textsAt) len() int { return len(t.starts) }

// text is the one with this number.
func (t *textsAt) text(code uint32) []byte {
	start := t.starts[code-1]
	from := t.blocks[start/textBlock][start%textBlock:]
	size, n := binary.Uvarint(from)
	return from[n : n+int(size)]
}

var textSeed = maphash.MakeSeed()

// find is the number of a text, and its hash; 0: there is none.
func (t *texts) find(text []byte) (code uint32, hash uint64) {
	hash = maphash.Bytes(textSeed, text)
	return t.codes[hash], hash
}

// has reports whether the number that find has found is that of text: another one may have
// the same hash.
func (t *texts) has(code uint32, text []byte) bool { return string(t.text(code)) == string(text) }

// add enters a text that is not there. It reports false if there is no number left for it.
func (t *texts) add(text []byte, hash uint64) (code uint32, ok bool) {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(text)))
	if need := n + len(text); len(t.blocks) == 0 || t.used+need > textBlock {
		if len(t.blocks) == textBlock {
			return 0, false
		}
		t.blocks, t.used = append(t.blocks, make([]byte, max(need, textBlock))), 0
	}
	block := len(t.blocks) - 1
	t.starts = append(t.starts, uint32(block*textBlock+t.used))
	t.used += copy(t.blocks[block][t.used:], size[:n])
	t.used += copy(t.blocks[block][t.used:], text)
	if t.codes == nil {
		t.codes = map[uint64]uint32{}
	}
	t.codes[hash] = uint32(len(t.starts))
	return uint32(len(t.starts)), true
}
