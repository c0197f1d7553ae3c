package cache

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

// ColumnRules are what the configuration says of columns. Without any, what is asked again and
// again is kept.
type ColumnRules struct {
	// None: nothing is kept.
	None bool
	// Pinned are sets of paths. What questions about one of them read is kept from the start,
	// before anybody asks, and whether anybody does.
	Pinned [][]string
}

// columnRules are ColumnRules that were looked at. They are immutable.
type columnRules struct {
	none   bool
	pinned map[string][]rawjson.Path // by the name of the column
}

func (r ColumnRules) compile() (*columnRules, error) {
	all := &columnRules{none: r.None, pinned: map[string][]rawjson.Path{}}
	for _, set := range r.Pinned {
		paths, err := parsePaths("columns", set)
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 || len(paths) > columnPaths {
			return nil, invalidf("columns", "a column is of 1 to %d paths, not of %d", columnPaths, len(paths))
		}
		all.pinned[columnName(paths)] = paths
	}
	return all, nil
}

// SetColumns replaces what the Spec says of columns.
func (s *Store) SetColumns(r ColumnRules) error {
	rules, err := r.compile()
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.columnRules.Store(rules)
	s.contents.columns.follow(rules)
	return nil
}

// newContents are empty ones, under the rules of the moment.
func (s *Store) newContents(e *extraction) *contents {
	if s.forerunner.Load() != nil {
		return bareContents()
	}
	c := newContents(e)
	c.columns.follow(s.columnRules.Load())
	return c
}

// follow goes over to other rules.
func (x *columns) follow(rules *columnRules) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rules = rules
	for name, c := range x.sets {
		was := c.pinned
		c.pin(rules.pinned[name] != nil)
		// What is not pinned any more may not have been asked about often enough to be
		// published: no change would empty its rows.
		if rules.none || was && !c.pinned {
			x.drop(c)
		}
	}
	x.publish()
}

func (c *column) pin(pinned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned = pinned
}

// FillColumns reads of all objects what pinned columns lack, with half a processor.
func (v *View) FillColumns(ctx context.Context) error {
	if v.store == nil {
		return nil
	}
	return v.store.fillColumns(ctx)
}

func (s *Store) fillColumns(ctx context.Context) error {
	tree, all := s.lackingColumns()
	var failed error
	for _, at := range all {
		failed = cmp.Or(failed, at.fill(ctx, tree))
		at.column.tidy()
	}
	return failed
}

// lackingColumns are the pinned columns that do not have all objects, and the objects.
func (s *Store) lackingColumns() (objects *tree, all []*columnAt) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.contents.columns.lacking(s.contents.len()) {
		all = append(all, c.at(s))
	}
	if len(all) > 0 {
		objects = s.treeLocked()
	}
	return objects, all
}

// lacking are the pinned columns that have fewer rows than there are objects, and room.
func (x *columns) lacking(live int) (all []*column) {
	if x == nil || live < columnFrom {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rules.none || len(x.rules.pinned) == 0 || time.Now().Before(x.paused) {
		return nil
	}
	x.limit.Store(columnLimit(int64(live), x.few))
	for name, paths := range x.rules.pinned {
		c := x.sets[name]
		if c == nil {
			c = x.begin(name, paths)
		}
		if c.lacksRows(live, x.roomForPinned()) {
			all = append(all, c)
		}
	}
	x.publish()
	return all
}

// roomForPinned reports whether there is room for more of what is pinned, for which others go.
func (x *columns) roomForPinned() bool {
	var pinned int64
	for _, c := range x.sets {
		if c.pinned {
			pinned += c.bytes.Load()
		}
	}
	most := x.limit.Load() / 8 * 7
	if pinned >= most {
		return false
	}
	if x.bytes.Load() >= most {
		x.makeRoom(time.Now())
	}
	return x.bytes.Load() < most
}

// lacksRows reports whether there are objects to read for it. One that had no room for some has
// another try when there is room.
func (c *column) lacksRows(live int, room bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noRoom = c.noRoom && !room
	return c.rows < live && !c.noRoom
}

// fillRest is after how many objects there is a rest, which is as long as reading them took.
const fillRest = 64

// fill reads the objects that a column lacks, until all are there, there is no room for more,
// or others have taken their place.
func (at *columnAt) fill(ctx context.Context, objects *tree) (failed error) {
	var buf []byte
	began, read := time.Now(), 0
	objects.Scan(func(e entry) bool {
		if at.codes.at(e.row) > 0 {
			return true
		}
		var err error
		if buf, err = at.append(buf[:0], e.row, e.obj); err != nil {
			failed = cmp.Or(failed, fmt.Errorf("read %s: %w", e.obj.Key(), err))
		}
		if read++; read%fillRest > 0 {
			return true
		}
		if !at.goesOn() || !rest(ctx, time.Since(began)) {
			return false
		}
		began = time.Now()
		return true
	})
	return cmp.Or(failed, ctx.Err())
}

// goesOn reports whether there is a use in reading on.
func (at *columnAt) goesOn() bool {
	at.store.mu.RLock()
	defer at.store.mu.RUnlock()
	at.column.mu.Lock()
	defer at.column.mu.Unlock()
	return at.store.contents == at.contents && !at.closed && !at.noRoom
}

func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
