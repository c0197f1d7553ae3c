package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// sighted is what a question reads: a state as somebody sees it. An object that is not
// seen is as if it were not there: it is not counted, causes nothing, and what it owns is
// owned by nobody.
type sighted struct {
	*state                  // while the Index is locked
	kinds   []kind          // those of the state, of when it was
	scopes  []cache.Scope   // by kind
	readers []*cache.Reader // by kind; nil where nothing can be read or seen
}

func (s *state) seenBy(sight cache.Sight) sighted {
	out := sighted{s, make([]kind, len(s.kinds)), make([]cache.Scope, len(s.kinds)), make([]*cache.Reader, len(s.kinds))}
	for i, k := range s.kinds {
		out.kinds[i] = *k
		out.scopes[i] = sight.Of(k.view.Spec.GVR.GroupResource())
		if k.known && !k.records && k.view.Readable() && !out.scopes[i].Empty() {
			out.readers[i] = k.view.Reader(out.scopes[i])
		}
	}
	return out
}

// unanswered are the resources among kinds, or all, that cannot be read, less those of
// which nothing may be seen anyway.
func (s *sighted) unanswered(only []schema.GroupResource) []cache.View {
	out := []cache.View{}
	for i := range s.kinds {
		k := &s.kinds[i]
		if k.known && !k.records && !k.view.Readable() && !s.scopes[i].Empty() && wanted(only, k) {
			out = append(out, *k.view.SeenBy(s.scopes[i]))
		}
	}
	return out
}

func wanted(only []schema.GroupResource, k *kind) bool {
	return only == nil || slices.Contains(only, k.view.Spec.GVR.GroupResource())
}
