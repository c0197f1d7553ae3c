package cache

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/informerd/informerd/cache/scalar"
)

// rangeTest is a FieldRange that something at hand can check. What it lets pass
// is for the Filter to decide.
type rangeTest struct {
	ranges []scalar.Range
	// held checks it on what every Object has at hand; nil if that says nothing.
	held func(*Object) bool
	// index has the values; creation stands for the order by creation; empty if
	// there is none.
	index string
}

// addRange makes a test of r, or notes that an index would have made it
// possible.
func (m *Matcher) addRange(r FieldRange, e *extraction) {
	t := rangeTest{ranges: r.Ranges}
	path := r.Path.String()
	name, indexed := e.indexOf(r.Path)
	switch identity := identityFields[path]; {
	case path == creationPath:
		if !t.all(scalar.Times) {
			return
		}
		t.index, t.held = creationPath, func(o *Object) bool { return bornWithin(o, r.Ranges) }
	case identity != nil:
		// An identity without a value stands for null, too.
		if !t.all(scalar.Texts) || t.hasText("") {
			return
		}
		t.held = func(o *Object) bool { return t.hasText(identity(o)) }
		if path == "metadata.namespace" {
			t.index = NamespaceIndex
		}
	case indexed:
		t.index = name
	default:
		m.noteUnhelped(r.Path)
		return
	}
	m.ranges = append(m.ranges, t)
}

func (t rangeTest) all(c scalar.Class) bool {
	return !slices.ContainsFunc(t.ranges, func(r scalar.Range) bool { return r.Class != c })
}

func (t rangeTest) hasText(s string) bool {
	return slices.ContainsFunc(t.ranges, func(r scalar.Range) bool { return r.HasText(s) })
}

// worthIt is how many rows it may take to find out about one candidate: reading
// and evaluating the JSON of one costs about as much.
const worthIt = 256

// addRanges lets pass what the indexes have within the ranges of tests. A range
// that holds too much to be worth its while beside what is known already is
// left to the Filter.
func (p *planner) addRanges(tests []rangeTest, c *contents) {
	for _, t := range tests {
		if t.index == "" {
			continue
		}
		if found := c.within(t, p.atMost(c.len())*worthIt, p.seen); found != nil {
			p.require(t.index, found)
		}
	}
}

// atMost is how many rows of n can still match.
func (p *planner) atMost(n int) int {
	for _, u := range p.include {
		n = min(n, u.size)
	}
	return n
}

// within returns the rows with a value that may be within the ranges of t, nil
// if those that are seen are more than most.
func (c *contents) within(t rangeTest, most int, seen *roaring.Bitmap) *posting {
	var found []*posting
	for _, r := range t.ranges {
		if t.index == creationPath {
			rows := c.created.within(r, most, seen)
			if rows == nil {
				return nil
			}
			found = append(found, rows)
			continue
		}
		n := 0
		idx := c.indexes[t.index]
		idx.values.within(r, func(h handle) bool {
			p := idx.postings[h]
			found = append(found, p)
			n += p.lenIn(seen)
			return n <= most
		})
		if n > most {
			return nil
		}
	}
	if long := c.indexes[longIndex(t.index)]; long != nil {
		for _, p := range long.postings {
			found = append(found, p)
		}
	}
	return merged(found)
}
