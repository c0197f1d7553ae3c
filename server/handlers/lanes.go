package handlers

// lanes are the order in which keys wait: a workqueue.Queue. Changes come before what was
// there when the handler began, so that they do not wait behind a hundred thousand objects
// (kubernetes-sigs/controller-runtime#3067); but one in eight that are taken is of the
// latter, so that it does not starve while changes never end (#3496). So do both come before
// keys that failed: where a sink is tried with one delivery now and then, it is not with one
// after the other that it refused before. All calls are made under the lock of the workqueue,
// and not all with that of the handler: a key whose wait is over is pushed without.
type lanes struct {
	changes, initial, failing lane
	late, latest              turn
	pushed                    func() // called with each Push; must not wait
}

// Touch is called for a key that waits already. One that changes while it waits in another
// lane stays where it is: that lane cannot be searched, and moves on.
func (l *lanes) Touch(*entry) {}

func (l *lanes) Push(e *entry) {
	switch {
	case e.is(failing):
		l.failing.push(e)
	case e.is(initial):
		l.initial.push(e)
	default:
		l.changes.push(e)
	}
	l.pushed()
}

func (l *lanes) Len() int { return l.changes.len() + l.initial.len() + l.failing.len() }

func (l *lanes) Pop() *entry {
	first := l.changes.len() > 0
	if first && !l.late.comes(l.initial.len()+l.failing.len() > 0) {
		return l.changes.pop()
	}
	if l.initial.len() > 0 && !l.latest.comes(l.failing.len() > 0) {
		return l.initial.pop()
	}
	return l.failing.pop()
}

// turn is that of what waits behind others: one in everyLate.
type turn struct{ taken int }

// everyLate: of so many keys that are taken while there are some that come first and some that
// wait behind them, one is of the latter.
const everyLate = 8

// comes is called for each key that is taken of two lots, and reports whether it is of the one
// that waits, of which there is some or not.
func (t *turn) comes(some bool) bool {
	if t.taken++; t.taken < everyLate || !some {
		return false
	}
	t.taken = 0
	return true
}

// lane is first in, first out.
type lane struct {
	items []*entry
	first int
}

func (l *lane) len() int { return len(l.items) - l.first }

func (l *lane) push(e *entry) {
	if l.first > 1024 && l.first > len(l.items)/2 {
		n := copy(l.items, l.items[l.first:])
		clear(l.items[n:])
		l.items, l.first = l.items[:n], 0
	}
	l.items = append(l.items, e)
}

func (l *lane) pop() *entry {
	e := l.items[l.first]
	l.items[l.first] = nil
	if l.first++; l.first == len(l.items) {
		l.items, l.first = nil, 0
	}
	return e
}
