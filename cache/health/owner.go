package health

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// owner is the controller that an object names as its own; the zero one: none.
type owner struct {
	kind      schema.GroupKind
	name, uid string
}

// owner is who made the object and looks after it.
func (o *object) owner() (found owner) {
	elements(o.owners, func(v value) bool {
		if !isTrue(v.Get("controller")) {
			return true
		}
		group, _, ok := strings.Cut(text(v.Get("apiVersion")), "/")
		if !ok {
			group = ""
		}
		found = owner{schema.GroupKind{Group: group, Kind: text(v.Get("kind"))}, text(v.Get("name")), text(v.Get("uid"))}
		return false
	})
	return found
}

// answers reports whether what is wrong with an object is wrong with its owner, too. A
// node owns the pods that its kubelet reads from files, and can do nothing for them.
func (o *owner) answers() bool {
	return o.uid != "" && o.kind != schema.GroupKind{Kind: "Node"}
}
