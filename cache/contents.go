package cache

import (
	"iter"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/tidwall/btree"
)

// contents are the objects of a Store with everything that finds them: rows by
// number for the indexes, and the order by key. It is guarded by the lock of
// its Store; one that is being built belongs to its builder.
type contents struct {
	rows    []*Object // by row number; nil if free
	free    []uint32
	live    *roaring.Bitmap // the rows in use
	tree    *tree           // by key
	indexes indexes
	created *creation
	seen    seen

	columns *columns // nil: keys may occur twice

	bytes, rawBytes int64
	// packed is how many objects and templates each dictionary for zstd is needed for, and
	// templates how many objects each template is.
	packed, templates map[*dictionary]int
	// renewed are by id those that came to be needed, or ceased to be (nil), since changes were
	// taken; nil: too many.
	renewed map[uint32]*dictionary
}

// tree orders objects by namespace and name. Copies share what has not changed.
type tree = btree.BTreeG[entry]

// entry is an object and the row it is in. Rows belong to the contents and not
// to the Object, which stays immutable.
type entry struct {
	obj *Object
	row uint32
}

func (e entry) less(o entry) bool {
	if c := strings.Compare(e.obj.Namespace(), o.obj.Namespace()); c != 0 {
		return c < 0
	}
	return e.obj.Name() < o.obj.Name()
}

func (e entry) compare(o entry) int {
	switch {
	case e.less(o):
		return -1
	case o.less(e):
		return 1
	default:
		return 0
	}
}

// probe is an entry to look for.
func probe(k Key) entry {
	o := &Object{}
	if len(k.Namespace)+len(k.Name) > maxIdentity {
		return entry{obj: o} // no object is called that
	}
	o.setIdentity(identity{namespace: k.Namespace, name: k.Name})
	return entry{obj: o}
}

// bareContents are the objects and their order by key, and nothing else that finds them.
func bareContents() *contents {
	return &contents{
		live:    roaring.New(),
		tree:    btree.NewBTreeGOptions(entry.less, btree.Options{NoLocks: true}),
		indexes: indexes{},
		renewed: map[uint32]*dictionary{},

		packed: map[*dictionary]int{}, templates: map[*dictionary]int{},
	}
}

func newContents(e *extraction) *contents {
	c := bareContents()
	c.created = newCreation()
	if e.unique {
		c.columns = newColumns()
	}
	for _, name := range builtinIndexes {
		c.indexes[name] = newIndex(name)
	}
	for _, name := range e.names {
		c.indexes[name] = newIndex(name)
		c.indexes[longIndex(name)] = newIndex(longIndex(name))
	}
	return c
}

func (c *contents) len() int { return c.tree.Len() }

// find returns the object with the key of o, or nil.
func (c *contents) find(o *Object) *Object {
	e, _ := c.tree.Get(entry{obj: o})
	return e.obj
}

func (c *contents) get(k Key) *Object {
	e, _ := c.tree.Get(probe(k))
	return e.obj
}

// put enters o in place of an object with the same key, which it returns.
func (c *contents) put(o *Object) (old *Object) {
	e, ok := c.tree.Get(entry{obj: o})
	if ok {
		old = e.obj
		c.account(old, -1)
		c.indexes.remove(e.row, old.terms(), o.terms())
		c.indexes.add(e.row, o.terms(), old.terms())
		c.created.move(e.row, old, o)
		c.seen.change(e.row)
		c.columns.changed(e.row)
	} else {
		e.row = c.newRow()
		c.indexes.add(e.row, o.terms(), terms{})
		c.created.add(e.row, o)
		c.seen.add(e.row, o)
	}
	e.obj = o
	c.rows[e.row] = o
	c.tree.Set(e)
	c.account(o, 1)
	return old
}

// sharing returns o, which is new, with what it has in common with held, its former version, or
// with siblings, which are its neighbours by name, in the same memory.
func (c *contents) sharing(o, held *Object) *Object {
	if shared := o.like(held); shared != o || o.common == nil || held != nil && held.common == o.common {
		return shared
	}
	var neighbour *Object
	beside := func(e entry) bool {
		if e.obj == held {
			return true
		}
		neighbour = e.obj
		return false
	}
	c.tree.Descend(entry{obj: o}, beside)
	if shared := o.like(neighbour); shared != o {
		return shared
	}
	neighbour = nil
	c.tree.Ascend(entry{obj: o}, beside)
	return o.like(neighbour)
}

func (c *contents) newRow() uint32 {
	var row uint32
	if n := len(c.free); n > 0 {
		row = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		row = uint32(len(c.rows))
		c.rows = append(c.rows, nil)
	}
	c.live.Add(row)
	return row
}

// remove takes out the object with the key of o and returns it.
func (c *contents) remove(o *Object) (old *Object) {
	e, ok := c.tree.Delete(entry{obj: o})
	if !ok {
		return nil
	}
	c.indexes.remove(e.row, e.obj.terms(), terms{})
	c.created.remove(e.row, e.obj)
	c.rows[e.row] = nil
	c.free = append(c.free, e.row)
	c.live.Remove(e.row)
	c.seen.remove(e.row)
	c.columns.changed(e.row)
	c.account(e.obj, -1)
	return e.obj
}

// repack enters o, which is old in another form. It reports false, and changes
// nothing, if old is not held any more.
func (c *contents) repack(old, o *Object) bool {
	e, ok := c.tree.Get(entry{obj: old})
	if !ok || e.obj != old {
		return false
	}
	c.account(old, -1)
	e.obj = o
	c.rows[e.row] = o
	c.tree.Set(e)
	c.account(o, 1)
	return true
}

func (c *contents) account(o *Object, sign int) {
	c.bytes += int64(sign) * o.held()
	c.rawBytes += int64(sign) * int64(o.size)
	if o.dict != nil {
		c.need(o.dict, sign)
	}
}

// need counts one more of what d is needed for, or one less. A template needs what it is packed
// with.
func (c *contents) need(d *dictionary, sign int) {
	t, counts := d.template, c.packed
	if t != nil {
		counts = c.templates
	}
	was := counts[d]
	now := was + sign
	if counts[d] = now; was > 0 && now > 0 {
		return
	}
	changed := d
	if now == 0 {
		delete(counts, d)
		changed = nil
	}
	if c.renewed != nil {
		c.renewed[d.id] = changed
	}
	if len(c.renewed) > renewedMost+2*len(c.templates) {
		c.renewed = nil
	}
	if t != nil {
		c.bytes += int64(sign) * t.held()
		c.need(t.with, sign)
	}
}

// needed are all that are needed for something.
func (c *contents) needed() iter.Seq[*dictionary] {
	return func(yield func(*dictionary) bool) {
		for _, counts := range []map[*dictionary]int{c.packed, c.templates} {
			for d := range counts {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// renewedMost bounds what is remembered where nobody takes it.
const renewedMost = 4096
