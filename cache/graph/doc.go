// Package graph tells how the objects of a cluster are related: who owns, uses,
// selects, routes to and names whom.
//
// References are taken from the stores when somebody asks, and from then on
// only from what changed since. Those that siblings have in common are a bundle,
// which each of them has, and what is named knows of the bundle. Selectors are not resolved in advance: the
// label index of the selected store answers them.
//
// It refuses to guess. What a reference names and the cluster does not have is
// missing only where the copy is complete; where it is not, it is unknown. And it
// refuses to tell: what who asks may not see is unknown, too, be it there or not.
package graph
