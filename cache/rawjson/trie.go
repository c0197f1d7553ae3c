package rawjson

import "fmt"

// maxNodes bounds a compiled set of paths: [*] and [0] at the same place must
// be multiplied out.
const maxNodes = 1 << 14

// node is one place in an object that some path leads to or through. Nodes are
// immutable after compilation.
type node struct {
	fields  []field
	names   map[string]int // of fields, when there are many
	all     uint64         // members.seen of an object that has all fields; 0 if there are none, or too many
	star    *node          // elements that no index names
	index   map[int]*node  // elements by index; includes what star wants of them
	last    int            // the highest index, -1 if there is none
	extract []int          // paths that end here, by position in Spec.Extract
	drop    bool
	redact  bool
	copies  bool // members that hold a Secret are dropped
	role    role
	roles   bool // a role here or below
	cuts    bool // a drop, a redact or copies here or below
}

type field struct {
	name   string
	quoted []byte // name as a JSON string
	node   *node
}

// role says which part of an object's identity is at a node.
type role uint8

const (
	roleNone role = iota
	roleAPIVersion
	roleKind
	roleNamespace
	roleName
	roleUID
	roleResourceVersion
	roleCreationTimestamp
	roleDeletionTimestamp
	roleLabels
	roleAnnotations
	roleInitialEventsEnd
	roleOwners
	roleOwnerUID
	roleOwnerKind
	roleOwnerName
	roleOwnerAPIVersion
	roleOwnerController
)

// find returns the position of the field called key, or -1.
func (n *node) find(key []byte) int {
	if n.names != nil {
		if i, ok := n.names[string(key)]; ok {
			return i
		}
		return -1
	}
	for i := range n.fields {
		if n.fields[i].name == string(key) {
			return i
		}
	}
	return -1
}

// element returns the node for element i of an array here, or nil.
func (n *node) element(i int) *node {
	if i <= n.last {
		if e, ok := n.index[i]; ok {
			return e
		}
	}
	return n.star
}

func (n *node) wantsElements() bool { return n.star != nil || n.last >= 0 }

// branch is a node of the tree of paths as they were given, where [*] and [0]
// are still different children.
type branch struct {
	order   []step
	next    map[step]*branch
	extract []int
	drop    bool
	redact  bool
	copies  bool
	role    role
}

// at returns the branch that steps lead to from b, growing it where needed.
func (b *branch) at(steps []step) *branch {
	for _, st := range steps {
		c := b.next[st]
		if c == nil {
			c = &branch{}
			if b.next == nil {
				b.next = map[step]*branch{}
			}
			b.next[st] = c
			b.order = append(b.order, st)
		}
		b = c
	}
	return b
}

// resolver turns branches into nodes so that a walk is in one node at a time.
type resolver struct {
	nodes int
}

func resolve(root *branch) (*node, error) {
	var r resolver
	return r.merge([]*branch{root})
}

// merge makes the one node for a place that all of set lead to.
func (r *resolver) merge(set []*branch) (*node, error) {
	if r.nodes++; r.nodes > maxNodes {
		return nil, fmt.Errorf("too many overlapping paths with [*] and indexes")
	}
	n := &node{last: -1}
	children := map[step][]*branch{}
	var order []step
	for _, b := range set {
		n.extract = append(n.extract, b.extract...)
		n.drop = n.drop || b.drop
		n.redact = n.redact || b.redact
		n.copies = n.copies || b.copies
		n.role = max(n.role, b.role)
		for _, st := range b.order {
			if children[st] == nil {
				order = append(order, st)
			}
			children[st] = append(children[st], b.next[st])
		}
	}
	n.roles = n.role != roleNone
	n.cuts = n.drop || n.redact || n.copies
	star := children[step{kind: stepStar}]
	for _, st := range order {
		below := children[st]
		if st.kind == stepIndex {
			below = append(append([]*branch(nil), below...), star...)
		}
		c, err := r.merge(below)
		if err != nil {
			return nil, err
		}
		n.add(st, c)
	}
	return n, nil
}

func (n *node) add(st step, c *node) {
	n.roles = n.roles || c.roles
	n.cuts = n.cuts || c.cuts
	switch st.kind {
	case stepStar:
		n.star = c
	case stepIndex:
		if n.index == nil {
			n.index = map[int]*node{}
		}
		n.index[st.index] = c
		n.last = max(n.last, st.index)
	default:
		n.fields = append(n.fields, field{name: st.name, quoted: appendQuoted(nil, st.name), node: c})
		n.all = 0
		if len(n.fields) <= maxSeen {
			n.all = 1<<len(n.fields) - 1
		}
		n.indexNames()
	}
}

// indexNames keeps find fast: a linear search wins while names are few.
func (n *node) indexNames() {
	const few = 16
	if len(n.fields) <= few {
		return
	}
	if n.names == nil {
		n.names = map[string]int{}
	}
	for i := len(n.names); i < len(n.fields); i++ {
		n.names[n.fields[i].name] = i
	}
}
