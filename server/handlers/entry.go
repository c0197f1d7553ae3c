package handlers

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/informerd/informerd/cache"
)

// entry is what is known of one key. There is one for each object that is selected, and
// for what was delivered and is gone until its end is delivered, so it is kept small: what
// only few have is in more. Guarded by the lock of its handler; name, line and space never
// change.
type entry struct {
	name string
	line *line
	next *entry // of the same hash
	// told is the digest of what was delivered last; untold: nothing; unsure: something may
	// have been, and nobody knows whether it arrived.
	told  digest
	since int64 // Unix milliseconds since when it is pending, 0: it is not
	more  *more
	space uint32 // its namespace, by line.spaces
	// flags are read by the queue, too, which moves keys whose wait is over without the lock.
	flags atomic.Uint32
}

type flags uint16

const (
	// selected: the last event that was considered left the object in the selection.
	selected flags = 1 << iota
	// inFlight: a delivery is under way, or being prepared.
	inFlight
	// again: something happened to it since the delivery under way began.
	again
	// forced: it is delivered although it is as it was told, since a change counted.
	forced
	// initial: it was there when the handler began, and waits behind changes.
	initial
	// dead: it was given up.
	dead
	// gone: it is in no table any more. A delivery may still be under way.
	gone
	// entering: what may have been told was that it enters.
	entering
	// hidden: nothing may be said of it any more. It is forgotten when the delivery under way
	// has ended.
	hidden
	// failing: it failed, and waits behind those that did not.
	failing
)

func (e *entry) is(f flags) bool { return e.flags.Load()&uint32(f) != 0 }
func (e *entry) set(f flags)     { e.flags.Or(uint32(f)) }
func (e *entry) clear(f flags)   { e.flags.And(^uint32(f)) }

// tell notes what was delivered last.
func (e *entry) tell(d digest) {
	if e.told != untold {
		e.line.known--
	}
	if d != untold {
		e.line.known++
	}
	e.told = d
}

func (e *entry) namespace() string { return e.line.spaces.names[e.space] }

func (e *entry) key() cache.Key { return cache.Key{Namespace: e.namespace(), Name: e.name} }

// spaces are namespaces by number: a number is a quarter of a string. There are few, and none
// is ever forgotten.
type spaces struct {
	names   []string
	numbers map[string]uint32
}

func (s *spaces) number(name string) uint32 {
	n, ok := s.numbers[name]
	if !ok {
		if s.numbers == nil {
			s.numbers = map[string]uint32{}
		}
		name = strings.Clone(name)
		n = uint32(len(s.names))
		s.names, s.numbers[name] = append(s.names, name), n
	}
	return n
}

// more is what is known of keys that had failures, or left.
type more struct {
	attempts int
	// before is when it may be tried again.
	before time.Time
	err    string
	// last is what left, as far as it is known.
	last *last
}

func (e *entry) attempts() int {
	if e.more == nil {
		return 0
	}
	return e.more.attempts
}

func (e *entry) with() *more {
	if e.more == nil {
		e.more = &more{}
	}
	return e.more
}

// setLast notes what left, nil that nothing has.
func (e *entry) setLast(l *last) {
	if l != nil || e.more != nil {
		e.with().last = l
	}
	e.tidy()
}

func (e *entry) last() *last {
	if e.more == nil {
		return nil
	}
	return e.more.last
}

// tried forgets failures.
func (e *entry) tried() {
	if e.more != nil {
		e.more.attempts, e.more.before, e.more.err = 0, time.Time{}, ""
	}
	e.clear(failing)
	e.tidy()
}

func (e *entry) tidy() {
	if m := e.more; m != nil && m.attempts == 0 && m.err == "" && m.last == nil && m.before.IsZero() {
		e.more = nil
	}
}

// last is the last state of what left: an object, or what was saved of it.
type last struct {
	object               *cache.Object
	uid, resourceVersion string
	payload              []byte
}

// table finds entries by key. A map from keys would hold each key twice.
type table struct {
	rows map[uint64]*entry
	len  int
}

var seed = maphash.MakeSeed()

func hashOf(k cache.Key) uint64 { return maphash.Comparable(seed, k) }

func (t *table) find(k cache.Key) *entry {
	for e := t.rows[hashOf(k)]; e != nil; e = e.next {
		if e.name == k.Name && e.namespace() == k.Namespace {
			return e
		}
	}
	return nil
}

func (t *table) add(e *entry) {
	if t.rows == nil {
		t.rows = map[uint64]*entry{}
	}
	h := hashOf(e.key())
	e.next, t.rows[h] = t.rows[h], e
	t.len++
}

func (t *table) remove(e *entry) {
	h := hashOf(e.key())
	at := t.rows[h]
	if at == e {
		if e.next == nil {
			delete(t.rows, h)
		} else {
			t.rows[h] = e.next
		}
	} else {
		for at.next != e {
			at = at.next
		}
		at.next = e.next
	}
	e.next = nil
	t.len--
}

func (t *table) each(yield func(*entry)) {
	for _, e := range t.rows {
		for e != nil {
			next := e.next
			yield(e)
			e = next
		}
	}
}
