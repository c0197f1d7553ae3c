package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// outline is a valid object that others are held against. One that differs from it only inside of
// strings, and by other numbers in the place of numbers, is valid too, and has values of the same kinds
// in the same order: it need not be read to know that. It has the same keys, too, but for those that
// are of no importance. Objects of a list that follow each other are mostly so alike, and comparing is
// quicker by far than reading. The zero outline is of none; nothing is like it.
type outline struct {
	text    []byte
	insides []uint16 // of text, see Insides; of keys those that may differ
	runs    []run    // of what is compared, as far as it is
	passing bool     // the last of them has ended in a string that differs, which is not over
	from    int      // how far text is compared
	at      int      // how far the other object is
}

// run is a piece that is the same in both: it begins at from in the outline and at at in the other
// object. It goes on as far as what differs, or the next run, begins.
type run struct{ from, at int }

// likeness is what comparing comes to.
type likeness uint8

const (
	unlike likeness = iota
	alike
	undecided // as far as the object is there
)

// maxEscape is how long an escape is at most.
const maxEscape = len(`\u0000`)

// maxNumber is the longest number that may stand in the place of another.
const maxNumber = 64

// take makes o the outline of text, a valid object without space around it, which is copied. Keys may
// differ in some extents of it, which are in their order. It reports false, and o is of none, where
// text is longer than maxInsides, of which no copy should be kept.
func (o *outline) take(text []byte, keys ...extent) bool {
	o.text = append(o.text[:0], text...)
	if o.insides = insides(o.insides, text, keys); o.insides == nil {
		o.forget()
	}
	return len(o.text) > 0
}

// forget makes o the outline of none.
func (o *outline) forget() { o.text = o.text[:0] }

// begin is called before the pieces of another object. It returns o.
func (o *outline) begin() *outline {
	o.runs = append(o.runs[:0], run{})
	o.passing, o.from, o.at = false, 0, 0
	return o
}

// feed compares an object of which p is there; p is what it was before, with more after it. The
// object ends at o.at if it is alike.
func (o *outline) feed(p []byte) likeness {
	if len(o.text) == 0 {
		return unlike
	}
	for {
		if o.passing {
			if l := o.passString(p); l != alike {
				return l
			}
		}
		n := common(o.text[o.from:], p[o.at:])
		o.from, o.at = o.from+n, o.at+n
		switch {
		case o.from == len(o.text):
			return alike
		case o.at == len(p):
			return undecided
		}
		switch end := int(o.insides[o.from]); {
		case end == 0:
			return unlike
		case o.runs[len(o.runs)-1].from == o.from: // a number has just been passed, and what follows differs, too
			return unlike
		case o.text[end] == '"':
			o.from, o.passing = end, true
		default:
			if l := o.passNumber(p, end); l != alike {
				return l
			}
		}
	}
}

// passString goes on to the end of a string that differs, up to its closing quote.
func (o *outline) passString(p []byte) likeness {
	for {
		o.at = PassText(p, o.at)
		switch {
		case o.at == len(p):
			return undecided
		case p[o.at] == '"':
			o.passing = false
			o.runs = append(o.runs, run{o.from, o.at})
			return alike
		}
		end := skipEscape(p, o.at)
		switch {
		case end >= 0:
			o.at = end
		case p[o.at] == '\\' && len(p)-o.at < maxEscape:
			return undecided
		default:
			return unlike
		}
	}
}

// passNumber goes on to the end of a number that differs. It ends at end in the outline.
func (o *outline) passNumber(p []byte, end int) likeness {
	start := o.from
	for isDigit(o.text[start-1]) { // an object begins with a brace
		start--
	}
	from := o.at - (o.from - start)
	to := from
	for to < len(p) && isWordByte(p[to]) {
		to++
	}
	switch {
	case to-from > maxNumber:
		return unlike
	case to == len(p):
		return undecided
	case to == from || skipNumber(p[:to], from) != to:
		return unlike
	}
	o.from, o.at = end, to
	o.runs = append(o.runs, run{o.from, o.at})
	return alike
}

// startOf is where in the object compared last a text begins that begins at from in the outline: a
// string, after its quote, or any other value. Before a value there is a quote or punctuation, where
// no run begins: one that begins at from is what follows an empty string.
func (o *outline) startOf(from int) int {
	return o.runs[max(0, o.runsBefore(from)-1)].place(from)
}

// endOf is where in that object a text ends that ends at from in the outline, or where a comma, a
// bracket or a key begins.
func (o *outline) endOf(from int) int { return o.runs[o.runsBefore(from+1)-1].place(from) }

// runsBefore is how many runs begin before a place of the outline.
func (o *outline) runsBefore(place int) int {
	first, last := 0, len(o.runs)
	for first < last {
		if middle := (first + last) / 2; o.runs[middle].from < place {
			first = middle + 1
		} else {
			last = middle
		}
	}
	return first
}

// place is where in the other object a place of the outline is that is in r.
func (r run) place(from int) int { return r.at + from - r.from }

// common is how many bytes are the same at the start of both.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
