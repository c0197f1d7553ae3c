// Package persist saves one snapshot for each resource of each cluster in one
// bbolt file, so that a restart can resume its watches instead of listing
// again. [DB] implements cache.Snapshots. It saves the ledgers of handlers in the same
// transactions: it implements cache.Ledgers.
//
// A snapshot is a hint, never the truth: one that cannot be read in full is
// refused as damaged, and its resource starts cold. A file that cannot be read
// at all is moved aside and a fresh one takes its place. Only a file written by
// a newer informerd, or by another program, is left as it is.
//
// With a key file everything is encrypted on its way to the file, and decrypted on its
// way to memory (shelf.go, vault.go); unlock.go says what becomes of a file that is not
// encrypted as it should be.
//
// bbolt trusts its pages: on a damaged one it panics, faults, or follows a loop
// until the stack ends, and some of that no recover can stop. So the structure
// of the file is walked page by page (pages.go) before bbolt follows it; what
// the records say is guarded by checksums (codec.go). docs/FORMAT.md draws both.
package persist
