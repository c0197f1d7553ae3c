package access

import (
	"fmt"
	"time"
)

// Verdict is what was found about one question, and for how long that may be taken
// for true. The zero Verdict says no.
type Verdict struct {
	Allowed bool
	// Reason is for who asks; often empty.
	Reason string
	// Until is when it must be asked again.
	Until time.Time
}

// Named are the places that a request names plainly. They are asked about directly:
// somebody may see them whom nothing that informerd holds says so of.
type Named struct {
	Places []Place
	// Only: the answer is about these places and nothing else, so that nobody need be
	// asked about others.
	Only bool
	// LabelSelector and FieldSelector narrow all of the answer. Some authorizers let
	// somebody see so much and no more.
	LabelSelector, FieldSelector string
}

// Place is a namespace, or one object if it has a name. The namespace of objects at
// cluster scope is "".
type Place struct{ Namespace, Name string }

// TooManyError is that a request takes more questions than an API server is asked for
// one. It is the fault of who asks, and they are told.
type TooManyError struct{ Asked, Most int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the API server would have to be asked about %d namespaces and objects, and is about no more than %d for one request: name fewer",
		e.Asked, e.Most)
}
