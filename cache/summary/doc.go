// Package summary counts, adds and groups objects by the values at their paths:
// the parameters groupBy, agg and facets of queries. Every object is read once,
// on all processors, and nothing of it is kept but the values asked for.
//
// An object with several values at a path it is grouped by belongs to the group
// of each of them, once; grouped by several paths, to the group of every
// combination. What has no value belongs to the group of null.
package summary
