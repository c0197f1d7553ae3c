package rbac

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// unwatched are resources that have lists and cannot be watched, or are no API.
var unwatched = []string{"apigroups", "componentstatuses", "imagereviews.imagepolicy.k8s.io"}

// elsewhere are groups whose types client-go does not have.
var elsewhere = []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}

// TestBuiltIn holds the table to the types of client-go: what Kubernetes adds or takes
// away is noticed with the next version of it.
func TestBuiltIn(t *testing.T) {
	known := map[schema.GroupResource]bool{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		kind, isList := strings.CutSuffix(gvk.Kind, "List")
		gv := gvk.GroupVersion()
		if !isList || gv.Group == "extensions" || gv.Version == "__internal" || !scheme.Scheme.Recognizes(gv.WithKind(kind)) {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
		gr := plural.GroupResource()
		if gr.Resource == "endpointses" {
			gr.Resource = "endpoints"
		}
		known[gr] = true
		if !isBuiltIn(gr) && !slices.Contains(unwatched, gr.String()) {
			t.Errorf("%s is not in the table", gr)
		}
	}
	if len(known) < 50 {
		t.Errorf("saw %d resources, which cannot be all", len(known))
	}
	for _, r := range builtIn {
		if !known[r.GroupResource] && !slices.Contains(elsewhere, r.Group) {
			t.Errorf("%s is in the table, and in no version of Kubernetes' API", r.GroupResource)
		}
	}
}
