// Package complete proposes what could follow in a question: paths that objects
// have, or can have by their schema, and values at a path.
//
// What an index knows is taken from it and exact. The rest is taken from a
// sample of the objects, spread over all of them, and says so.
package complete
