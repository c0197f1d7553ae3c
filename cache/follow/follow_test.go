package follow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newResource(t *testing.T, name string) *followtest.Resource {
	return followtest.NewResource(t, cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: name}}})
}

func apply(t *testing.T, r *followtest.Resource, typ cache.EventType, name string, version int) {
	t.Helper()
	o, err := r.Store().Decode(fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q,"resourceVersion":"%d"}}`, name, name, version), "v1", "X")
	if err != nil {
		t.Fatal(err)
	}
	r.Store().Apply("", typ, o)
}

// read reads and tells what came: "= a b" for a whole, "+a -b" for changes, "!"
// for what cannot be read, "gone".
func read(t *testing.T, f *Follower, resources ...Resource) string {
	t.Helper()
	deltas, err := f.Read(t.Context(), resources)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range deltas {
		var words []string
		for _, o := range d.Objects {
			words = append(words, "+"+o.Name()+"@"+o.ResourceVersion())
		}
		for _, k := range d.Deleted {
			words = append(words, "-"+k.Name)
		}
		slices.Sort(words)
		text := strings.Join(words, " ")
		switch {
		case d.Gone:
			text = "gone"
		case !d.View.Readable():
			text = "!"
		case d.Whole:
			text = "= " + text
		}
		if d.Empty() != (text == "") {
			t.Errorf("Empty() = %v of %q", d.Empty(), text)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestFollow(t *testing.T) {
	r := newResource(t, "pods")
	var f Follower
	check := func(what, want string, resources ...Resource) {
		t.Helper()
		if got := read(t, &f, resources...); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	apply(t, r, cache.Added, "a", 10)
	check("first", "= +a@10", r)
	check("no change", "", r)
	apply(t, r, cache.Added, "b", 11)
	apply(t, r, cache.Modified, "a", 12)
	apply(t, r, cache.Modified, "a", 13)
	apply(t, r, cache.Added, "c", 14)
	apply(t, r, cache.Deleted, "b", 15)
	check("changes, of each object the last", "+a@13 +c@14 -b", r)
	r.Store().Bookmark("", "20")
	check("a bookmark", "", r)

	r.State = cache.Syncing
	check("not readable", "!", r)
	r.State = cache.Stale
	check("readable again", "= +a@13 +c@14", r)

	old := r.Store()
	r.Renew(t)
	apply(t, r, cache.Added, "z", 5)
	check("another store", "= +z@5", r)
	if n := old.Stats().Subscribers; n != 0 {
		t.Errorf("%d subscribers of the store left behind", n)
	}
	r.Store().Close()
	check("closed, nothing new", "", r)
	r.Renew(t)
	check("its successor", "= ", r)
	check("no such resource", "gone")
	check("nor was there one before", "")
}

// TestFallenBehind: more changed than a store remembers.
func TestFallenBehind(t *testing.T) {
	r := newResource(t, "pods")
	var f Follower
	read(t, &f, r)
	for i := range 20_000 {
		apply(t, r, cache.Modified, "a", 10+i)
	}
	if got := read(t, &f, r); got != "= +a@20009" {
		t.Errorf("after 20,000 changes: %q, want the whole", got)
	}
	f.Close()
	if n := r.Store().Stats().Subscribers; n != 0 {
		t.Errorf("%d subscribers after Close", n)
	}
}
