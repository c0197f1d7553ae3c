package cache

import (
	"encoding/binary"
	"hash/maphash"
)

const (
	// textBlock is how much memory many texts take at a time, and textFirst the first of them.
	// An address within a block has 16 bits.
	textBlock = 1 << 16
	textFirst = 1 << 12
	// textEntry is about what is held of each text besides it.
	textEntry = 36
)

// texts are different texts, which are numbered from 1 on. They are only added to, so that
// what there was at a moment can be read without a lock. The zero value is ready.
type texts struct {
	textsAt
	used  int               // of the last block
	held  int64             // bytes of all blocks
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
	if size := t.block(n + len(text)); size > 0 {
		if len(t.blocks) == textBlock {
			return 0, false
		}
		t.blocks, t.used = append(t.blocks, make([]byte, size)), 0
		t.held += int64(size)
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

// block is how large a block has to be made for so many bytes; 0: there is room for them.
func (t *texts) block(need int) int {
	if len(t.blocks) > 0 && t.used+need <= min(len(t.blocks[len(t.blocks)-1]), textBlock) {
		return 0
	}
	return max(need, int(min(max(t.held, textFirst), textBlock)))
}

// cost is what it takes to add a text of so many bytes.
func (t *texts) cost(size int) int64 {
	var prefix [binary.MaxVarintLen64]byte
	return textEntry + int64(t.block(binary.PutUvarint(prefix[:], uint64(size))+size))
}

// bytes are those that are held.
func (t *texts) bytes() int64 { return t.held + int64(textEntry*t.len()) }
