package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// Of excerpts that are longer than columnShort, and than a part of their objects, there is
	// to be one for several objects.
	columnShort  = 32
	columnShare  = 4
	columnShared = 8
)

// column has, by row, the number of the excerpt of the object there, for one set of paths:
// of what questions are about, such as nodes and phases, many objects have the same. Rows are
// those of the contents that it belongs to. What is asked reads an excerpt as it would read the
// object.
type column struct {
	of       *columns
	name     string
	paths    []rawjson.Path
	excerpts *excerpts

	asked   int       // guarded by columns.mu, as are the next three
	last    time.Time // when it was asked about
	useless bool      // most excerpts are long, and each of one object
	pinned  bool      // by the configuration; changed under mu, too

	bytes atomic.Int64 // that are kept; changed under mu

	mu      sync.Mutex // guards all below; taken after those of the Store and of columns
	codes   codes
	texts   texts
	rows    int  // that have a code
	refused int  // long excerpts, since lacks
	noRoom  bool // for some, since lacks
	tidying bool // somebody gives texts other numbers
	lost    int  // rows that had one, since the texts were gone through last
	closed  bool // nothing is kept any more
	// numbering is how often the texts have lost their numbers. known are of the present ones.
	numbering int
	known     []*verdicts // those of the latest questions first
	ranked    []*ranks    // those that were made last are last
}

func newColumn(of *columns, name string, paths []rawjson.Path) *column {
	return &column{of: of, name: name, paths: paths, excerpts: newExcerpts(paths)}
}

// columnAt is a column as it was at a moment, for a question about the contents of that moment.
type columnAt struct {
	*column
	store     *Store
	contents  *contents
	codes     codesAt
	texts     textsAt
	numbering int
	filled    int // rows that have a text
	lost      int // rows that had one: so many of the texts may be of no row
}

// count is how many of the rows have a text.
func (at *columnAt) count(rows []uint32) (n int) {
	for _, row := range rows {
		if at.codes.at(row) > 0 {
			n++
		}
	}
	return n
}

// distinct is how many texts so many of the rows have at least: the others may have as many as they
// are.
func (at *columnAt) distinct(rows int) int { return at.texts.len() - at.lost - (at.filled - rows) }

// at is the column as it is now. The Store must be locked for reading at least.
func (c *column) at(s *Store) *columnAt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &columnAt{column: c, store: s, contents: s.contents, codes: c.codes.copy(), texts: c.texts.textsAt, numbering: c.numbering, filled: c.rows, lost: c.lost}
}

// append appends the excerpt of an object, which was in this row at that moment.
func (at *columnAt) append(dst []byte, row uint32, o *Object) ([]byte, error) {
	if code := at.codes.at(row); code > 0 {
		return append(dst, at.texts.text(code)...), nil
	}
	start := len(dst)
	dst, size, err := at.excerpts.append(dst, o)
	if err != nil {
		return dst, err
	}
	at.keep(row, o, dst[start:], size)
	return dst, nil
}

// keep enters the excerpt of an object with so many bytes, if the object is still where it
// was. If it is not, the next question reads the one that has come instead.
func (at *columnAt) keep(row uint32, o *Object, text []byte, size int) {
	long := len(text) > columnShort && len(text)*columnShare > size
	at.store.mu.RLock()
	defer at.store.mu.RUnlock()
	if at.store.contents == at.contents && at.contents.rows[row] == o {
		at.enter(row, text, long)
	}
}

// enter gives a row the number of its text, unless there is no room, or it is long and most
// objects have another one.
func (c *column) enter(row uint32, text []byte, long bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.codes.chunks.at(row) > 0 {
		return
	}
	code, hash := c.texts.find(text)
	if code > 0 && !c.texts.has(code, text) {
		return // two texts with one hash: the other one was first
	}
	if code == 0 && long && !c.pinned && c.texts.len() > c.rows/columnShared+columnFrom {
		c.refused++
		return
	}
	var cost int64
	if code == 0 {
		cost += c.texts.cost(len(text))
	}
	if !c.codes.has(row) {
		cost += codeChunkBytes
	}
	if !c.take(cost) {
		c.noRoom = true
		return
	}
	if code == 0 {
		var ok bool
		if code, ok = c.texts.add(text, hash); !ok {
			return
		}
	}
	c.codes.set(row, code)
	c.rows++
}

// take reports whether there is room for so many bytes more.
func (c *column) take(bytes int64) bool {
	if c.of.bytes.Add(bytes) > c.of.limit.Load() && bytes > 0 {
		c.of.bytes.Add(-bytes)
		return false
	}
	c.bytes.Add(bytes)
	return true
}

// empty takes the code of a row.
func (c *column) empty(row uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.codes.chunks.at(row) > 0 {
		c.codes.set(row, 0)
		c.rows--
		c.lost++
	}
}

// lacks says what has happened since it was called last: whether most excerpts were refused,
// since they are long and each of one object, in which case all is given back; and whether there
// was no room for some.
func (c *column) lacks() (refused, noRoom bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	refused, noRoom = c.refused > c.rows, c.noRoom
	if c.refused, c.noRoom = 0, false; refused {
		c.forgetLocked()
	}
	return refused, noRoom
}

// tidy gives back the texts that no row has any more, if they may be many. What takes long is
// done without a lock, for which writers would wait.
func (c *column) tidy() {
	c.mu.Lock()
	if c.tidying || c.lost <= codeRows || c.lost <= c.texts.len()/2 {
		c.mu.Unlock()
		return
	}
	c.tidying = true
	before := columnAt{codes: c.codes.copy(), texts: c.texts.textsAt, numbering: c.numbering}
	c.mu.Unlock()

	n := newRenumbering(before.texts)
	for _, chunk := range before.codes {
		if chunk == nil {
			continue
		}
		for _, code := range chunk.of {
			n.number(code)
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.tidying = false
	if c.numbering == before.numbering && !c.closed {
		c.renumberLocked(n)
	}
}

// renumbering gives the texts that are still there other numbers.
type renumbering struct {
	were  textsAt
	texts texts
	codes []uint32 // by what they were
}

func newRenumbering(were textsAt) *renumbering {
	return &renumbering{were: were, codes: make([]uint32, were.len()+1)}
}

// number is the one that a text has now.
func (n *renumbering) number(was uint32) uint32 {
	if was == 0 {
		return 0
	}
	if n.codes[was] == 0 {
		text := n.were.text(was)
		_, hash := n.texts.find(text)
		n.codes[was], _ = n.texts.add(text, hash) // there were as many numbers before
	}
	return n.codes[was]
}

// renumberLocked goes over to other numbers. Meanwhile some texts may have come.
func (c *column) renumberLocked(n *renumbering) {
	n.were = c.texts.textsAt
	n.codes = append(n.codes, make([]uint32, n.were.len()+1-len(n.codes))...)
	next := codes{taken: c.codes.taken}
	for i, chunk := range c.codes.chunks {
		if chunk == nil {
			continue
		}
		for j, code := range chunk.of {
			if code > 0 {
				next.set(uint32(i*codeRows+j), n.number(code))
			}
		}
	}
	rows := c.rows
	c.forgetLocked()
	c.codes, c.texts, c.rows = next, n.texts, rows
	bytes := next.bytes() + n.texts.bytes()
	c.of.bytes.Add(bytes)
	c.bytes.Store(bytes)
}

// forgetLocked gives everything back.
func (c *column) forgetLocked() {
	c.of.bytes.Add(-c.bytes.Swap(0))
	c.codes, c.texts, c.rows, c.lost = codes{taken: c.codes.taken}, texts{}, 0, 0
	c.known, c.ranked = nil, nil
	c.numbering++
}

// close gives everything back, and nothing is kept any more.
func (c *column) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.forgetLocked()
}
