// Package shape takes excerpts of objects that are held beside a sibling without reading them.
// Where they differ from it only inside of strings and numbers, as pods of a ReplicaSet do in names,
// addresses, digests and times, they have the same keys, and values of the same kinds, in the same
// order: what is wanted of the sibling was looked for once, and of each of them it is cut out of
// there.
package shape

import (
	"github.com/informerd/informerd/cache/internal/delta"
	"github.com/informerd/informerd/cache/rawjson"
)

// Shape is where the excerpt of one object, the sibling, is from. The zero Shape is of none. It
// belongs to one goroutine.
type Shape struct {
	excerpt []byte // of the sibling
	spans   []rawjson.Span
	base    []byte
	insides []uint16     // of base, see rawjson.Insides
	known   []delta.Part // of the object that was read last, as its delta says
	parts   []delta.Part // all of them
}

// Take makes s the Shape of what e takes out of base, which is valid JSON.
func (s *Shape) Take(e *rawjson.Excerpt, base []byte) {
	if s.insides = rawjson.Insides(s.insides, base); s.insides != nil {
		s.excerpt, s.spans = e.Trace(s.excerpt[:0], s.spans[:0], base)
		s.base = append(s.base[:0], base...)
	}
}

// Append appends the excerpt of object, which is valid JSON and beside the sibling what d says. ok
// is false where it has, or may have, another shape.
func (s *Shape) Append(dst, object []byte, d *delta.Steps) (_ []byte, ok bool) {
	if len(s.insides) == 0 || !s.fits(object, d) {
		return dst, false
	}
	at, parts := 0, s.parts
	for _, span := range s.spans {
		dst = append(dst, s.excerpt[at:span.At]...)
		at = span.At + span.Len
		var start, end int
		start, parts = startOf(parts, span.From)
		end, parts = endOf(parts, span.From+span.Len)
		dst = append(dst, object[start:end]...)
	}
	return append(dst, s.excerpt[at:]...), true
}

// startOf is where the value begins in the object that begins at from in the sibling, and the parts
// from there on. The byte before it is in both, since it is in no string or number. So where other
// digits come in the place of its first ones, the part before ends at from, and they are of the value.
func startOf(parts []delta.Part, from int) (int, []delta.Part) {
	for parts[0].From+parts[0].Len < from {
		parts = parts[1:]
	}
	return parts[0].At + from - parts[0].From, parts
}

// endOf is the same of its end, where what comes after the last digit is of it, too.
func endOf(parts []delta.Part, from int) (int, []delta.Part) {
	for len(parts) > 1 && parts[1].From <= from {
		parts = parts[1:]
	}
	return parts[0].At + from - parts[0].From, parts
}

// fits finds all parts that the object has in common with the sibling, and reports whether it
// differs from it only inside of strings and numbers.
func (s *Shape) fits(object []byte, d *delta.Steps) bool {
	s.known, s.parts = d.Parts(s.known[:0]), s.parts[:0]
	at, from := 0, 0 // the end of the part before
	for _, p := range s.known {
		if !s.fitsUntil(at, from, p.From, object[:p.At]) {
			return false
		}
		s.add(p)
		at, from = p.At+p.Len, p.From+p.Len
	}
	return s.fitsUntil(at, from, len(s.base), object)
}

// fitsUntil is fits for what the object, which is told as far as that, has from at on in the place
// of what the sibling has between from and to. Before and after, what was read of both is the same
// but for what is in strings and numbers, and both go on in the same key, string, number or
// between them. So all that comes is read alike, too.
func (s *Shape) fitsUntil(at, from, to int, object []byte) bool {
	for from < to {
		end := s.inside(from)
		if end > 0 {
			if s.inside(to) == end {
				break
			}
			if from, at = end, s.pass(object, at, end); at < 0 {
				return false
			}
		}
		// Keys and punctuation are the same, as is what follows a string or number.
		if at == len(object) || object[at] != s.base[from] {
			return false
		}
		s.add(delta.Part{At: at, From: from, Len: 1})
		at, from = at+1, from+1
	}
	if end := s.inside(to); end > to {
		at = s.passText(object, at, end) // and what follows is the same
	} else if end > 0 {
		at = s.pass(object, at, end)
	}
	return from <= to && at == len(object)
}

// pass is where the string or number ends in the object that is at at, and ends at end in the
// sibling; -1: a number has no digits.
func (s *Shape) pass(object []byte, at, end int) int {
	at = s.passText(object, at, end)
	if s.base[end] != '"' && (at == 0 || !isDigit(object[at-1])) {
		return -1
	}
	return at
}

// passText is where there is what cannot be in it.
func (s *Shape) passText(object []byte, at, end int) int {
	if s.base[end] == '"' {
		return rawjson.PassText(object, at)
	}
	for at < len(object) && isDigit(object[at]) {
		at++
	}
	return at
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// inside is rawjson.Insides of a place.
func (s *Shape) inside(place int) int {
	if place == len(s.insides) {
		return 0
	}
	return int(s.insides[place])
}

// add adds a part after the others.
func (s *Shape) add(p delta.Part) {
	if n := len(s.parts); n > 0 {
		if last := &s.parts[n-1]; last.At+last.Len == p.At && last.From+last.Len == p.From {
			last.Len += p.Len
			return
		}
	}
	s.parts = append(s.parts, p)
}
