package cache

import (
	"bytes"
	"maps"
	"slices"
	"sync/atomic"
)

// differences are what a list has otherwise than the Store.
type differences struct {
	gone []*Object // held, and not in the list
	come []coming
	// unsure are objects of equal identity and version in other forms of their JSON,
	// which may be equal.
	unsure []coming
	count  ReplaceStats
	// told: they are only to be told, so that of many there is no more than the count.
	told bool
	// back is the first that may not follow what is held, see objectMayFollow; at is the version
	// of the list then.
	back error
	at   string
}

// coming is an object of a list, and what is held in its place, nil for nothing.
type coming struct{ held, next *Object }

// diff compares objs, sorted by key, with what is held of a source. The caller
// holds writing.
func (s *Store) diff(sourceName string, objs []*Object) (d differences) {
	s.compare(&d, sourceName, objs)
	return d
}

// compare is diff into d.
func (s *Store) compare(d *differences, sourceName string, objs []*Object) {
	i := 0
	visit := func(e entry) bool {
		for i < len(objs) && compareObjects(objs[i], e.obj) < 0 {
			d.compare(nil, objs[i])
			i++
		}
		if i == len(objs) || compareObjects(objs[i], e.obj) != 0 {
			d.miss(e.obj)
			return true
		}
		d.compare(e.obj, objs[i])
		i++
		return true
	}
	scanSource(s.contents.tree, sourceName, visit)
	for ; i < len(objs); i++ {
		d.compare(nil, objs[i])
	}
	d.settle()
}

// miss notes an object that is not in the list.
func (d *differences) miss(o *Object) {
	d.count.Deleted++
	if d.room() {
		d.gone = append(d.gone, o)
	}
}

// add notes an object that is not held as the list has it.
func (d *differences) add(c coming) {
	if c.held == nil {
		d.count.Added++
	} else if d.count.Modified++; d.back == nil {
		d.back = objectMayFollow(c.held, c.next, d.at)
	}
	if d.room() {
		d.come = append(d.come, c)
	}
}

// room reports whether what was counted is kept.
func (d *differences) room() bool {
	if !d.told || !d.many() {
		return true
	}
	d.gone, d.come = nil, nil
	return false
}

// tell returns the events of d, where sources are what was complete before. Of
// several sources, the versions of each rise.
func (d *differences) tell(sources map[string]*progress) (events []Event) {
	bySource := map[*progress]*telling{}
	of := func(namespace string) *telling {
		src := sourceIn(sources, namespace)
		if bySource[src] == nil {
			bySource[src] = &telling{}
			if src != nil {
				bySource[src].before = src.version
			}
		}
		return bySource[src]
	}
	for _, o := range d.gone {
		of(o.Namespace()).delete(o, o)
	}
	for _, c := range d.come {
		of(c.next.Namespace()).put(c.held, c.next)
	}
	all := slices.SortedStableFunc(maps.Values(bySource), func(a, b *telling) int { return compareVersions(a.before, b.before) })
	for _, told := range all {
		events = append(events, told.events()...)
	}
	return events
}

// compare looks at an object of a list. Equal versions do not say that it is equal:
// after an upgrade of the API server or another definition of a custom resource the
// same version has other bytes, and after the restore of a backup any.
func (d *differences) compare(held, o *Object) {
	c := coming{held, o}
	switch {
	case held == o:
	case held == nil || held.UID() != o.UID() || held.ResourceVersion() != o.ResourceVersion():
		d.add(c)
	case held.size != o.size:
		d.rewrite(c)
	case !sameForm(held, o):
		if d.unsure = append(d.unsure, c); len(d.unsure) == unsureMost {
			d.settle()
		}
	}
}

// unsureMost is how many are unpacked at a time.
const unsureMost = 16 << 10

// settle unpacks what is unsure, on all processors.
func (d *differences) settle() {
	if len(d.unsure) == 0 {
		return
	}
	differ := make([]atomic.Bool, len(d.unsure))
	_ = parallel(len(d.unsure), func(i int) error { // which never fails
		differ[i].Store(!sameJSON(d.unsure[i].held, d.unsure[i].next))
		return nil
	})
	for i, c := range d.unsure {
		if !differ[i].Load() {
			continue
		}
		d.rewrite(c)
	}
	d.unsure = d.unsure[:0]
}

// rewrite notes an object that has another JSON at the same version.
func (d *differences) rewrite(c coming) {
	d.add(c)
	if c.held.ResourceVersion() != "" {
		d.count.Rewritten++
	}
}

func (d *differences) len() int { return d.count.Added + d.count.Modified + d.count.Deleted }

// many reports whether they are more than the ring has room for.
func (d *differences) many() bool { return d.len() > ringMax }

// sameForm reports whether a and b hold the same bytes in the same way: then they
// are equal. Otherwise they may be.
func sameForm(a, b *Object) bool {
	return a.dict == b.dict && bytes.Equal(a.data(), b.data())
}

func sameJSON(a, b *Object) bool {
	if a.size != b.size || sameForm(a, b) {
		return a.size == b.size
	}
	if a.dict == nil && b.dict == nil {
		return false
	}
	bufA, bufB := buffers.get(), buffers.get()
	x, errX := a.AppendJSON((*bufA)[:0])
	defer buffers.put(bufA, x)
	y, errY := b.AppendJSON((*bufB)[:0])
	defer buffers.put(bufB, y)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
