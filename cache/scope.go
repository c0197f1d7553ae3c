package cache

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	all        bool
	namespaces map[string]struct{} // seen whole
	// names are seen one by one, by namespace. Those of "" are names in every
	// namespace, and of objects at cluster scope: a ClusterRole with resourceNames
	// that is bound for the whole cluster grants just that.
	names  map[string]map[string]struct{}
	digest string // of what NewScope made
}

// WholeScope sees every object.
func WholeScope() Scope { return Scope{all: true} }

// NewScope sees the objects of namespaces, and those that are named: names are by
// namespace, "" for every namespace and for cluster scope.
func NewScope(namespaces []string, names map[string][]string) Scope {
	var s Scope
	for _, ns := range namespaces {
		if s.namespaces == nil {
			s.namespaces = make(map[string]struct{}, len(namespaces))
		}
		s.namespaces[ns] = struct{}{}
	}
	for ns, list := range names {
		for _, name := range list {
			if s.names == nil {
				s.names = map[string]map[string]struct{}{}
			}
			if s.names[ns] == nil {
				s.names[ns] = make(map[string]struct{}, len(list))
			}
			s.names[ns][name] = struct{}{}
		}
	}
	s.shorten()
	s.digest = s.sum()
	return s
}

// shorten leaves out names of what is seen anyway.
func (s *Scope) shorten() {
	for ns, list := range s.names {
		_, whole := s.namespaces[ns]
		if ns == "" {
			whole = false // elsewhere they are names, too
		}
		maps.DeleteFunc(list, func(name string, _ struct{}) bool {
			_, everywhere := s.names[""][name]
			return whole || ns != "" && everywhere
		})
		if len(list) == 0 {
			delete(s.names, ns)
		}
	}
}

// Whole reports whether every object is seen, those included that are yet to come.
func (s Scope) Whole() bool { return s.all }

// Empty reports whether nothing is seen, whatever there is.
func (s Scope) Empty() bool { return !s.all && len(s.namespaces) == 0 && len(s.names) == 0 }

// Namespace reports whether every object of a namespace is seen. That of objects at
// cluster scope is "".
func (s Scope) Namespace(namespace string) bool {
	_, ok := s.namespaces[namespace]
	return s.all || ok
}

// Sees reports whether an object is seen, whether there is one or not.
func (s Scope) Sees(k Key) bool {
	if s.Namespace(k.Namespace) {
		return true
	}
	if len(s.names) == 0 {
		return false
	}
	if _, ok := s.names[k.Namespace][k.Name]; ok {
		return true
	}
	_, ok := s.names[""][k.Name]
	return ok
}

// Touches reports whether something may be seen in a namespace.
func (s Scope) Touches(namespace string) bool {
	return s.Namespace(namespace) || len(s.names[namespace]) > 0 || len(s.names[""]) > 0
}

// Namespaces are those seen whole, in order; none of a Whole one.
func (s Scope) Namespaces() []string { return slices.Sorted(maps.Keys(s.namespaces)) }

// Names are those seen one by one, by namespace, each list in order.
func (s Scope) Names() map[string][]string {
	all := make(map[string][]string, len(s.names))
	for ns, names := range s.names {
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
	for ns := range s.namespaces {
		if _, ok := o.namespaces[ns]; ok {
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
	for ns, list := range s.names {
		for name := range list {
			_, everywhere := o.names[""][name]
			switch {
			case ns != "" && o.Sees(Key{ns, name}), ns == "" && everywhere:
				names[ns] = append(names[ns], name)
			case ns == "":
				for other := range o.namespaces {
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
	all := slices.AppendSeq(slices.Collect(maps.Keys(s.names[namespace])), maps.Keys(s.names[""]))
	return NewScope(nil, map[string][]string{namespace: all})
}

// Digest is the same for scopes that see the same, and no others.
func (s Scope) Digest() string {
	switch {
	case s.all:
		return "*"
	case s.digest != "":
		return s.digest
	}
	return s.sum()
}

// sum is of parts that each say how long they are: nobody checks the resourceNames of a
// role, so that a name may look like the end of one and the beginning of the next.
func (s Scope) sum() string {
	var b strings.Builder
	part := func(kind byte, text string) { fmt.Fprintf(&b, "%c%d:%s", kind, len(text), text) }
	for _, ns := range s.Namespaces() {
		part('s', ns)
	}
	for _, ns := range slices.Sorted(maps.Keys(s.names)) {
		part('n', ns)
		for _, name := range slices.Sorted(maps.Keys(s.names[ns])) {
			part('o', name)
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
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
