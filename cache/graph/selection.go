package graph

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
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

// selected is what a selection selects now.
type selected struct {
	kind    kindID
	objects []*cache.Object // those that are seen
	// known is false where it cannot be known: pods or namespaces cannot be read.
	known bool
	// all says that objects would be all there are: what is asked for, and where,
	// is seen in full.
	all bool
}

// selected finds what a selection of the object id selects. A namespace that is not
// seen has no labels to be selected by, whatever is seen in it.
func (s *sighted) selected(ctx context.Context, id nodeID, sel *selection) (selected, error) {
	if sel.namespaces == nil {
		own := s.nodeOf(id).namespace.Value()
		return s.query(ctx, podResource, []string{own}, cache.Query{Terms: []cache.Term{{Index: cache.NamespaceIndex, Value: own}}, Labels: sel.pods})
	}
	spaces, err := s.query(ctx, namespaceResource, []string{""}, cache.Query{Labels: sel.namespaces})
	if !spaces.known || err != nil || sel.pods == nil || len(spaces.objects) == 0 {
		return spaces, err
	}
	across := cache.Query{Labels: sel.pods}
	for _, namespace := range spaces.objects {
		across.Namespaces = append(across.Namespaces, namespace.Name())
	}
	pods, err := s.query(ctx, podResource, across.Namespaces, across)
	pods.all = pods.all && spaces.all
	return pods, err
}

// query selects objects of a resource in namespaces.
func (s *sighted) query(ctx context.Context, r schema.GroupResource, namespaces []string, q cache.Query) (found selected, err error) {
	found.kind, found.known = s.readable(r)
	if !found.known {
		return found, nil
	}
	found.objects, err = s.selectOf(ctx, found.kind, q)
	found.all = !slices.ContainsFunc(namespaces, func(ns string) bool { return !s.scopes[found.kind].Namespace(ns) })
	return found, err
}

// selections visits what a node selects, and of a pod or namespace what selects
// it.
func (w *walk) selections(id nodeID, add func(hop)) error {
	all := w.state.selections[id]
	for i := range all {
		found, err := w.selected(w.ctx, id, &all[i])
		if err != nil {
			return err
		}
		w.each(found.kind, found.objects, func(other nodeID) { add(hop{other, all[i].rule, true}) })
	}
	if n := w.nodeOf(id); n.present {
		switch w.kindOf(id).view.Spec.GVR.GroupResource() {
		case podResource:
			w.selecting(id, add)
			w.allowing(id, n.namespace.Value(), add)
		case namespaceResource:
			w.allowing(id, n.name, add)
		}
	}
	return nil
}

// selecting visits what selects a pod from its own namespace: there are not many
// to try.
func (w *walk) selecting(id nodeID, add func(hop)) {
	n := w.nodeOf(id)
	pod, ok := w.stored(id)
	if !ok {
		return
	}
	for _, holder := range w.state.selecting[n.namespace.Value()] {
		if !w.sees(holder) {
			continue
		}
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
	object, ok := w.stored(id)
	if !ok {
		return
	}
	var hops []hop
	within := w.nodeOf(id).namespace.Value() != ""
	for _, r := range w.reaching(namespace) {
		if r.pods == nil && !within || r.pods != nil && within && r.pods.Matches(object.Labels()) {
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
			if !w.sees(holder) {
				continue
			}
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

// namespace is the Namespace of a name, if it is seen and can be read.
func (s *sighted) namespace(name string) (*cache.Object, bool) {
	k, ok := s.byResource[namespaceResource]
	if !ok {
		return nil, false
	}
	return s.get(k, cache.Key{Name: name})
}
