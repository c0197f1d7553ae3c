// Package filter evaluates CEL expressions on the raw JSON of objects: the
// parameter filter of queries, and of handlers.
//
// A [Filter] is a condition on an object, a [Change] one on what became of it: it also
// knows the state before, old. Both are of one language and have the same limits.
//
// The language is that of Kubernetes' admission policies, with the same
// libraries; `object` is the object, `now` the time at which the query began,
// and age(x) is now less the creationTimestamp of x. Expressions are parsed and
// type-checked before the first object is looked at.
//
// Values are read from the JSON when they are asked for and no further than
// needed: nothing builds a map of the whole object. What an expression demands
// of indexed values is found in its syntax tree and offered to the planner.
package filter
