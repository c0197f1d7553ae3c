package cache

import "slices"

// telling collects the events of one change of a source and puts them in the order
// in which they are told. A reader may lose its connection between any two of them
// and go on, here or at the API server, from the highest resourceVersion that it
// was shown. So that it misses nothing, whoever was shown a version must have been
// told everything up to it:
//
//   - What was found missing by a list went away at some version after before,
//     nobody knows which. It is told before everything that has a later version,
//     and with before, which all readers have reached.
//   - What is new and what changed follows in the order of its own versions. An
//     object that was deleted and created anew has its deletion among the first.
//   - What a list brings in no newer version than before was held in other bytes,
//     or not at all. It comes first of all, since its version is the lowest. Here
//     alone versions may be lower than what was told before this change.
type telling struct {
	before string // the source was complete up to here, "" if it was not
	early  []Event
	gone   []Event
	late   []Event
}

// put tells of o in the place of held, which may be nil.
func (t *telling) put(held, o *Object) {
	switch {
	case held == nil:
		t.add(Event{Type: Added, Object: o})
	case held.UID() == o.UID():
		t.add(Event{Type: Modified, Object: o, Old: held})
	default:
		t.delete(held, held)
		t.late = append(t.late, Event{Type: Added, Object: o})
	}
}

func (t *telling) add(e Event) {
	if t.before != "" && !Newer(e.Object.ResourceVersion(), t.before) {
		t.early = append(t.early, e)
	} else {
		t.late = append(t.late, e)
	}
}

// delete tells that held went away; last is held as the server last had it, at the
// version of its deletion if that is known.
func (t *telling) delete(held, last *Object) {
	if Older(last.ResourceVersion(), t.before) {
		last = last.at(t.before)
	}
	t.gone = append(t.gone, Event{Type: Deleted, Object: last, Old: held})
}

// events are all of them in order, without Resume.
func (t *telling) events() []Event {
	slices.SortStableFunc(t.early, compareTold)
	slices.SortStableFunc(t.gone, compareTold)
	slices.SortStableFunc(t.late, compareTold)
	switch {
	case len(t.early)+len(t.gone) == 0:
		return t.late
	case len(t.early)+len(t.late) == 0:
		return t.gone
	}
	return slices.Concat(t.early, t.gone, t.late)
}

// compareTold orders events by the versions they are told with. Those that cannot
// be compared stay in the order they are in.
func compareTold(a, b Event) int {
	return compareVersions(a.Object.ResourceVersion(), b.Object.ResourceVersion())
}
