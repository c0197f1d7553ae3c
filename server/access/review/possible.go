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

const (
	// maxQuestion bounds all texts of a question together. Selectors may be long, names
	// may not.
	maxQuestion = 8 << 10
	// maxName is that of the API server.
	maxName = 253
)

// impossible is why what is asked about cannot be, "" if it can.
func (q *question) impossible() string {
	a := &q.Attributes
	length := len(q.path)
	for _, text := range []string{a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name, a.LabelSelector, a.FieldSelector} {
		length += len(text)
	}
	switch {
	case length > maxQuestion:
		return "what is asked about is longer than informerd asks the API server about"
	case a.Namespace != "" && !isNamespace(a.Namespace):
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
		if (namespace == "" || isNamespace(namespace)) && len(p.Name) <= maxName {
			places = append(places, p)
		}
	}
	possible := !named.Only || len(places) > 0 || len(named.Places) == 0
	named.Places = places
	return named, possible
}
