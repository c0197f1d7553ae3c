package cache

import "unique"

// Names of the built-in indexes.
const (
	NamespaceIndex = "namespace" // indexed values are namespaces
	LabelIndex     = "label"     // indexed values are key=value
	OwnerIndex     = "owner"     // indexed values are UIDs of owners
)

// Term is one indexed value: the name of an index and a value in it.
type Term struct {
	Index, Value string
}

// handle is an interned Term: eight bytes an object instead of two strings, and
// comparable by pointer. Handles never go stale: an old version of an object
// held by an event or by a reader still knows its terms after the index has
// forgotten them, and the runtime frees a Term when nothing refers to it.
type handle = unique.Handle[Term]

func intern(index, value string) handle { return unique.Make(Term{index, value}) }
