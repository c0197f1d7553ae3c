package replica

import (
	"fmt"
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestNewestListed: what a list found to be newest is taken as long as it is, and looked for anew
// once something was told, taken out without being told, or the watch has opened.
func TestNewestListed(t *testing.T) {
	store, err := cache.NewStore(specOf("pods"), cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	pod := func(name string, version int) *cache.Object {
		o, err := store.Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":%q,"uid":%q,"resourceVersion":"%d"}}`, name, name, version), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	s := &source{store: store, spec: specOf("pods")}
	names := func() (names string) {
		for _, o := range s.newest() {
			names += o.Name() + o.ResourceVersion() + " "
		}
		return names
	}
	list := func() {
		store.Replace("", []*cache.Object{pod("one", 1), pod("two", 2), pod("three", 3)}, "5")
		sink{s}.noteListed(true)
	}
	list()
	listed := s.newestListed
	if got := names(); got != "three3 two2 one1 " || len(listed) != 3 || &s.newest()[0] != &listed[0] {
		t.Errorf("after the list: %s, and it was looked for", got)
	}
	store.Amend("", []cache.Key{{Namespace: "a", Name: "two"}}, nil, "5")
	if got := names(); got != "three3 one1 " {
		t.Errorf("with one taken out: %s", got)
	}
	list()
	store.Apply("", cache.Modified, pod("one", 6))
	if got := names(); got != "one6 three3 two2 " {
		t.Errorf("with one changed: %s", got)
	}
	list()
	if s.forgetNewest(); s.newestListed != nil {
		t.Error("it is kept beyond the watch")
	}
}
