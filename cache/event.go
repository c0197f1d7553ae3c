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
