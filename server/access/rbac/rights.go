package rbac

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// mastersGroup may do everything. Kubernetes asks no authorizer about it.
const mastersGroup = "system:masters"

// Rights are what a user may do in one cluster, as of one moment. All users who are
// granted the same share them. They are safe for concurrent use.
type Rights struct {
	masters bool
	cluster []*ruleset // granted everywhere, in the order of digests
	local   []local    // likewise
	digest  digest
	name    string // of the digest

	mu     sync.Mutex // guards all below
	scopes recent[question, cache.Scope]
	// alike are Scopes of namespaces, by the positions in local that grant them: most
	// resources are granted by the same ones.
	alike recent[string, cache.Scope]
}

// local is a ruleset that is granted in namespaces, each of them once, in order.
type local struct {
	*ruleset
	namespaces []string
}

type question struct {
	verb        cache.Verb
	resource    schema.GroupResource
	subresource string
}

const (
	// maxScopes bounds what is kept for the questions that were asked: a client may ask
	// for any subresource. What nobody asked for lately makes room, since somebody who
	// fills it must not slow down all who share the Rights.
	maxScopes = 4096
	// maxQuestion is the length of a question above which it is not kept: there are no
	// such names.
	maxQuestion = 1024
)

func (q *question) length() int {
	return len(q.verb) + len(q.resource.Group) + len(q.resource.Resource) + len(q.subresource)
}

// rights puts together what some grantees are granted.
func (s *state) rights(ids []granteeID, masters bool) *Rights {
	r := &Rights{masters: masters, scopes: newRecent[question, cache.Scope](maxScopes / 2), alike: newRecent[string, cache.Scope](maxScopes / 2)}
	found := map[*ruleset]int{} // its position in local
	for _, id := range ids {
		for _, g := range s.grantees.all[id].grants {
			rules := s.roles.all[g.role].rules
			if rules == nil {
				continue
			}
			if g.space == 0 {
				r.cluster = append(r.cluster, rules)
				continue
			}
			at, ok := found[rules]
			if !ok {
				at = len(r.local)
				r.local, found[rules] = append(r.local, local{ruleset: rules}), at
			}
			l := &r.local[at]
			l.namespaces = append(l.namespaces, s.local.spaces.names[g.space])
		}
	}
	r.order()
	r.digest = r.sum()
	r.name = base64.RawURLEncoding.EncodeToString(r.digest[:])
	return r
}

// order makes equal rights look the same.
func (r *Rights) order() {
	slices.SortFunc(r.cluster, (*ruleset).compare)
	r.cluster = slices.Compact(r.cluster)
	slices.SortFunc(r.local, func(a, b local) int { return a.compare(b.ruleset) })
	for i := range r.local {
		l := &r.local[i]
		slices.Sort(l.namespaces)
		l.namespaces = slices.Clip(slices.Compact(l.namespaces))
	}
}

func (s *ruleset) compare(o *ruleset) int { return bytes.Compare(s.digest[:], o.digest[:]) }

func (r *Rights) sum() digest {
	var all content
	if r.masters {
		all.text(mastersGroup)
	} else {
		all.text("")
	}
	all.count(len(r.cluster))
	for _, rules := range r.cluster {
		all = append(all, rules.digest[:]...)
	}
	for i := range r.local {
		l := &r.local[i]
		all = append(all, l.digest[:]...)
		all.count(len(l.namespaces))
		for _, ns := range l.namespaces {
			all.text(ns)
		}
	}
	return all.digest()
}

// Digest is the same for users who are granted the same, by rules and where these
// hold, and no others. Rights that were granted by other rules to the same effect
// have another one.
func (r *Rights) Digest() string { return r.name }

// Generation is a number in place of the Digest: another one where that is another.
func (r *Rights) Generation() uint64 { return binary.LittleEndian.Uint64(r.digest[:]) }

// Scope is which objects of a resource, or their subresource, are granted with a
// verb: those a request with the verb that names the object may be about, and with
// List and Watch those of a namespace, or of all, where a request may be about them
// together. A Namespace is in the namespace that it is.
func (r *Rights) Scope(verb cache.Verb, resource schema.GroupResource, subresource string) cache.Scope {
	if r.masters {
		return cache.WholeScope()
	}
	q := question{verb, resource, subresource}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.scopes.get(q)
	if ok {
		return s
	}
	t := newTarget(string(verb), resource.Group, resource.Resource, subresource)
	if resource == namespacesResource {
		s = r.namespaceObjects(&t)
	} else {
		s = r.objects(&t)
	}
	if q.length() <= maxQuestion {
		r.scopes.put(q, s)
	}
	return s
}

// everywhere is what is granted in the whole cluster: all, or names.
func (r *Rights) everywhere(t *target) (all bool, names []string) {
	for _, rules := range r.cluster {
		reach := rules.reach(t)
		if reach.whole(t.verb) {
			return true, nil
		}
		names = append(names, reach.names...)
	}
	return false, names
}

func (r *Rights) objects(t *target) cache.Scope {
	all, names := r.everywhere(t)
	if all {
		return cache.WholeScope()
	}
	byNamespace := map[string][]string{}
	if len(names) > 0 {
		byNamespace[""] = names
	}
	var whole []int
	for i := range r.local {
		l := &r.local[i]
		reach := l.reach(t)
		if reach.whole(t.verb) {
			whole = append(whole, i)
			continue
		}
		if len(reach.names) == 0 {
			continue
		}
		for _, ns := range l.namespaces {
			byNamespace[ns] = append(byNamespace[ns], reach.names...)
		}
	}
	if len(byNamespace) > 0 {
		return cache.NewScope(r.namespacesOf(whole), byNamespace)
	}
	return r.namespacesScope(whole)
}

// namespacesScope is of the namespaces that some of local are granted in.
func (r *Rights) namespacesScope(positions []int) cache.Scope {
	var key []byte
	for _, i := range positions {
		key = binary.AppendUvarint(key, uint64(i))
	}
	s, ok := r.alike.get(string(key))
	if !ok {
		s = cache.NewScope(r.namespacesOf(positions), nil)
		r.alike.put(string(key), s)
	}
	return s
}

func (r *Rights) namespacesOf(positions []int) (all []string) {
	for _, i := range positions {
		all = append(all, r.local[i].namespaces...)
	}
	return all
}

var namespacesResource = schema.GroupResource{Resource: "namespaces"}

// namespaceObjects is the Scope of the Namespaces themselves. The API server takes
// a request for one to be in it, so that a RoleBinding may grant it; all others are
// of no namespace, and no RoleBinding grants them.
func (r *Rights) namespaceObjects(t *target) cache.Scope {
	all, names := r.everywhere(t)
	if all {
		return cache.WholeScope()
	}
	for i := range r.local {
		l := &r.local[i]
		reach := l.reach(t)
		for _, ns := range l.namespaces {
			if reach.all || slices.Contains(reach.names, ns) {
				names = append(names, ns)
			}
		}
	}
	if len(names) == 0 {
		return cache.Scope{}
	}
	return cache.NewScope(nil, map[string][]string{"": names})
}

// Attributes are those of one request. Namespace and Name are empty where it is
// about none in particular. A request for one Namespace is in that one: it has it
// as both.
type Attributes struct {
	Verb, Group, Resource, Subresource string
	Namespace, Name                    string
}

// Allowed reports whether a request is granted.
func (r *Rights) Allowed(a Attributes) bool {
	if r.masters {
		return true
	}
	t := newTarget(a.Verb, a.Group, a.Resource, a.Subresource)
	for _, rules := range r.cluster {
		if rules.allows(&t, a.Name) {
			return true
		}
	}
	for i := range r.local {
		if l := &r.local[i]; l.holds(a.Namespace) && l.allows(&t, a.Name) {
			return true
		}
	}
	return false
}

func (l *local) holds(namespace string) bool {
	_, ok := slices.BinarySearch(l.namespaces, namespace)
	return ok
}

// Path reports whether a request is granted that is for no resource, like
// /metrics. What is granted in a namespace says nothing of these.
func (r *Rights) Path(verb, path string) bool {
	return r.masters || slices.ContainsFunc(r.cluster, func(s *ruleset) bool { return s.allowsPath(verb, path) })
}

// Rules are those that hold in a namespace, as a SelfSubjectRulesReview tells them.
// They must not be modified. They do not say what the group system:masters may do.
func (r *Rights) Rules(namespace string) ([]authorizationv1.ResourceRule, []authorizationv1.NonResourceRule) {
	var resources []authorizationv1.ResourceRule
	var others []authorizationv1.NonResourceRule
	for _, set := range r.held(namespace) {
		for i := range set.rules {
			rule := &set.rules[i]
			if len(rule.Resources) > 0 {
				resources = append(resources, authorizationv1.ResourceRule{
					Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
				})
			}
			if len(rule.NonResourceURLs) > 0 {
				others = append(others, authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
			}
		}
	}
	return resources, others
}

// held are the rulesets that hold in a namespace, each once.
func (r *Rights) held(namespace string) []*ruleset {
	all := slices.Clone(r.cluster)
	for i := range r.local {
		if l := &r.local[i]; l.holds(namespace) && !slices.Contains(r.cluster, l.ruleset) {
			all = append(all, l.ruleset)
		}
	}
	return all
}
