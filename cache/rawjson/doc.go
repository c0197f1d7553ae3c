// Package rawjson does everything informerd does to the raw JSON bytes of a
// Kubernetes object: it finds identity, labels, owners and configured paths,
// cuts and redacts fields, projects, and frames watch streams and lists. It
// reads each object in one pass and never builds a map.
//
// Results equal what apimachinery's unstructured decoder and its accessors
// yield for the same bytes: of a key that occurs twice the last one counts, a
// field of the wrong type reads as absent, invalid UTF-8 reads as U+FFFD. Input
// that decoder refuses (bad syntax, more than 10000 nested values, numbers
// beyond float64) is refused here too, also inside parts nobody asked for, so
// what is stored is always valid JSON.
//
// It refuses to know about schemas, resources or clusters.
package rawjson
