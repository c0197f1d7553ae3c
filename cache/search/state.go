package search

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

type (
	docID   uint32 // position of a doc in its state
	valueID uint32 // position of a value in its state
	kindID  uint16 // position of a kind in its state
)

// doc is one object.
type doc struct {
	key    cache.Key
	stamp  uint64
	values []valueID
	kind   kindID
	live   bool
}

// value is a text that objects have in a field.
type value struct {
	text  string
	docs  []docID // sorted
	field Field
}

// kind is one resource of the cluster.
type kind struct {
	view  cache.View // its Store is nil: cannot be read
	known bool       // the cluster has it
	byKey map[cache.Key]docID
}

// state is all there is to find. Guarded by its Search.
type state struct {
	kinds      []*kind
	byResource map[schema.GroupResource]kindID
	docs       []doc
	freeDocs   []docID
	values     []value
	freeValues []valueID
	ids        [fields]map[string]valueID
	// tokens are the words of all texts, with the sorted values they are in.
	tokens btree.Map[string, *[]valueID]
}

func newState() *state {
	s := &state{byResource: map[schema.GroupResource]kindID{}}
	for f := range s.ids {
		s.ids[f] = map[string]valueID{}
	}
	return s
}

// learn enters a resource of the cluster.
func (s *state) learn(view *cache.View) kindID {
	gr := view.Spec.GVR.GroupResource()
	id, ok := s.byResource[gr]
	if !ok {
		id = kindID(len(s.kinds))
		s.kinds = append(s.kinds, &kind{byKey: map[cache.Key]docID{}})
		s.byResource[gr] = id
	}
	k := s.kinds[id]
	k.view, k.known = *view, true
	return id
}

// put enters an object, or what changed in it.
func (s *state) put(k kindID, c *content) {
	id, ok := s.kinds[k].byKey[c.key]
	if !ok {
		id = s.newDoc(doc{key: c.key, kind: k, live: true})
		s.kinds[k].byKey[c.key] = id
	}
	s.docs[id].stamp = c.stamp
	now := make([]valueID, 0, len(c.texts))
	for _, t := range c.texts {
		now = append(now, s.value(t))
	}
	slices.Sort(now)
	s.setValues(id, now)
}

// remove takes out an object.
func (s *state) remove(k kindID, key cache.Key) {
	id, ok := s.kinds[k].byKey[key]
	if !ok {
		return
	}
	delete(s.kinds[k].byKey, key)
	s.setValues(id, nil)
	s.docs[id] = doc{}
	s.freeDocs = append(s.freeDocs, id)
}

// setValues replaces the texts of an object. Both lists are sorted.
func (s *state) setValues(id docID, now []valueID) {
	before := s.docs[id].values
	for _, v := range now {
		if _, had := slices.BinarySearch(before, v); !had {
			s.values[v].docs = insert(s.values[v].docs, id)
		}
	}
	s.docs[id].values = now
	for _, v := range before {
		if _, has := slices.BinarySearch(now, v); !has {
			if s.values[v].docs = remove(s.values[v].docs, id); len(s.values[v].docs) == 0 {
				s.dropValue(v)
			}
		}
	}
}

func (s *state) newDoc(d doc) docID {
	if last := len(s.freeDocs) - 1; last >= 0 {
		id := s.freeDocs[last]
		s.freeDocs = s.freeDocs[:last]
		s.docs[id] = d
		return id
	}
	s.docs = append(s.docs, d)
	return docID(len(s.docs) - 1)
}

// value returns the value of a text, new if there is none.
func (s *state) value(t text) valueID {
	if id, ok := s.ids[t.field][t.s]; ok {
		return id
	}
	t.s = strings.Clone(t.s) // it may be a part of something larger
	id := valueID(len(s.values))
	if last := len(s.freeValues) - 1; last >= 0 {
		id = s.freeValues[last]
		s.freeValues = s.freeValues[:last]
		s.values[id] = value{text: t.s, field: t.field}
	} else {
		s.values = append(s.values, value{text: t.s, field: t.field})
	}
	s.ids[t.field][t.s] = id
	for w := range words(t.s) {
		list, ok := s.tokens.Get(w)
		if !ok {
			list = new([]valueID)
			s.tokens.Set(strings.Clone(w), list) // it outlives the text
		}
		*list = insert(*list, id)
	}
	return id
}

// dropValue forgets a text that no object has.
func (s *state) dropValue(id valueID) {
	v := s.values[id]
	delete(s.ids[v.field], v.text)
	for w := range words(v.text) {
		list, ok := s.tokens.Get(w)
		if !ok {
			continue // the word is in the text twice
		}
		if *list = remove(*list, id); len(*list) == 0 {
			s.tokens.Delete(w)
		}
	}
	s.values[id] = value{}
	s.freeValues = append(s.freeValues, id)
}

// insert adds an id to a sorted list, once.
func insert[T ~uint32](list []T, id T) []T {
	if n := len(list); n == 0 || list[n-1] < id {
		return append(list, id)
	}
	at, found := slices.BinarySearch(list, id)
	if found {
		return list
	}
	return slices.Insert(list, at, id)
}

func remove[T ~uint32](list []T, id T) []T {
	if at, found := slices.BinarySearch(list, id); found {
		return slices.Delete(list, at, at+1)
	}
	return list
}
