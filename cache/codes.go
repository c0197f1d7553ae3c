package cache

import "slices"

// codeRows is how many rows have their codes together.
const codeRows = 4096

// codes are numbers by row, 0 where there is none. Copies share what has not changed since.
type codes struct {
	chunks codesAt
	taken  uint32 // how many copies were
}

// codesAt are the codes of a moment, by row and codeRows. A chunk without any may be nil.
type codesAt []*codeChunk

type codeChunk struct {
	of [codeRows]uint32
	// since is how many copies had been taken when the chunk was made: those are not of it.
	since uint32
}

// codeChunkBytes is what is held of a chunk.
const codeChunkBytes = 4*codeRows + 8

func (c codesAt) at(row uint32) uint32 {
	if i := int(row / codeRows); i < len(c) && c[i] != nil {
		return c[i].of[row%codeRows]
	}
	return 0
}

// copy is what the codes are now. Nobody modifies it.
func (c *codes) copy() codesAt {
	c.taken++
	return slices.Clone(c.chunks)
}

// has reports whether there is memory for the code of a row.
func (c *codes) has(row uint32) bool {
	i := int(row / codeRows)
	return i < len(c.chunks) && c.chunks[i] != nil
}

func (c *codes) set(row, code uint32) {
	i := int(row / codeRows)
	if i >= len(c.chunks) {
		c.chunks = slices.Grow(c.chunks, i+1-len(c.chunks))[:i+1]
	}
	chunk := c.chunks[i]
	switch {
	case chunk == nil:
		chunk = &codeChunk{since: c.taken}
	case chunk.since < c.taken: // a copy has it
		own := *chunk
		own.since = c.taken
		chunk = &own
	}
	c.chunks[i] = chunk
	chunk.of[row%codeRows] = code
}

// bytes are those that are held.
func (c *codes) bytes() (bytes int64) {
	for _, chunk := range c.chunks {
		if chunk != nil {
			bytes += codeChunkBytes
		}
	}
	return bytes
}
