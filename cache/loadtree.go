package cache

import "github.com/tidwall/btree"

// loadTree enters n items, which are in order, into a tree that has none. Every other one comes
// first: a leaf that is full parts into halves, and what comes in order would leave one of them
// as it is, so that half of the tree would be empty. The others then fill them.
func loadTree[T any](tree *btree.BTreeG[T], n int, at func(i int) T) {
	for i := 0; i < n; i += 2 {
		tree.Load(at(i))
	}
	var hint btree.PathHint
	for i := 1; i < n; i += 2 {
		tree.SetHint(at(i), &hint)
	}
}
