package cache

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// candidates are the objects that a Select has to look at, with the version they
// are of.
type candidates struct {
	matcher  *Matcher
	version  string
	revision uint64
	plan     Plan
	columns  []*columnAt
	// Either few, in no order, or those in all that are in rows, if not nil.
	few  []entry
	all  *tree
	rows *roaring.Bitmap
}

func (s *Store) candidates(m *Matcher) (*candidates, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, err := s.currentLocked(m)
	if err == nil {
		err = s.askableLocked()
	}
	if err != nil {
		return nil, err
	}
	c := &candidates{matcher: m, version: s.version}
	if keys, ok := m.keys(m.extraction.spec.Namespaced); ok {
		c.few, c.revision = s.contents.getAll(keys, m.scope), s.revisionLocked(m.scope)
		return c, nil
	}
	p := newPlanner(s.contents, m)
	p.addRanges(m.ranges, s.contents)
	c.plan.Indexes, c.revision = p.names, s.revisionLocked(m.scope)
	switch rows := p.rows(s.contents.live); {
	case p.none:
	case rows.all:
		c.all = s.treeLocked()
	case rows.len()*16 > s.contents.len():
		c.all, c.rows = s.treeLocked(), rows.bitmap()
	default:
		c.few = s.contents.collect(rows)
	}
	c.columns = s.columnsLocked(m, c.len())
	return c, nil
}

func (c *candidates) len() int {
	switch {
	case c.all == nil:
		return len(c.few)
	case c.rows != nil:
		return int(c.rows.GetCardinality())
	default:
		return c.all.Len()
	}
}

// ordered are the candidates by key, but for those that are known not to match.
func (c *candidates) ordered() located {
	p := &pass{rows: c.rows, known: c.known(), places: len(c.columns) > 0}
	switch l := c.room(p); {
	case c.all == nil:
		slices.SortFunc(c.few, entry.compare)
		take := p.into(&l)
		for _, e := range c.few {
			take(e)
		}
		return l
	case c.rows == nil && c.all.Len() >= inHalvesFrom:
		return c.inHalves(p, l)
	default:
		c.all.Scan(p.into(&l))
		return l
	}
}

// room is for those that are left.
func (c *candidates) room(p *pass) located {
	n := c.len()
	if p.known != nil {
		n = p.known.left(n)
	}
	l := located{objects: objectSlices.get(n), columns: c.columns}
	if p.places {
		l.rows = numberSlices.get(n)
	}
	return l
}

// inHalvesFrom is from how many objects on both halves of the order are gone through at once.
// Tests have it lower.
var inHalvesFrom = 1 << 16

// inHalves is ordered of all, into l.
func (c *candidates) inHalves(p *pass, l located) located {
	n := c.all.Len()
	middle, _ := c.all.GetAt(n / 2)
	second := located{}
	if p.known == nil { // then it is known where the second half begins
		second.objects = l.objects[n/2 : n/2 : n]
		if p.places {
			second.rows = l.rows[n/2 : n/2 : n]
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.all.Ascend(middle, p.into(&second)) })
	take := p.into(&l)
	c.all.Scan(func(e entry) bool { return e != middle && take(e) })
	wg.Wait()
	l.ruledOut += second.ruledOut
	if p.known == nil {
		l.objects, l.rows = l.objects[:n], l.rows[:len(l.rows)+len(second.rows)]
		return l
	}
	l.objects, l.rows = append(l.objects, second.objects...), append(l.rows, second.rows...)
	return l
}

// known is what a column has of earlier answers to the question, if it alone decides; nil: nothing.
func (c *candidates) known() *known {
	s := c.matcher.scan
	if s.empty() || !c.matcher.holdsAll() {
		return nil
	}
	question, l := s.question(), located{columns: c.columns}
	if at := l.column(s.columnPaths()); at != nil && question != "" {
		if v := at.verdicts(question); v != nil {
			return newKnown(at, v)
		}
	}
	return nil
}

// known tells by row what a question has found out before.
type known struct {
	codes    codesAt
	verdicts *verdicts
	filled   int     // rows that have a text
	share    float64 // of the texts match, or are not known
}

// newKnown is nil where too little is known to be of use.
func newKnown(at *columnAt, v *verdicts) *known {
	found, matching := v.count()
	all := at.texts.len()
	if found == 0 || found < all/2 {
		return nil
	}
	return &known{at.codes, v, at.filled, float64(matching+max(0, all-found)) / float64(all)}
}

// left is about how many of so many objects are not ruled out.
func (k *known) left(objects int) int {
	return max(0, objects-k.filled) + int(k.share*float64(min(objects, k.filled)))
}

// rulesOut reports whether the object that was in the row does not match.
func (k *known) rulesOut(row uint32) bool {
	code := k.codes.at(row)
	if code == 0 {
		return false
	}
	found, known := k.verdicts.of(code)
	return known && found != matches
}

// pass is one way through the order by key, in any number of parts.
type pass struct {
	rows   *roaring.Bitmap // nil: all
	known  *known          // nil: nothing
	places bool            // it is to be noted where each object is
}

// into appends to l what passes.
func (p *pass) into(l *located) func(entry) bool {
	return func(e entry) bool {
		switch {
		case p.rows != nil && !p.rows.Contains(e.row):
		case p.known != nil && p.known.rulesOut(e.row):
			l.ruledOut++
		default:
			l.objects = append(l.objects, e.obj)
			if p.places {
				l.rows = append(l.rows, e.row)
			}
		}
		return true
	}
}
