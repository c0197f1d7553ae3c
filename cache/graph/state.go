package graph

import (
	"slices"
	"strings"
	"unique"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/rows"
)

type (
	nodeID   uint32 // number of a node in its state
	bundleID uint32 // number of a bundle in its state, + 1
)

// node is an object, or what a reference names.
type node struct {
	name      string // with uid a part of the object, so that it costs nothing
	namespace unique.Handle[string]
	// uid is that of the object. Of an alias it is that which the object would
	// have to have.
	uid     string
	stamp   uint64     // of the version that bundles were read from
	by      *[]mention // what names it, in no order; nil is nothing
	bundles [parts]bundleID
	kind    kindID
	present bool // the store has it
	alias   bool // stands for the object called by its name if that has the uid
}

func (n *node) key() cache.Key { return cache.Key{Namespace: n.namespace.Value(), Name: n.name} }

// mentions are what names the node.
func (n *node) mentions() []mention {
	if n.by == nil {
		return nil
	}
	return *n.by
}

// edge is a reference: the node that is named, and the rule.
type edge struct {
	other    nodeID
	rule     ruleID
	optional bool
}

// bundle is references that objects have in common, such as those of siblings. An object has one
// of each part of its references, for four bytes each: those who have the same are others.
type bundle struct {
	edges   []edge   // in the order of the document
	holders rows.Set // nodes
}

// mention is an edge of a bundle, seen from the node that is named.
type mention struct {
	bundle   bundleID
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
	nodes   rows.Rows[node]
	aliases rows.Table // nodes
	bundles rows.Rows[bundle]
	byEdges rows.Table // bundles
	// selections of the nodes that have any, those nodes by namespace, and those
	// among them that select in other namespaces.
	selections map[nodeID][]selection
	selecting  map[string][]nodeID
	across     map[nodeID]struct{}
	edges      int
	resolved   [parts][]edge // memory for resolve
}

func newState() *state {
	return &state{
		kinds:      newKinds(),
		selections: map[nodeID][]selection{},
		selecting:  map[string][]nodeID{},
		across:     map[nodeID]struct{}{},
	}
}

func (s *state) nodeOf(id nodeID) *node     { return s.nodes.At(uint32(id)) }
func (s *state) bundle(id bundleID) *bundle { return s.bundles.At(uint32(id - 1)) }
func (s *state) kindOf(id nodeID) *kind     { return s.all[s.nodeOf(id).kind] }

func hashKey(key cache.Key) uint64 { return rows.Hash(key.Namespace, key.Name) }

func (a alias) hash() uint64 { return rows.Hash(a.key.Namespace, a.key.Name, a.uid) }

func hashEdges(edges []edge) (hash uint64) {
	for _, e := range edges {
		hash = rows.HashNumbers(hash, uint64(e.other), uint64(e.rule))
	}
	return hash
}

func (s *state) nodeHash(id uint32) uint64       { return hashKey(s.nodes.At(id).key()) }
func (s *state) aliasHash(id uint32) uint64      { return s.aliasOf(nodeID(id)).hash() }
func (s *state) bundleHash(number uint32) uint64 { return hashEdges(s.bundles.At(number).edges) }

func (s *state) aliasOf(id nodeID) alias {
	n := s.nodeOf(id)
	return alias{n.kind, n.key(), n.uid}
}

// find returns the node of a key.
func (s *state) find(k kindID, key cache.Key) (nodeID, bool) {
	id, ok := s.all[k].byKey.Find(hashKey(key), func(id uint32) bool {
		n := s.nodes.At(id)
		return n.name == key.Name && n.namespace.Value() == key.Namespace
	})
	return nodeID(id), ok
}

// findAlias returns the node that stands for the object with a UID.
func (s *state) findAlias(a alias) (nodeID, bool) {
	id, ok := s.aliases.Find(a.hash(), func(id uint32) bool { return s.aliasOf(nodeID(id)) == a })
	return nodeID(id), ok
}

// named returns the node of a key, new if there is none.
func (s *state) named(k kindID, key cache.Key) nodeID {
	id, ok := s.find(k, key)
	if !ok {
		id = s.add(k, key)
	}
	return id
}

// add returns a new node of a key. It keeps the name as it is, so that one of links has to be cloned
// before; unique.Make clones the namespace by itself.
func (s *state) add(k kindID, key cache.Key) nodeID {
	id := s.nodes.Add(node{kind: k, name: key.Name, namespace: unique.Make(key.Namespace)})
	s.all[k].byKey.Add(id, s.nodeHash)
	return nodeID(id)
}

// aliased returns the node that stands for the object with a UID, new if there is none.
func (s *state) aliased(a alias) nodeID {
	id, ok := s.findAlias(a)
	if !ok {
		name, uid := strings.Clone(a.key.Name), strings.Clone(a.uid)
		id = nodeID(s.nodes.Add(node{kind: a.kind, name: name, namespace: unique.Make(a.key.Namespace), uid: uid, alias: true}))
		s.aliases.Add(uint32(id), s.aliasHash)
	}
	return id
}

// collect forgets a node that is neither there nor named.
func (s *state) collect(id nodeID) {
	n := s.nodeOf(id)
	if n.present || len(n.mentions()) > 0 {
		return
	}
	if n.alias {
		s.aliases.Remove(uint32(id), s.aliasHash)
	} else {
		s.all[n.kind].byKey.Remove(uint32(id), s.nodeHash)
	}
	s.nodes.Remove(uint32(id))
}

// put enters an object.
func (s *state) put(k kindID, l *links) {
	id := s.named(k, l.key)
	n := s.nodeOf(id)
	n.present, n.stamp = true, l.stamp
	n.name, n.uid = l.key.Name, l.uid // of this version, so that no former one is kept for them
	s.setSelections(id, l.selections)
	var bundles [parts]bundleID
	s.resolve(l)
	for part, edges := range s.resolved {
		bundles[part] = s.bundled(edges)
	}
	s.setBundles(id, bundles)
}

// resolve turns references into edges, each once, which are in resolved until it is called again.
func (s *state) resolve(l *links) {
	for part := range s.resolved {
		s.resolved[part] = s.resolved[part][:0]
	}
	for i := range l.references {
		ref := &l.references[i]
		target, ok := s.target(ref)
		if !ok {
			continue
		}
		edges := &s.resolved[ref.rule.part]
		e := edge{target, ref.rule.id, ref.optional}
		at := slices.IndexFunc(*edges, func(o edge) bool { return o.other == e.other && o.rule == e.rule })
		if at < 0 {
			*edges = append(*edges, e)
		} else {
			(*edges)[at].optional = (*edges)[at].optional && e.optional
		}
	}
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
	id, ok := s.find(k, key)
	if !ok {
		id = s.add(k, cache.Key{Namespace: key.Namespace, Name: strings.Clone(key.Name)})
	}
	return id, true
}

// bundled is the bundle of edges, new if there is none; 0 if there are no edges.
func (s *state) bundled(edges []edge) bundleID {
	if len(edges) == 0 {
		return 0
	}
	number, ok := s.byEdges.Find(hashEdges(edges), func(number uint32) bool { return slices.Equal(s.bundles.At(number).edges, edges) })
	if ok {
		return bundleID(number + 1)
	}
	number = s.bundles.Add(bundle{edges: slices.Clone(edges)})
	s.byEdges.Add(number, s.bundleHash)
	for _, e := range edges {
		n := s.nodeOf(e.other)
		if n.by == nil {
			n.by = new([]mention)
		}
		*n.by = append(*n.by, mention{bundleID(number + 1), e.rule, e.optional})
	}
	return bundleID(number + 1)
}

// setBundles replaces the references of a node. What is new is entered before what was is taken
// out, so that nothing that is named by both is forgotten.
func (s *state) setBundles(id nodeID, now [parts]bundleID) {
	before := s.nodeOf(id).bundles
	s.nodeOf(id).bundles = now
	for i := range now {
		if now[i] != before[i] && now[i] != 0 {
			b := s.bundle(now[i])
			b.holders.Add(uint32(id))
			s.edges += len(b.edges)
		}
	}
	for i := range now {
		if now[i] != before[i] && before[i] != 0 {
			b := s.bundle(before[i])
			s.edges -= len(b.edges)
			if b.holders.Remove(uint32(id)); b.holders.Len() == 0 {
				s.dropBundle(before[i])
			}
		}
	}
}

// dropBundle forgets a bundle that no object has.
func (s *state) dropBundle(id bundleID) {
	edges := s.bundle(id).edges
	s.byEdges.Remove(uint32(id-1), s.bundleHash)
	s.bundles.Remove(uint32(id - 1))
	for _, e := range edges {
		s.unname(e.other, mention{id, e.rule, e.optional})
	}
}

// unname takes away what a node knows of being named.
func (s *state) unname(id nodeID, m mention) {
	n := s.nodeOf(id)
	by := *n.by
	i := slices.Index(by, m)
	last := len(by) - 1
	by[i] = by[last]
	if *n.by = by[:last]; last == 0 {
		n.by = nil
		s.collect(id)
	}
}

// remove takes out an object; what names it keeps doing so.
func (s *state) remove(k kindID, key cache.Key) {
	id, ok := s.find(k, key)
	if !ok || !s.nodeOf(id).present {
		return
	}
	s.setSelections(id, nil)
	s.setBundles(id, [parts]bundleID{})
	n := s.nodeOf(id)
	n.present, n.uid, n.stamp = false, "", 0
	n.name = strings.Clone(n.name) // the rest of the object need not be kept for it
	s.collect(id)
}

// references visits what a node names.
func (s *state) references(id nodeID, visit func(edge)) {
	for _, b := range s.nodeOf(id).bundles {
		if b != 0 {
			for _, e := range s.bundle(b).edges {
				visit(e)
			}
		}
	}
}

// holders are the nodes that name another by a mention; one alone is put into the memory given.
func (s *state) holders(m mention, one *[1]uint32) []uint32 {
	return s.bundle(m.bundle).holders.List(one)
}

func (s *state) setSelections(id nodeID, now []selection) {
	namespace := s.nodeOf(id).namespace.Value()
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
	n := s.nodeOf(id)
	if !n.alias {
		return id
	}
	if named, ok := s.find(n.kind, n.key()); ok && s.nodeOf(named).present && s.nodeOf(named).uid == n.uid {
		return named
	}
	return id
}

// missing reports whether the cluster does not have what a node stands for:
// it is not in the copy, and the copy would have it.
func (s *state) missing(id nodeID) bool {
	n := s.nodeOf(id)
	return !n.present && s.all[n.kind].covers(n.namespace.Value())
}
