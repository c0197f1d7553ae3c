package graph

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

var pods = schema.GroupResource{Resource: "pods"}

// podKind is the kind of pods, if they can be read.
func (s *state) podKind() (kindID, bool) {
	k, ok := s.byResource[pods]
	return k, ok && s.all[k].store != nil
}

// selected returns the pods that a node with a selector selects now.
func (s *state) selected(ctx context.Context, k kindID, id nodeID) ([]*cache.Object, error) {
	found, err := s.all[k].store.Select(ctx, cache.Query{
		Terms:  []cache.Term{{Index: cache.NamespaceIndex, Value: s.nodes[id].key.Namespace}},
		Labels: s.selectors[id],
	})
	if err != nil {
		return nil, err
	}
	return found.Objects, nil
}

// selectionRule is the rule of a node with a selector.
func (s *state) selectionRule(id nodeID) *compiled { return s.kindOf(id).reader.selector.compiled }

// selections visits the pods that a node selects, and of a pod what selects it.
func (w *walk) selections(id nodeID, add func(hop)) error {
	k, ok := w.podKind()
	switch n := &w.nodes[id]; {
	case !ok:
	case w.state.selectors[id] != nil:
		found, err := w.selected(w.ctx, k, id)
		if err != nil {
			return err
		}
		w.each(k, found, func(pod nodeID) { add(hop{pod, w.selectionRule(id), true}) })
	case n.kind == k && n.present:
		w.selecting(k, id, add)
	}
	return nil
}

// selecting visits what selects a pod: selectors only reach into their own
// namespace, so there are not many to try.
func (w *walk) selecting(k kindID, id nodeID, add func(hop)) {
	key := w.nodes[id].key
	pod, ok := w.all[k].store.Get(key)
	if !ok {
		return
	}
	for _, selector := range w.state.selecting[key.Namespace] {
		if w.state.selectors[selector].Matches(pod.Labels()) {
			add(hop{selector, w.selectionRule(selector), false})
		}
	}
}
