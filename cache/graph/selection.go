package graph

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

var (
	podResource       = schema.GroupResource{Resource: "pods"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
)

// readable is the kind of a resource, if it can be read.
func (s *state) readable(r schema.GroupResource) (kindID, bool) {
	k, ok := s.byResource[r]
	return k, ok && s.all[k].view.Readable()
}

// stored is the object of a node, if it can be read.
func (s *state) stored(id nodeID) (*cache.Object, bool) {
	store := s.kindOf(id).view.Store(inside.Cache)
	if store == nil {
		return nil, false
	}
	return store.Get(s.nodes[id].key)
}

// selected returns what a selection of the object id selects now. It reports
// false where that cannot be known: pods or namespaces cannot be read.
func (s *state) selected(ctx context.Context, id nodeID, sel *selection) (kindID, []*cache.Object, bool, error) {
	if sel.namespaces == nil {
		own := cache.Query{Terms: []cache.Term{{Index: cache.NamespaceIndex, Value: s.nodes[id].key.Namespace}}, Labels: sel.pods}
		return s.query(ctx, podResource, own)
	}
	k, found, ok, err := s.query(ctx, namespaceResource, cache.Query{Labels: sel.namespaces})
	if !ok || err != nil || sel.pods == nil || len(found) == 0 {
		return k, found, ok, err
	}
	across := cache.Query{Labels: sel.pods}
	for _, namespace := range found {
		across.Namespaces = append(across.Namespaces, namespace.Name())
	}
	return s.query(ctx, podResource, across)
}

func (s *state) query(ctx context.Context, r schema.GroupResource, q cache.Query) (kindID, []*cache.Object, bool, error) {
	k, ok := s.readable(r)
	if !ok {
		return k, nil, false, nil
	}
	found, err := s.all[k].view.Store(inside.Cache).Select(ctx, q)
	if err != nil {
		return k, nil, true, err
	}
	return k, found.Objects, true, nil
}

// selections visits what a node selects, and of a pod or namespace what selects
// it.
func (w *walk) selections(id nodeID, add func(hop)) error {
	all := w.state.selections[id]
	for i := range all {
		k, found, _, err := w.selected(w.ctx, id, &all[i])
		if err != nil {
			return err
		}
		w.each(k, found, func(other nodeID) { add(hop{other, all[i].rule, true}) })
	}
	if n := &w.nodes[id]; n.present {
		switch w.kindOf(id).view.Spec.GVR.GroupResource() {
		case podResource:
			w.selecting(id, add)
			w.allowing(id, n.key.Namespace, add)
		case namespaceResource:
			w.allowing(id, n.key.Name, add)
		}
	}
	return nil
}

// selecting visits what selects a pod from its own namespace: there are not many
// to try.
func (w *walk) selecting(id nodeID, add func(hop)) {
	n := &w.nodes[id]
	pod, ok := w.stored(id)
	if !ok {
		return
	}
	for _, holder := range w.state.selecting[n.key.Namespace] {
		for _, s := range w.state.selections[holder] {
			if s.namespaces == nil && s.pods.Matches(pod.Labels()) {
				add(hop{holder, s.rule, false})
			}
		}
	}
}

// reach is a selection that reaches into a namespace.
type reach struct {
	holder nodeID
	*selection
}

// allowing visits what selects a namespace, or a pod of it, from any namespace.
// What more than a crowd selects, such as the pods of the cluster's DNS, is not
// walked through to them.
func (w *walk) allowing(id nodeID, namespace string, add func(hop)) {
	n := &w.nodes[id]
	object, ok := w.stored(id)
	if !ok {
		return
	}
	var hops []hop
	for _, r := range w.reaching(namespace) {
		if r.pods == nil && n.key.Namespace == "" || r.pods != nil && n.key.Namespace != "" && r.pods.Matches(object.Labels()) {
			hops = append(hops, hop{r.holder, r.rule, false})
		}
	}
	if len(hops) > crowd && !w.through(id) {
		w.crowds[id] = true
		return
	}
	for _, h := range hops {
		add(h)
	}
}

// reaching lists the selections that reach into a namespace from others, once
// for each walk.
func (w *walk) reaching(namespace string) []reach {
	if known, ok := w.reaches[namespace]; ok {
		return known
	}
	var all []reach
	if object, ok := w.namespace(namespace); ok {
		for holder := range w.across {
			selections := w.state.selections[holder]
			for i, s := range selections {
				if s.namespaces != nil && s.namespaces.Matches(object.Labels()) {
					all = append(all, reach{holder, &selections[i]})
				}
			}
		}
	}
	w.reaches[namespace] = all
	return all
}

// namespace is the Namespace of a name, if it can be read.
func (s *state) namespace(name string) (*cache.Object, bool) {
	k, ok := s.readable(namespaceResource)
	if !ok {
		return nil, false
	}
	return s.all[k].view.Store(inside.Cache).Get(cache.Key{Name: name})
}
