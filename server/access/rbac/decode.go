package rbac

import (
	"cmp"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/json"

	"github.com/informerd/informerd/cache"
)

// parsed is what is read out of a role or a binding.
type parsed struct {
	key cache.Key
	// unread says that it could not be read. There is nothing else then.
	unread bool
	rules  *ruleset // of a role

	role     cache.Key // that a binding is to; no name: to none
	subjects []who     // of a binding, each once, in order
}

// who is a user or a group. A ServiceAccount is the user that it is called as.
type who struct {
	name  string
	group bool
}

func (w who) compare(o who) int {
	switch {
	case w.group == o.group:
		return cmp.Compare(w.name, o.name)
	case w.group:
		return 1
	default:
		return -1
	}
}

// parse never fails: what cannot be read grants nothing.
func parse(s source, o *cache.Object) *parsed {
	p := &parsed{key: o.Key()}
	raw, err := o.JSON()
	if err == nil {
		err = p.read(s, raw)
	}
	if err != nil {
		return &parsed{key: p.key, unread: true}
	}
	return p
}

var errScope = errors.New("the object is in a namespace and should not be, or is in none")

func (p *parsed) read(s source, raw []byte) error {
	local := s == roleObjects || s == roleBindings
	if local != (p.key.Namespace != "") {
		return errScope // a Role without a namespace is no ClusterRole
	}
	if s == clusterRoles || s == roleObjects {
		return p.readRole(raw)
	}
	return p.readBinding(raw)
}

func (p *parsed) readRole(raw []byte) error {
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if err := decode(raw, &role); err != nil {
		return err
	}
	p.rules = newRuleset(role.Rules)
	return nil
}

func (p *parsed) readBinding(raw []byte) error {
	var binding struct {
		Subjects []rbacv1.Subject `json:"subjects"`
		RoleRef  rbacv1.RoleRef   `json:"roleRef"`
	}
	if err := decode(raw, &binding); err != nil {
		return err
	}
	switch ref := binding.RoleRef; {
	case ref.Kind == "ClusterRole":
		p.role = cache.Key{Name: ref.Name}
	case ref.Kind == "Role" && p.key.Namespace != "":
		p.role = cache.Key{Namespace: p.key.Namespace, Name: ref.Name}
	}
	for i := range binding.Subjects {
		if w, ok := subjectOf(&binding.Subjects[i], p.key.Namespace); ok {
			p.subjects = append(p.subjects, w)
		}
	}
	slices.SortFunc(p.subjects, who.compare)
	p.subjects = slices.Compact(p.subjects)
	return nil
}

// decode refuses a field that is there twice: the second would be laid over the
// first.
func decode(raw []byte, into any) error {
	strict, err := json.UnmarshalStrict(raw, into, json.DisallowDuplicateFields)
	return errors.Join(append(strict, err)...)
}

// subjectOf is whom a binding in a namespace names. A ServiceAccount without a
// namespace is one of the binding's.
func subjectOf(s *rbacv1.Subject, namespace string) (who, bool) {
	if s.Name == "" {
		return who{}, false
	}
	switch s.Kind {
	case rbacv1.UserKind:
		return who{name: s.Name}, true
	case rbacv1.GroupKind:
		return who{name: s.Name, group: true}, true
	case rbacv1.ServiceAccountKind:
		namespace = cmp.Or(s.Namespace, namespace)
		return who{name: "system:serviceaccount:" + namespace + ":" + s.Name}, namespace != ""
	default:
		return who{}, false
	}
}
