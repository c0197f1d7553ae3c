package rbac

import (
	"sync"
	"weak"
)

// known are the Rights of users who asked lately. Users with the same grants have
// the same Rights. Those that nobody has any more, since theirs have changed, are gone:
// they may list thousands of namespaces.
type known struct {
	mu     sync.Mutex // guards all below; nothing is taken under it
	users  recent[digest, held]
	shared recent[digest, weak.Pointer[Rights]]
}

// held are the Rights of one user.
type held struct {
	rights *Rights
	as     standing
}

// standing is as of which changes the rights of a user are. Whatever changes them
// makes another one: a grantee that changes, or becomes one, has a newer turn than
// all before, and one that has nothing any more is not counted.
type standing struct {
	grantees int
	changed  uint64
}

func newKnown(users int) known {
	return known{users: newRecent[digest, held](users), shared: newRecent[digest, weak.Pointer[Rights]](users)}
}

func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users.clear()
	k.shared.clear()
}

// rights are those of a user in a state that its caller keeps from being changed.
func (k *known) rights(s *state, u User) *Rights {
	ids, masters := s.identify(u)
	as := s.standing(ids)
	name := userKey(u)
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.users.get(name); ok && h.as == as {
		return h.rights
	}
	r := s.rights(ids, masters)
	shared, _ := k.shared.get(r.digest)
	if same := shared.Value(); same != nil {
		r = same
	} else {
		k.shared.put(r.digest, weak.Make(r))
	}
	k.users.put(name, held{r, as})
	return r
}

// userKey is another one for each user: whoever may choose a name cannot make it
// look like another name and a group. It is short: they may choose a long one, too.
func userKey(u User) digest {
	var key content
	key.text(u.GetName())
	for _, g := range u.GetGroups() {
		key.text(g)
	}
	return key.digest()
}

// identify finds whom bindings may name a user by.
func (s *state) identify(u User) (ids []granteeID, masters bool) {
	if id, ok := s.grantees.ids[who{name: u.GetName()}]; ok {
		ids = append(ids, id)
	}
	for _, g := range u.GetGroups() {
		masters = masters || g == mastersGroup
		if id, ok := s.grantees.ids[who{name: g, group: true}]; ok {
			ids = append(ids, id)
		}
	}
	return ids, masters
}

func (s *state) standing(ids []granteeID) standing {
	as := standing{grantees: len(ids)}
	for _, id := range ids {
		as.changed = max(as.changed, s.grantees.all[id].changed)
	}
	return as
}

// recent is a map that forgets what nobody asked for lately: it holds limit entries
// at least, and twice as many at most.
type recent[K comparable, V any] struct {
	limit      int
	young, old map[K]V
}

func newRecent[K comparable, V any](limit int) recent[K, V] {
	return recent[K, V]{limit: limit, young: map[K]V{}}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	if v, ok := r.young[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	if ok {
		r.put(key, v)
	}
	return v, ok
}

func (r *recent[K, V]) put(key K, v V) {
	if _, ok := r.young[key]; !ok && len(r.young) >= r.limit {
		r.old, r.young = r.young, map[K]V{}
	}
	r.young[key] = v
	delete(r.old, key) // what it held before may be large
}

func (r *recent[K, V]) clear() { r.young, r.old = map[K]V{}, nil }
