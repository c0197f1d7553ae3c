package cache_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// TestRevisionOfWhatIsSeen: what happens to objects that a Scope does not see leaves its
// revision alone, as long as no version is told by it; what happens to others does not.
func TestRevisionOfWhatIsSeen(t *testing.T) {
	store, err := cache.NewStore(cache.Spec{
		Resource: cache.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
		Kind:     "Pod", Namespaced: true, Watch: true, Indexes: map[string]string{"node": "node"},
	}, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	apply := func(typ cache.EventType, namespace, name string, version int) {
		t.Helper()
		o, err := store.Decode(fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"%d"},"node":"n%d"}`, namespace, name, name, version, version), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		store.Apply("", typ, o)
	}
	store.Replace("", nil, "1")
	store.Bookmark("", "1000")
	inA, whole := reader(store, cache.NewScope([]string{"a"}, nil)), reader(store, cache.WholeScope())
	order, err := cache.ParseOrder("node")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, seen bool, change func()) {
		t.Helper()
		part, all := inA.Revision(), whole.Revision()
		change()
		now := inA.Revision()
		if all == whole.Revision() {
			t.Errorf("%s: the revision of all is the same", what)
		}
		if (part != now) != seen {
			t.Errorf("%s: the revision of a has changed: %v, want %v", what, part != now, seen)
		}
		found, err := inA.Select(context.Background(), cache.Query{})
		if err != nil || found.Revision != now {
			t.Errorf("%s: selected at %d, want %d (%v)", what, found.Revision, now, err)
		}
		page, err := inA.Page(context.Background(), cache.Query{Sort: order}, 1, "")
		if err != nil || page.Revision != now {
			t.Errorf("%s: a page at %d, want %d (%v)", what, page.Revision, now, err)
		}
	}
	// Below the version of the store, as from a watch that is late.
	check("another comes", false, func() { apply(cache.Added, "b", "x", 10) })
	check("it comes", true, func() { apply(cache.Added, "a", "one", 11) })
	check("one more", true, func() { apply(cache.Added, "a", "two", 12) })
	check("another changes", false, func() { apply(cache.Modified, "b", "x", 13) })
	check("it changes", true, func() { apply(cache.Modified, "a", "one", 14) })
	check("another goes", false, func() { apply(cache.Deleted, "b", "x", 15) })
	check("it goes", true, func() { apply(cache.Deleted, "a", "one", 16) })
	check("the version", true, func() { store.Bookmark("", "1001") })
	check("indexes", true, func() {
		if err := store.SetIndexes(nil); err != nil {
			t.Fatal(err)
		}
	})
	// A scope that was forgotten because of others has no revision of before.
	before := inA.Revision()
	for n := range 40 {
		reader(store, cache.NewScope([]string{strconv.Itoa(n)}, nil)).Revision()
	}
	if inA.Revision() == before {
		t.Error("a revision came again")
	}
}
