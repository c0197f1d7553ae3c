// Package replica keeps copies of the resources of clusters equal to them.
//
// A [Factory] makes the running informers equal the wanted set of cache.Specs. An
// [Informer] is a client-go Reflector feeding one cache.Store for each namespace
// that is watched on its own, mostly one for all of them; it lists, watches,
// resumes from a snapshot, compares and says how current the copy is.
//
// What is wanted is told to it by [Factory.Apply]; what is on disk is behind
// cache.Snapshots.
package replica
