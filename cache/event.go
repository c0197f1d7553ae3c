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
	// the deletion's resourceVersion where the server sent one.
	Object *Object
	// Old is the state before: nil for Added.
	Old *Object
	// Resume is where to go on: a watch from this version delivers everything
	// after this event. It may deliver this event and some before it again,
	// when they became visible as one change.
	Resume string
}

// Through is e as a selection sees it, to which belongs what match accepts: an
// object that begins to match is Added; one that ceases to is Deleted, as it was
// in the selection. No object means that the selection does not see e.
func (e Event) Through(match func(*Object) (bool, error)) (EventType, *Object, error) {
	before := e.Old
	if e.Type == Deleted && before == nil {
		before = e.Object
	}
	var was, is bool
	var err error
	if before != nil {
		if was, err = match(before); err != nil {
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
		return Deleted, before, nil
	}
	return "", nil, nil
}
