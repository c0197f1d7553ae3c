package review

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// Clients choose what is asked about, and an API server takes any text for a namespace.
// Nothing is in one that it would not create, so that nobody has to be asked about it.

// isNamespace reports whether there may be a namespace of a name.
func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// impossible is why what is asked about cannot be, "" if it can.
func impossible(a access.Attributes) string {
	if a.Namespace != "" && !isNamespace(a.Namespace) {
		return "there cannot be a namespace of that name"
	}
	return ""
}

// inItself: see probes.ofNamespaces.
func inItself(verb cache.Verb, r schema.GroupResource) bool {
	return verb == cache.Get && r.Group == "" && r.Resource == "namespaces"
}

// thatMayBe is named without the places that cannot be. It is false if the answer is
// about these alone: then there is nothing to be seen.
func thatMayBe(named access.Named, verb cache.Verb, r schema.GroupResource) (access.Named, bool) {
	var places []access.Place
	for _, p := range named.Places {
		namespace := p.Namespace
		if inItself(verb, r) && p.Name != "" {
			namespace = p.Name
		}
		if namespace == "" || isNamespace(namespace) {
			places = append(places, p)
		}
	}
	possible := !named.Only || len(places) > 0 || len(named.Places) == 0
	named.Places = places
	return named, possible
}
