package cache

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// columnAfter is how many questions that read many objects ask about the same paths
	// before what they read is kept.
	columnAfter = 3
	// columnFrom is how many objects are many.
	columnFrom = 256
	// columnPaths is how many paths a question may be about.
	columnPaths = 64
	// columnSets is for how many sets of paths it is known how often they were asked about.
	columnSets = 64
	// The columns of one resource hold no more than columnEachOfFew bytes for each object up
	// to columnFew in all, what several kinds of questions are about has to fit; columnEach for
	// each up to columnMost; and columnEachOfMany beyond that.
	columnFew        = 24 << 20
	columnEachOfFew  = 1536
	columnMost       = 64 << 20
	columnEach       = 512
	columnEachOfMany = 128
	// columnIdle is how long a column is kept that nobody asks for, and how long none are
	// made after memory was short.
	columnIdle = 5 * time.Minute
)

// columns keep what questions read again and again of the objects of one contents: for each
// set of paths that they are about, an excerpt of each object, as a column. To unpack an
// object and to walk through it is most of what a question costs that no index answers, and
// an excerpt needs neither.
//
// They are filled by the questions themselves, not by changes, which only empty the row that
// they are of. They are forgotten with the contents that they belong to, when a Successor of the
// Store begins to be filled, when nobody has asked for them for a while, when memory is short, and
// when others are asked for and there is no room. Those that are pinned are filled by fillColumns,
// too, and not forgotten because nobody asks or others are asked for.
type columns struct {
	bytes  atomic.Int64 // that are kept
	limit  atomic.Int64 // of bytes
	filled atomic.Pointer[[]*column]

	mu     sync.Mutex         // guards all below; taken after that of the Store
	few    int64              // columnFew
	sets   map[string]*column // by paths
	timer  *time.Timer        // set while there are sets
	paused time.Time          // until when nothing is kept
	rules  *columnRules
}

func newColumns() *columns {
	return &columns{few: columnFew, sets: map[string]*column{}, rules: &columnRules{}}
}

// about is the column for paths, which are called name, for a question that reads many of the
// objects, of which there are live; nil if there is none.
func (x *columns) about(name string, paths []rawjson.Path, live int) *column {
	if len(paths) == 0 || len(paths) > columnPaths {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if x.rules.none || now.Before(x.paused) {
		return nil
	}
	c := x.sets[name]
	if c == nil {
		c = x.begin(name, paths)
	}
	before := c.last
	c.last = now
	if c.asked++; !c.keeps() {
		return nil
	}
	refused, noRoom := c.lacks()
	if refused {
		c.useless = true
		return nil
	}
	x.limit.Store(columnLimit(int64(live), x.few))
	if noRoom {
		x.makeRoom(before)
	}
	x.publish()
	return c
}

// begin makes a column.
func (x *columns) begin(name string, paths []rawjson.Path) *column {
	x.leave(columnSets - 1)
	c := newColumn(x, name, paths)
	c.pinned = x.rules.pinned[name] != nil
	x.sets[name] = c
	if x.timer == nil {
		x.timer = time.AfterFunc(columnIdle, x.forgetIdle)
	}
	return c
}

// keeps reports whether what is read is to be kept.
func (c *column) keeps() bool { return c.pinned || c.asked > columnAfter && !c.useless }

// columnLimit is how many bytes the columns of so many objects may hold.
func columnLimit(objects, few int64) int64 {
	return max(min(objects*columnEachOfFew, few), min(objects*columnEach, columnMost), objects*columnEachOfMany)
}

// columnName is the same for the same paths in another order.
func columnName(paths []rawjson.Path) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.String()
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// leave leaves no more than so many sets, if not more are pinned: first those go that were not
// asked about often enough to be kept, and of these the ones that were asked about longest ago.
func (x *columns) leave(most int) {
	for len(x.sets) > most {
		var first *column
		for _, c := range x.sets {
			if !c.pinned && (first == nil || c.before(first)) {
				first = c
			}
		}
		if first == nil {
			return
		}
		x.drop(first)
	}
}

// before reports whether c goes before other.
func (c *column) before(other *column) bool {
	if kept := c.asked > columnAfter; kept != (other.asked > columnAfter) {
		return !kept
	}
	return c.last.Before(other.last)
}

// drop takes a column out. A question that is under way may still read it.
func (x *columns) drop(c *column) {
	delete(x.sets, c.name)
	c.close()
}

// publish says which columns may have rows.
func (x *columns) publish() {
	var filled []*column
	for _, c := range x.sets {
		if c.pinned || c.asked > columnAfter {
			filled = append(filled, c)
		}
	}
	x.filled.Store(&filled)
}

// makeRoom takes out the columns that nobody has asked about since, the one first that was asked
// about longest ago, until half of what may be kept is free. One that is asked about as often
// as that which lacks room stays.
func (x *columns) makeRoom(since time.Time) {
	for x.bytes.Load() > x.limit.Load()/2 {
		var oldest *column
		for _, c := range x.sets {
			if !c.pinned && c.bytes.Load() > 0 && c.last.Before(since) && (oldest == nil || c.last.Before(oldest.last)) {
				oldest = c
			}
		}
		if oldest == nil {
			return
		}
		x.drop(oldest)
	}
}

// forgetAll gives everything back, and reports whether there was something. Nothing is kept
// for a while after.
func (x *columns) forgetAll(pause time.Duration) (any bool) {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	any = x.bytes.Load() > 0
	for _, c := range x.sets {
		x.drop(c)
	}
	x.publish()
	x.paused = time.Now().Add(pause)
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	return any
}

// forgetIdle forgets what nobody has asked for.
func (x *columns) forgetIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.sets {
		if !c.pinned && time.Since(c.last) >= columnIdle {
			x.drop(c)
		}
	}
	x.publish()
	x.timer = nil
	if len(x.sets) > 0 {
		x.timer = time.AfterFunc(columnIdle, x.forgetIdle)
	}
}

// changed is called when what is in a row becomes another object, or none.
func (x *columns) changed(row uint32) {
	if x == nil {
		return
	}
	if filled := x.filled.Load(); filled != nil {
		for _, c := range *filled {
			c.empty(row)
		}
	}
}

// held is how many bytes are kept.
func (x *columns) held() int64 {
	if x == nil {
		return 0
	}
	return x.bytes.Load()
}

// ColumnInfo says what questions about some paths have left.
type ColumnInfo struct {
	Paths []string
	// Pinned: the configuration says that it is kept.
	Pinned bool
	// Kept: what is read is kept, of Objects so far, which have so many different Values, in
	// Bytes. Reason says why it is not, or not of all objects.
	Kept            bool
	Reason          string
	Objects, Values int
	Bytes           int64
	// Asked is how many questions there were, the last one at LastAsked; zero: none.
	Asked     int
	LastAsked time.Time
}

// Columns are those of the copy as a whole, the one that was asked about last first.
func (r *Reader) Columns() []ColumnInfo {
	r.store.mu.RLock()
	defer r.store.mu.RUnlock()
	return r.store.contents.columns.infos()
}

func (x *columns) infos() (infos []ColumnInfo) {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.sets {
		infos = append(infos, c.info())
	}
	slices.SortFunc(infos, func(a, b ColumnInfo) int {
		return cmp.Or(b.LastAsked.Compare(a.LastAsked), slices.Compare(a.Paths, b.Paths))
	})
	return infos
}

// info is called by who has locked columns.
func (c *column) info() ColumnInfo {
	info := ColumnInfo{Pinned: c.pinned, Kept: c.keeps(), Asked: c.asked, LastAsked: c.last, Bytes: c.bytes.Load()}
	switch {
	case info.Kept:
	case c.useless:
		info.Reason = "most of what is read is long, and of each object another"
	default:
		info.Reason = fmt.Sprintf("it has been asked about %d times; from the %d. time on it is kept", c.asked, columnAfter+1)
	}
	for _, p := range c.paths {
		info.Paths = append(info.Paths, p.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info.Objects, info.Values = c.rows, c.texts.len()
	if c.noRoom {
		info.Reason = "there is no room for all objects"
	}
	return info
}
