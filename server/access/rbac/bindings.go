package rbac

import (
	"cmp"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
)

// binding is a RoleBinding or a ClusterRoleBinding. There may be many: it is 32
// bytes, and the bytes of its name are those of the object in the store.
type binding struct {
	name     string
	space    spaceID
	role     roleID
	subjects subjectsID
	gone     bool // is about to be taken out
}

// bindings are those of one resource, in the order of their keys.
type bindings struct {
	spaces
	rows []binding
}

func (t *bindings) key(b *binding) cache.Key {
	return cache.Key{Namespace: t.spaces.names[b.space], Name: b.name}
}

// find returns where a key is, or would be.
func (t *bindings) find(k cache.Key) (int, bool) {
	return slices.BinarySearchFunc(t.rows, k, func(b binding, k cache.Key) int {
		if c := strings.Compare(t.spaces.names[b.space], k.Namespace); c != 0 {
			return c
		}
		return strings.Compare(b.name, k.Name)
	})
}

// spaceOf returns the space of a namespace. All bindings of one stand side by side.
func (t *bindings) spaceOf(namespace string) spaceID {
	if namespace == "" {
		return 0
	}
	i, _ := t.find(cache.Key{Namespace: namespace})
	if i < len(t.rows) && t.spaces.names[t.rows[i].space] == namespace {
		return t.rows[i].space
	}
	return t.spaces.add(namespace)
}

// insert takes in bindings that are not there, in the order of their keys. It moves
// what is behind them, once for all.
func (t *bindings) insert(come []binding) {
	if len(come) == 0 {
		return
	}
	rows := t.rows
	n, k := len(rows), len(come)
	if cap(rows) < n+k {
		grown := make([]binding, n, n+k+(n+k)/16)
		copy(grown, rows)
		rows = grown
	}
	rows = rows[:n+k]
	for at := n + k - 1; k > 0; at-- {
		if n > 0 && t.key(&rows[n-1]).Compare(t.key(&come[k-1])) > 0 {
			n--
			rows[at] = rows[n]
		} else {
			k--
			rows[at] = come[k]
		}
	}
	t.rows = rows
}

// removeGone takes out those that are marked, and calls each.
func (t *bindings) removeGone(each func(*binding)) {
	rows := slices.DeleteFunc(t.rows, func(b binding) bool {
		if b.gone {
			each(&b)
		}
		return b.gone
	})
	if cap(rows) > 2*len(rows)+64 {
		rows = slices.Clone(rows)
	}
	t.rows = rows
}

// spaceID stands for a namespace that has bindings, 0 for none: the whole cluster.
type spaceID uint32

// spaces are the namespaces of bindings.
type spaces struct {
	names []string
	count []uint32 // of bindings
	free  []spaceID
}

func newSpaces() spaces { return spaces{names: []string{""}, count: []uint32{0}} }

func (t *spaces) add(namespace string) spaceID {
	namespace = strings.Clone(namespace)
	if last := len(t.free) - 1; last >= 0 {
		id := t.free[last]
		t.free = t.free[:last]
		t.names[id] = namespace
		return id
	}
	t.names, t.count = append(t.names, namespace), append(t.count, 0)
	return spaceID(len(t.names) - 1)
}

// enter and leave count a binding.
func (t *spaces) enter(id spaceID) { t.count[id]++ }

func (t *spaces) leave(id spaceID) {
	if t.count[id]--; t.count[id] == 0 && id != 0 {
		t.names[id] = ""
		t.free = append(t.free, id)
	}
}

// compareKeys orders what was read as bindings are.
func compareKeys(a, b *parsed) int {
	return cmp.Or(strings.Compare(a.key.Namespace, b.key.Namespace), strings.Compare(a.key.Name, b.key.Name))
}
