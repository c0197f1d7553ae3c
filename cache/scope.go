package cache

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verb is what somebody may do with objects, in the words of Kubernetes' RBAC. A
// copy knows reads only.
type Verb string

// The verbs of reading. Whatever shows that an object exists, or how many there
// are, is a list of it.
const (
	Get   Verb = "get"
	List  Verb = "list"
	Watch Verb = "watch"
)

// Verbs are all there are.
var Verbs = []Verb{Get, List, Watch}

// Scope is which objects of one resource somebody may see. The zero Scope sees
// nothing. It is immutable, and shared by all who may see the same.
type Scope struct {
	all bool
	// part is what is seen where that is not all; nil: nothing.
	part *part
}

// WholeScope sees every object.
func WholeScope() Scope { return Scope{all: true} }

// NewScope sees the objects of namespaces, and those that are named: names are by
// namespace, "" for every namespace and for cluster scope.
func NewScope(namespaces []string, names map[string][]string) Scope {
	p := newPart(namespaces, names)
	if p.empty() {
		return Scope{}
	}
	return Scope{part: parts.share(p)}
}

// places is the part, one of nothing instead of none.
func (s Scope) places() *part {
	if s.part == nil {
		return nothing
	}
	return s.part
}

// Whole reports whether every object is seen, those included that are yet to come.
func (s Scope) Whole() bool { return s.all }

// Empty reports whether nothing is seen, whatever there is.
func (s Scope) Empty() bool { return !s.all && s.part == nil }

// Namespace reports whether every object of a namespace is seen. That of objects at
// cluster scope is "".
func (s Scope) Namespace(namespace string) bool {
	return s.all || s.places().whole(namespace)
}

// Sees reports whether an object is seen, whether there is one or not.
func (s Scope) Sees(k Key) bool {
	return s.all || s.places().sees(k)
}

// Touches reports whether something may be seen in a namespace.
func (s Scope) Touches(namespace string) bool {
	names := s.places().names
	return s.Namespace(namespace) || len(names[namespace]) > 0 || len(names[""]) > 0
}

// Namespaces are those seen whole, in order; none of a Whole one.
func (s Scope) Namespaces() []string { return slices.Sorted(maps.Keys(s.places().namespaces)) }

// Names are those seen one by one, by namespace, each list in order.
func (s Scope) Names() map[string][]string {
	all := make(map[string][]string, len(s.places().names))
	for ns, names := range s.places().names {
		all[ns] = slices.Sorted(maps.Keys(names))
	}
	return all
}

// And sees what both see.
func (s Scope) And(o Scope) Scope {
	switch {
	case s.all || !o.all && s.Digest() == o.Digest():
		return o
	case o.all:
		return s
	}
	var namespaces []string
	for ns := range s.places().namespaces {
		if o.Namespace(ns) {
			namespaces = append(namespaces, ns)
		}
	}
	names := map[string][]string{}
	s.addNames(names, o)
	o.addNames(names, s)
	return NewScope(namespaces, names)
}

// addNames adds to names those of s that o sees, too.
func (s Scope) addNames(names map[string][]string, o Scope) {
	for ns, list := range s.places().names {
		for name := range list {
			_, everywhere := o.places().names[""][name]
			switch {
			case ns != "" && o.Sees(Key{ns, name}), ns == "" && everywhere:
				names[ns] = append(names[ns], name)
			case ns == "":
				for other := range o.places().namespaces {
					names[other] = append(names[other], name)
				}
			}
		}
	}
}

// In is what is seen of one namespace.
func (s Scope) In(namespace string) Scope {
	if s.Namespace(namespace) {
		return NewScope([]string{namespace}, nil)
	}
	names := s.places().names
	all := slices.AppendSeq(slices.Collect(maps.Keys(names[namespace])), maps.Keys(names[""]))
	return NewScope(nil, map[string][]string{namespace: all})
}

// Digest is the same for scopes that see the same, and no others.
func (s Scope) Digest() string {
	if s.all {
		return "*"
	}
	return s.places().digest
}

// Sight is what somebody may see of one cluster: a Scope of each resource, in all
// its versions. The zero Sight sees nothing. It is immutable.
type Sight struct {
	all    bool
	scopes map[schema.GroupResource]Scope
}

// WholeSight sees everything.
func WholeSight() Sight { return Sight{all: true} }

// NewSight sees what scopes say, which must not be modified any more.
func NewSight(scopes map[schema.GroupResource]Scope) Sight { return Sight{scopes: scopes} }

// Of is the Scope of one resource.
func (s Sight) Of(r schema.GroupResource) Scope {
	if s.all {
		return WholeScope()
	}
	return s.scopes[r]
}

// Sees reports whether one object is seen, whether there is one or not.
func (s Sight) Sees(r schema.GroupResource, k Key) bool { return s.Of(r).Sees(k) }
