package discovery

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func compareGroupResource(a, b schema.GroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}
