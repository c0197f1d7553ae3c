package rbac

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/informerd/informerd/cache"
)

// digest tells contents apart.
type digest [16]byte

// ruleset is the rules of a role. It is immutable.
type ruleset struct {
	rules  []rbacv1.PolicyRule
	digest digest
}

// newRuleset returns nil of no rules: they grant nothing, as if there were no role.
func newRuleset(rules []rbacv1.PolicyRule) *ruleset {
	if len(rules) == 0 {
		return nil
	}
	var all content
	for i := range rules {
		r := &rules[i]
		for _, list := range [...][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
			all.count(len(list))
			for _, s := range list {
				all.text(s)
			}
		}
	}
	return &ruleset{rules: rules, digest: all.digest()}
}

// content is what a digest is made of. Its parts cannot be taken for others, since
// the length of each is before it.
type content []byte

func (c *content) count(n int) { *c = binary.AppendUvarint(*c, uint64(n)) }

func (c *content) text(s string) {
	c.count(len(s))
	*c = append(*c, s...)
}

func (c content) digest() digest {
	sum := sha256.Sum256(c)
	return digest(sum[:16])
}

// target is what a rule is asked about, but for the name of an object.
type target struct {
	verb, group string
	resource    string // with its subresource: pods/log
	subresource string
}

func newTarget(verb, group, resource, subresource string) target {
	if subresource != "" {
		resource += "/" + subresource
	}
	return target{verb, group, resource, subresource}
}

// matches reports whether a rule is about a target, whatever objects it names.
func matches(r *rbacv1.PolicyRule, t *target) bool {
	if !listed(r.Verbs, t.verb) || !listed(r.APIGroups, t.group) {
		return false
	}
	for _, of := range r.Resources {
		if of == rbacv1.ResourceAll || of == t.resource {
			return true
		}
		if sub, ok := strings.CutPrefix(of, "*/"); ok && t.subresource != "" && sub == t.subresource {
			return true
		}
	}
	return false
}

// listed reports whether a list of verbs or groups has one, or all.
func listed(list []string, word string) bool {
	for _, s := range list {
		if s == "*" || s == word {
			return true
		}
	}
	return false
}

// allows reports whether a request is granted. Its name is empty for those about no
// object in particular.
func (s *ruleset) allows(t *target, name string) bool {
	for i := range s.rules {
		r := &s.rules[i]
		if matches(r, t) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name)) {
			return true
		}
	}
	return false
}

// reach is which objects of a resource a ruleset grants.
type reach struct {
	all     bool
	unnamed bool     // requests that name no object, which a list is
	names   []string // of single objects
}

func (s *ruleset) reach(t *target) (r reach) {
	for i := range s.rules {
		rule := &s.rules[i]
		if !matches(rule, t) {
			continue
		}
		if len(rule.ResourceNames) == 0 {
			return reach{all: true}
		}
		for _, name := range rule.ResourceNames {
			if name == "" {
				r.unnamed = true
			} else {
				r.names = append(r.names, name)
			}
		}
	}
	return r
}

// whole reports whether all objects are granted with a verb: those of a list that
// names none are.
func (r *reach) whole(verb string) bool {
	return r.all || r.unnamed && (verb == string(cache.List) || verb == string(cache.Watch))
}

// allowsPath reports whether a request is granted that is for no resource.
func (s *ruleset) allowsPath(verb, path string) bool {
	for i := range s.rules {
		r := &s.rules[i]
		if listed(r.Verbs, verb) && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return covers(url, path) }) {
			return true
		}
	}
	return false
}

// covers reports whether a nonResourceURL, which may end in stars, stands for a path.
func covers(url, path string) bool {
	return url == path || strings.HasSuffix(url, "*") && strings.HasPrefix(path, strings.TrimRight(url, "*"))
}
