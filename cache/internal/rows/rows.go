// Package rows numbers many small things, so that they can name each other by four bytes and
// are found without a pointer to each: what a graph or a search knows of a million objects is
// mostly such names.
//
// It refuses to hold keys: a Table finds a number by a hash, and who uses it says what of it is
// meant.
package rows

// chunk is how many items are in one piece of memory.
const chunk = 1024

// Rows are items by their numbers, which are given from 0 on, and again after they were removed.
// The zero Rows are empty. Not safe for concurrent changes.
type Rows[T any] struct {
	chunks [][]T // all but the last are full
	free   []uint32
}

// Add enters an item and returns its number.
func (r *Rows[T]) Add(item T) uint32 {
	if last := len(r.free) - 1; last >= 0 {
		i := r.free[last]
		r.free = r.free[:last]
		*r.At(i) = item
		return i
	}
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == chunk {
		var full []T
		if last >= 0 {
			full = make([]T, 0, chunk) // so many may have as many more
		}
		r.chunks = append(r.chunks, full)
		last++
	}
	r.chunks[last] = append(r.chunks[last], item)
	return uint32(last*chunk + len(r.chunks[last]) - 1)
}

// At is the item of a number before End, the zero item after it was removed. It is in its place
// until the next Add.
func (r *Rows[T]) At(i uint32) *T { return &r.chunks[i/chunk][i%chunk] }

// Remove takes out an item that is there. Its number is free, and with the last item all are.
func (r *Rows[T]) Remove(i uint32) {
	var none T
	*r.At(i) = none
	if r.free = append(r.free, i); r.Len() == 0 {
		*r = Rows[T]{} // the memory of what was many, and the numbers begin in order again
	}
}

// End is the number after all that were given.
func (r *Rows[T]) End() uint32 {
	last := len(r.chunks) - 1
	if last < 0 {
		return 0
	}
	return uint32(last*chunk + len(r.chunks[last]))
}

// Len is how many items there are.
func (r *Rows[T]) Len() int { return int(r.End()) - len(r.free) }
