package rbac

import (
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
)

// roleID is the position of a role in its table. That of no role is 0.
type roleID uint32

// role is a Role, or a ClusterRole, whose key has no namespace. It is known as long
// as there is one, or a binding to it.
type role struct {
	key      cache.Key
	rules    *ruleset // nil grants nothing: there is no such role, or it has no rules
	bindings uint32   // to it
	present  bool
	changed  bool // in this update, and bound
}

// roles are those of a cluster, and their rules, which many of them have alike.
type roles struct {
	all   []role
	free  []roleID
	byKey map[cache.Key]roleID
	sets  map[digest]*sharedRules
	// words are the verbs, groups and resources that occur again and again.
	words map[string]string
}

type sharedRules struct {
	*ruleset
	roles int
}

// maxWords bounds what is remembered of words; those beyond are held as often as
// they occur.
const maxWords = 4096

func newRoles() roles {
	return roles{all: make([]role, 1), byKey: map[cache.Key]roleID{}, sets: map[digest]*sharedRules{}, words: map[string]string{}}
}

// named returns the role of a key, new if there is none, and 0 without a name.
func (t *roles) named(key cache.Key) roleID {
	if key.Name == "" {
		return 0
	}
	id, ok := t.byKey[key]
	if ok {
		return id
	}
	key = cache.Key{Namespace: strings.Clone(key.Namespace), Name: strings.Clone(key.Name)}
	if last := len(t.free) - 1; last >= 0 {
		id, t.free = t.free[last], t.free[:last]
	} else {
		t.all = append(t.all, role{})
		id = roleID(len(t.all) - 1)
	}
	t.all[id] = role{key: key}
	t.byKey[key] = id
	return id
}

// collect forgets a role that neither is there nor bound.
func (t *roles) collect(id roleID) {
	r := &t.all[id]
	if id == 0 || r.present || r.bindings > 0 {
		return
	}
	delete(t.byKey, r.key)
	*r = role{}
	t.free = append(t.free, id)
}

// bind and release count a binding to a role.
func (t *roles) bind(id roleID) { t.all[id].bindings++ }

func (t *roles) release(id roleID) {
	t.all[id].bindings--
	t.collect(id)
}

// set gives a role rules, and reports whether bindings grant something else now.
func (t *roles) set(id roleID, present bool, rules *ruleset) (changed bool) {
	r := &t.all[id]
	r.present = present
	if sameRules(r.rules, rules) {
		return false
	}
	before := r.rules
	r.rules = t.share(rules)
	t.unshare(before)
	if r.bindings > 0 {
		r.changed, changed = true, true
	}
	return changed
}

func sameRules(a, b *ruleset) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.digest == b.digest
}

// share returns the one ruleset that all with its content have.
func (t *roles) share(rules *ruleset) *ruleset {
	if rules == nil {
		return nil
	}
	s, ok := t.sets[rules.digest]
	if !ok {
		s = &sharedRules{ruleset: t.compact(rules)}
		t.sets[rules.digest] = s
	}
	s.roles++
	return s.ruleset
}

func (t *roles) unshare(rules *ruleset) {
	if rules == nil {
		return
	}
	s := t.sets[rules.digest]
	if s.roles--; s.roles == 0 {
		delete(t.sets, rules.digest)
	}
}

// compact returns a ruleset with the same content in less memory.
func (t *roles) compact(from *ruleset) *ruleset {
	rules := slices.Clone(from.rules)
	for i := range rules {
		r := &rules[i]
		r.Verbs, r.APIGroups, r.Resources = t.shareWords(r.Verbs), t.shareWords(r.APIGroups), t.shareWords(r.Resources)
		r.ResourceNames, r.NonResourceURLs = slices.Clone(r.ResourceNames), slices.Clone(r.NonResourceURLs)
	}
	return &ruleset{rules: rules, digest: from.digest}
}

func (t *roles) shareWords(list []string) []string {
	list = slices.Clone(list)
	for i, word := range list {
		known, ok := t.words[word]
		switch {
		case ok:
			list[i] = known
		case len(t.words) < maxWords:
			t.words[word] = word
		}
	}
	return list
}
