package kubeapi

import (
	"bytes"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/informerd/informerd/cache"
)

// bareStarts are what the JSON of an object begins with and an item of a list of its kind
// does not, in both orders; none where items are whole objects.
//
// The API server encodes the items of a built-in kind from Go types that say their kind
// once, in the list; those of custom resources it keeps as they are, with apiVersion and
// kind. What an aggregated API server does is not known, and its items stay whole.
func bareStarts(spec cache.Spec) [][]byte {
	if !builtIn(spec.GVR.Group) || spec.Aggregated || spec.CRDUID != "" {
		return nil
	}
	kind, apiVersion := `"kind":"`+spec.Kind+`",`, `"apiVersion":"`+spec.GVR.GroupVersion().String()+`",`
	return [][]byte{[]byte("{" + kind + apiVersion), []byte("{" + apiVersion + kind)}
}

// builtIn reports whether the API server itself has Go types for a group.
func builtIn(group string) bool {
	switch group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io": // of modules that client-go does not need
		return true
	}
	return scheme.Scheme.IsGroupRegistered(group)
}

// cutStart takes the start that it has out of the object that begins at from.
func cutStart(dst []byte, from int, starts [][]byte) []byte {
	for _, start := range starts {
		if bytes.HasPrefix(dst[from:], start) {
			rest := copy(dst[from+1:], dst[from+len(start):])
			return dst[:from+1+rest]
		}
	}
	return dst
}
