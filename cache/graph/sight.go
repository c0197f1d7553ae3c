package graph

import (
	"context"
	"slices"

	"github.com/informerd/informerd/cache"
)

// sighted is what a question reads: a state as somebody sees it. An object that is
// not seen is as if it were not there, so that nothing of an answer tells whether it
// is. What a seen object says of others it says itself: they are named, and nobody
// can say more of them.
type sighted struct {
	*state
	scopes []cache.Scope // by kind
}

func (s *state) seenBy(sight cache.Sight) sighted {
	scopes := make([]cache.Scope, len(s.all))
	for i, k := range s.all {
		scopes[i] = sight.Of(k.view.Spec.GVR.GroupResource())
	}
	return sighted{s, scopes}
}

// sees reports whether what a node stands for is seen, be it there or not.
func (s *sighted) sees(id nodeID) bool {
	n := s.nodeOf(id)
	return s.scopes[n.kind].Sees(n.key())
}

// knows reports whether there is a node to those who ask: an object that is seen, or
// what one names that is seen, too.
func (s *sighted) knows(id nodeID) bool {
	n := s.nodeOf(id)
	if !s.sees(id) {
		return false
	}
	var one [1]uint32
	return n.present || slices.ContainsFunc(n.mentions(), func(m mention) bool {
		return slices.ContainsFunc(s.holders(m, &one), func(holder uint32) bool { return s.sees(nodeID(holder)) })
	})
}

// object is the node that id stands for. Whether what is not seen has the UID that it
// is named by is not known.
func (s *sighted) object(id nodeID) nodeID {
	if !s.nodeOf(id).alias || !s.sees(id) {
		return id
	}
	return s.state.object(id)
}

// missing reports whether it is known that what a node stands for is not there.
func (s *sighted) missing(id nodeID) bool { return s.state.missing(id) && s.sees(id) }

// uid is that of a node; of what is not seen it is what the reference says.
func (s *sighted) uid(id nodeID) string {
	if n := s.nodeOf(id); n.alias || s.sees(id) {
		return n.uid
	}
	return ""
}

// stored is the object of a node that is seen, if it can be read.
func (s *sighted) stored(id nodeID) (*cache.Object, bool) {
	n := s.nodeOf(id)
	return s.get(n.kind, n.key())
}

// get returns an object that is seen, if its resource can be read.
func (s *sighted) get(k kindID, key cache.Key) (*cache.Object, bool) {
	reader := s.all[k].view.Reader(s.scopes[k])
	if reader == nil {
		return nil, false
	}
	return reader.Get(key)
}

// selectOf returns the objects of a kind that can be read which q selects, of those
// that are seen.
func (s *sighted) selectOf(ctx context.Context, k kindID, q cache.Query) ([]*cache.Object, error) {
	if s.scopes[k].Empty() {
		return nil, nil
	}
	found, err := s.all[k].view.Reader(s.scopes[k]).Select(ctx, q)
	if err != nil {
		return nil, err
	}
	return found.Objects, nil
}
