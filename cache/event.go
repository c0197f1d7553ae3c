package cache

// EventType says what happened to an object, in the words of the Kubernetes
// watch protocol.
type EventType string

// The types of events. Bookmarks and errors are no events of a Store.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Event is one change of a Store. Events are immutable and shared.
type Event struct {
	Type EventType
	// Object is the new state. Of a deletion it is the last state known, with
	// the deletion's resourceVersion where the server sent one. Where it sent none,
	// because a list showed that the object is gone, that is the version that was
	// complete before: who resumes from there misses nothing of the list.
	Object *Object
	// Old is the state before: nil for Added.
	Old *Object
	// Resume is where to go on: a watch from this version delivers everything
	// after this event. It may deliver this event and some before it again,
	// when they became visible as one change. So may a watch from the
	// resourceVersion of the Object, which is where clients of the Kubernetes API go
	// on: of one source, versions rise from event to event, but where a list brings
	// an object in other bytes at a version that was passed.
	Resume string

	// shown is Old as it may be shown where that is less than readers were shown of
	// it at its time: under another rule. nil: Old itself.
	shown *Object
}

// before is the state before as it may be shown.
func (e Event) before() *Object {
	if e.shown != nil {
		return e.shown
	}
	return e.Old
}

// held is the memory of the state that the event keeps alive: the new one is that of
// the Store, or of the next event.
func (e Event) held() (bytes int64) {
	if e.Old != nil {
		bytes = e.Old.held()
	}
	if e.Type == Deleted && !sharesData(e.Object, e.Old) {
		bytes += e.Object.held()
	}
	if e.shown != nil && e.shown != e.Object {
		bytes += e.shown.held()
	}
	return bytes
}

// Through is e as a selection sees it, to which belongs what match accepts: an
// object that begins to match is Added; one that ceases to is Deleted, as it was
// in the selection. No object means that the selection does not see e.
func (e Event) Through(match func(*Object) (bool, error)) (EventType, *Object, error) {
	old := e.Old
	if e.Type == Deleted && old == nil {
		old = e.Object
	}
	var was, is bool
	var err error
	if old != nil {
		if was, err = match(old); err != nil {
			return "", nil, err
		}
	}
	if e.Type != Deleted {
		if is, err = match(e.Object); err != nil {
			return "", nil, err
		}
	}
	switch {
	case was && is:
		return Modified, e.Object, nil
	case is:
		return Added, e.Object, nil
	case was && e.Type == Deleted:
		return Deleted, e.Object, nil
	case was:
		return Deleted, e.before(), nil
	}
	return "", nil, nil
}
