// Package cache is the heart of informerd: one informer for each watched
// resource, a compact indexed copy of its objects, and the queries over it.
//
// A [Factory] makes the running informers equal the wanted set of [Spec]s. An
// [Informer] is a client-go Reflector feeding one [Store]; the Store holds raw
// JSON, never map[string]any, and answers reads at one resourceVersion.
//
// The package knows no HTTP server, no bbolt and no configuration file: what it
// needs from disk is the small interface [Snapshots], and what is wanted is told
// to it by [Factory.Apply].
package cache
