package cache

import (
	"runtime"
	"testing"

	"github.com/tidwall/btree"
)

// TestLoadTree: whatever the number of items, the tree has them in order, and of many hardly any
// of its memory is empty.
func TestLoadTree(t *testing.T) {
	type item struct{ key, more uint64 }
	load := func(n int) *btree.BTreeG[item] {
		tree := btree.NewBTreeGOptions(func(a, b item) bool { return a.key < b.key }, btree.Options{NoLocks: true})
		loadTree(tree, n, func(i int) item { return item{uint64(3 * i), uint64(i)} })
		return tree
	}
	for _, n := range []int{0, 1, 2, 3, 62, 63, 64, 65, 127, 128, 4095, 5000} {
		tree, next := load(n), 0
		tree.Scan(func(i item) bool {
			if i != (item{uint64(3 * next), uint64(next)}) {
				t.Errorf("item %d of %d is %v", next, n, i)
			}
			next++
			return true
		})
		if next != n || tree.Len() != n {
			t.Errorf("%d items, %d by its own count, want %d", next, tree.Len(), n)
		}
		for i := range n {
			tree.Set(item{uint64(3*i + 1), 0})
		}
		if tree.Len() != 2*n {
			t.Errorf("%d items after as many came, want %d", tree.Len(), 2*n)
		}
	}
	const many = 200_000
	heap := func() float64 {
		for range 3 { // it takes two to empty a sync.Pool
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	tree := load(many)
	if each := (heap() - before) / many; each > 22 {
		t.Errorf("an item of 16 bytes takes %.1f", each)
	}
	runtime.KeepAlive(tree)
}
