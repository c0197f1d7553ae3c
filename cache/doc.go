// Package cache is the heart of informerd: a compact indexed copy of the objects
// of each resource, and the queries over it.
//
// A [Store] holds one resource as raw JSON, never map[string]any, and answers
// reads at one resourceVersion. What feeds it is package cache/replica, which
// this package does not know.
//
// The package knows no HTTP server, no bbolt and no configuration file: what is
// needed from disk is the small interface [Snapshots].
package cache
