package graph

import (
	"slices"

	"github.com/informerd/informerd/cache"
)

// nodeID is the position of a node in its state.
type nodeID uint32

// node is an object, or what a reference names.
type node struct {
	key cache.Key
	// uid is that of the object. Of an alias it is that which the object would
	// have to have.
	uid     string
	stamp   uint64 // of the version that refs were read from
	refs    []edge // to what it names, in the order of the document
	by      []edge // to those that name it, in no order
	kind    kindID
	present bool // the store has it
	alias   bool // stands for the object called key if that has the uid
}

// edge is one end of a reference: the node at the other end, and the rule.
type edge struct {
	other    nodeID
	rule     ruleID
	optional bool
}

// alias is the identity of a node that stands for an owner: owners are named by
// UID, and another object of the same name is not the owner.
type alias struct {
	kind kindID
	key  cache.Key
	uid  string
}

// state is what is known of a cluster's references. Guarded by its Graph.
type state struct {
	kinds
	nodes   []node
	free    []nodeID
	aliases map[alias]nodeID
	// selections of the nodes that have any, those nodes by namespace, and those
	// among them that select in other namespaces.
	selections map[nodeID][]selection
	selecting  map[string][]nodeID
	across     map[nodeID]struct{}
	edges      int
}

func newState() *state {
	return &state{
		kinds:      newKinds(),
		aliases:    map[alias]nodeID{},
		selections: map[nodeID][]selection{},
		selecting:  map[string][]nodeID{},
		across:     map[nodeID]struct{}{},
	}
}

func (s *state) kindOf(id nodeID) *kind { return s.all[s.nodes[id].kind] }

// named returns the node of a key, new if there is none.
func (s *state) named(k kindID, key cache.Key) nodeID {
	byKey := s.all[k].byKey
	id, ok := byKey[key]
	if !ok {
		id = s.newNode(node{kind: k, key: key})
		byKey[key] = id
	}
	return id
}

// aliased returns the node that stands for the object with a UID.
func (s *state) aliased(a alias) nodeID {
	id, ok := s.aliases[a]
	if !ok {
		id = s.newNode(node{kind: a.kind, key: a.key, uid: a.uid, alias: true})
		s.aliases[a] = id
	}
	return id
}

func (s *state) newNode(n node) nodeID {
	if last := len(s.free) - 1; last >= 0 {
		id := s.free[last]
		s.free = s.free[:last]
		s.nodes[id] = n
		return id
	}
	s.nodes = append(s.nodes, n)
	return nodeID(len(s.nodes) - 1)
}

// collect forgets a node that is neither there nor named.
func (s *state) collect(id nodeID) {
	n := &s.nodes[id]
	if n.present || len(n.by) > 0 {
		return
	}
	if n.alias {
		delete(s.aliases, alias{n.kind, n.key, n.uid})
	} else {
		delete(s.all[n.kind].byKey, n.key)
	}
	*n = node{}
	s.free = append(s.free, id)
}

// put enters an object.
func (s *state) put(k kindID, l *links) {
	id := s.named(k, l.key)
	n := &s.nodes[id]
	n.present, n.stamp = true, l.stamp
	if n.uid != l.uid {
		n.uid = l.uid
	}
	s.setSelections(id, l.selections)
	s.setReferences(id, s.resolve(l))
}

// resolve turns references into edges, each once.
func (s *state) resolve(l *links) []edge {
	edges := make([]edge, 0, len(l.references))
	for i := range l.references {
		target, ok := s.target(&l.references[i])
		if !ok {
			continue
		}
		e := edge{target, l.references[i].rule.id, l.references[i].optional}
		at := slices.IndexFunc(edges, func(o edge) bool { return o.other == e.other && o.rule == e.rule })
		if at < 0 {
			edges = append(edges, e)
		} else {
			edges[at].optional = edges[at].optional && e.optional
		}
	}
	return slices.Clip(edges)
}

// target is the node a reference names; there is none if it lacks a namespace.
func (s *state) target(ref *reference) (nodeID, bool) {
	k := s.of(ref)
	key := ref.key
	switch kind := s.all[k]; {
	case !kind.namespaced():
		key.Namespace = ""
	case kind.known && key.Namespace == "":
		return 0, false
	}
	if ref.uid != "" {
		return s.aliased(alias{k, key, ref.uid}), true
	}
	return s.named(k, key), true
}

// setReferences replaces the edges of a node.
func (s *state) setReferences(id nodeID, now []edge) {
	before := s.nodes[id].refs
	if slices.Equal(before, now) {
		return
	}
	for _, e := range now {
		if !slices.Contains(before, e) {
			s.nodes[e.other].by = append(s.nodes[e.other].by, edge{id, e.rule, e.optional})
		}
	}
	s.nodes[id].refs = now
	s.edges += len(now) - len(before)
	for _, e := range before {
		if !slices.Contains(now, e) {
			s.unname(id, e)
		}
	}
}

// unname takes away what e.other knows of being named by id.
func (s *state) unname(id nodeID, e edge) {
	by := s.nodes[e.other].by
	i := slices.Index(by, edge{id, e.rule, e.optional})
	last := len(by) - 1
	by[i] = by[last]
	s.nodes[e.other].by = by[:last]
	s.collect(e.other)
}

// remove takes out an object; what names it keeps doing so.
func (s *state) remove(k kindID, key cache.Key) {
	id, ok := s.all[k].byKey[key]
	if !ok || !s.nodes[id].present {
		return
	}
	s.setSelections(id, nil)
	s.setReferences(id, nil)
	n := &s.nodes[id]
	n.present, n.uid, n.stamp = false, "", 0
	s.collect(id)
}

func (s *state) setSelections(id nodeID, now []selection) {
	namespace := s.nodes[id].key.Namespace
	switch _, had := s.selections[id]; {
	case len(now) == 0 && !had:
		return
	case len(now) == 0:
		delete(s.selections, id)
		rest := slices.DeleteFunc(s.selecting[namespace], func(o nodeID) bool { return o == id })
		if s.selecting[namespace] = rest; len(rest) == 0 {
			delete(s.selecting, namespace)
		}
	default:
		s.selections[id] = now
		if !had {
			s.selecting[namespace] = append(s.selecting[namespace], id)
		}
	}
	delete(s.across, id)
	if slices.ContainsFunc(now, func(sel selection) bool { return sel.namespaces != nil }) {
		s.across[id] = struct{}{}
	}
}

// object is the node that id stands for: itself, or of an alias the object with
// its UID, if there is one.
func (s *state) object(id nodeID) nodeID {
	n := &s.nodes[id]
	if !n.alias {
		return id
	}
	if named, ok := s.all[n.kind].byKey[n.key]; ok && s.nodes[named].present && s.nodes[named].uid == n.uid {
		return named
	}
	return id
}

// missing reports whether the cluster does not have what a node stands for:
// it is not in the copy, and the copy would have it.
func (s *state) missing(id nodeID) bool {
	n := &s.nodes[id]
	return !n.present && s.all[n.kind].covers(n.key.Namespace)
}
