package rows

import "slices"

// Set is a set of numbers, in order. One alone takes no memory but that of the Set, and a
// number must be less than the largest there is. The zero Set is empty.
type Set struct {
	several *[]uint32 // sorted
	one     uint32    // + 1, while there are no more
}

// Add enters a number, once.
func (s *Set) Add(number uint32) {
	switch {
	case s.several != nil:
		*s.several = insert(*s.several, number)
	case s.one == 0:
		s.one = number + 1
	case s.one != number+1:
		s.several = &[]uint32{min(s.one-1, number), max(s.one-1, number)}
		s.one = 0
	}
}

// Remove takes out a number, if it is there.
func (s *Set) Remove(number uint32) {
	if s.several == nil {
		if s.one == number+1 {
			s.one = 0
		}
		return
	}
	at, found := slices.BinarySearch(*s.several, number)
	if !found {
		return
	}
	left := slices.Delete(*s.several, at, at+1)
	switch {
	case len(left) == 1:
		s.several, s.one = nil, left[0]+1
	case cap(left) > 4*len(left):
		left = slices.Clone(left)
		fallthrough
	default:
		*s.several = left
	}
}

// Has reports whether a number is there.
func (s *Set) Has(number uint32) bool {
	if s.several == nil {
		return s.one == number+1
	}
	_, found := slices.BinarySearch(*s.several, number)
	return found
}

// Len is how many numbers there are.
func (s *Set) Len() int {
	switch {
	case s.several != nil:
		return len(*s.several)
	case s.one != 0:
		return 1
	}
	return 0
}

// List returns the numbers in order, one alone in the memory given. They must not be changed,
// nor the Set while they are used.
func (s *Set) List(one *[1]uint32) []uint32 {
	switch {
	case s.several != nil:
		return *s.several
	case s.one != 0:
		one[0] = s.one - 1
		return one[:]
	}
	return nil
}

func insert(list []uint32, number uint32) []uint32 {
	if n := len(list); list[n-1] < number {
		return append(list, number)
	}
	at, found := slices.BinarySearch(list, number)
	if found {
		return list
	}
	return slices.Insert(list, at, number)
}
