package rbac

import (
	"slices"

	"github.com/informerd/informerd/cache"
)

// state is what is known of the roles and bindings of a cluster. Guarded by its
// Grants.
type state struct {
	roles    roles
	grantees grantees
	local    bindings // RoleBindings
	cluster  bindings // ClusterRoleBindings
	unread   uint64
	turn     uint64 // how many changes there were
}

func newState() *state {
	return &state{
		roles:    newRoles(),
		grantees: newGrantees(),
		local:    bindings{spaces: newSpaces()},
		cluster:  bindings{spaces: newSpaces()},
	}
}

func (s *state) bindingsOf(of source) *bindings {
	if of == roleBindings {
		return &s.local
	}
	return &s.cluster
}

// keys are those of all objects of a source.
func (s *state) keys(of source) (keys []cache.Key) {
	switch of {
	case roleBindings, clusterRoleBindings:
		t := s.bindingsOf(of)
		for i := range t.rows {
			keys = append(keys, t.key(&t.rows[i]))
		}
	default:
		for key, id := range s.roles.byKey {
			if s.roles.all[id].present && (key.Namespace != "") == (of == roleObjects) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// update is one change of the state.
type update struct {
	*state
	touched bool // something that somebody is granted is other than it was
}

// enter takes in objects of a source, each once and in place of those with the same
// keys, and takes out others.
func (u *update) enter(of source, come []*parsed, gone []cache.Key) {
	u.turn++
	for _, p := range come {
		if p.unread {
			u.unread++
		}
	}
	if of == clusterRoles || of == roleObjects {
		u.enterRoles(come, gone)
		return
	}
	t := u.bindingsOf(of)
	u.removeBindings(t, gone)
	u.enterBindings(t, come)
}

func (u *update) enterRoles(come []*parsed, gone []cache.Key) {
	var changed []roleID
	set := func(id roleID, present bool, rules *ruleset) {
		if u.roles.set(id, present, rules) {
			changed = append(changed, id)
		}
	}
	for _, key := range gone {
		if id, ok := u.roles.byKey[key]; ok {
			set(id, false, nil)
			u.roles.collect(id)
		}
	}
	for _, p := range come {
		set(u.roles.named(p.key), true, p.rules)
	}
	if len(changed) == 0 {
		return
	}
	u.touched = true
	for i := range u.grantees.all {
		g := &u.grantees.all[i]
		if slices.ContainsFunc(g.grants, func(g grant) bool { return u.roles.all[g.role].changed }) {
			g.changed = u.turn
		}
	}
	for _, id := range changed {
		u.roles.all[id].changed = false
	}
}

func (u *update) removeBindings(t *bindings, gone []cache.Key) {
	any := false
	for _, key := range gone {
		if i, ok := t.find(key); ok {
			t.rows[i].gone, any = true, true
		}
	}
	if any {
		t.removeGone(func(b *binding) {
			u.unlink(b)
			t.leave(b.space)
		})
	}
}

func (u *update) enterBindings(t *bindings, come []*parsed) {
	slices.SortFunc(come, compareKeys)
	var fresh []binding
	for _, p := range come {
		now := binding{name: p.key.Name}
		if at, ok := t.find(p.key); ok {
			now.space = t.rows[at].space
			u.relink(&now, &t.rows[at], p)
			t.rows[at] = now
			continue
		}
		if last := len(fresh) - 1; last >= 0 && t.spaces.names[fresh[last].space] == p.key.Namespace {
			now.space = fresh[last].space
		} else {
			now.space = t.spaceOf(p.key.Namespace)
		}
		u.resolve(&now, p)
		u.grant(&now)
		t.enter(now.space)
		fresh = append(fresh, now)
	}
	t.insert(fresh)
}

// relink grants what a binding does in place of what it did before.
func (u *update) relink(now, before *binding, p *parsed) {
	u.resolve(now, p)
	if now.role == before.role && now.subjects == before.subjects {
		u.grantees.drop(now.subjects)
		return
	}
	u.grant(now) // first: what both have in common is kept
	u.unlink(before)
}

// resolve finds the role and the subjects of a binding.
func (u *update) resolve(b *binding, p *parsed) {
	b.role = u.roles.named(p.role)
	ids := make([]granteeID, len(p.subjects))
	for i, w := range p.subjects {
		ids[i] = u.grantees.named(w, u.turn)
	}
	b.subjects = u.grantees.hold(ids)
}

// grant gives what a binding grants to whom it names.
func (u *update) grant(b *binding) {
	u.roles.bind(b.role)
	u.touch(b)
	for _, id := range u.grantees.of(b.subjects) {
		u.grantees.give(id, grant{b.space, b.role})
	}
}

func (u *update) unlink(b *binding) {
	u.touch(b)
	for _, id := range u.grantees.of(b.subjects) {
		u.grantees.take(id, grant{b.space, b.role})
	}
	u.grantees.drop(b.subjects)
	u.roles.release(b.role)
}

// touch notes that something else is granted to whom a binding names, if it grants
// anything.
func (u *update) touch(b *binding) {
	if u.roles.all[b.role].rules == nil {
		return
	}
	for _, id := range u.grantees.of(b.subjects) {
		u.grantees.all[id].changed, u.touched = u.turn, true
	}
}
