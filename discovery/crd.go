package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// crdSpec is what is kept of a CustomResourceDefinition's spec: little, since
// its schemas may be a megabyte.
type crdSpec struct {
	Group string `json:"group"`
	Names struct {
		Plural   string `json:"plural"`
		ListKind string `json:"listKind"`
	} `json:"names"`
	Versions []crdVersion `json:"versions"`
}

type crdVersion struct {
	Name             string `json:"name"`
	Served           bool   `json:"served"`
	SelectableFields []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields"`
}

// selectableFields are the selectable JSON paths of one version.
func (c crdSpec) selectableFields(version string) []string {
	var paths []string
	for _, v := range c.Versions {
		if v.Name != version {
			continue
		}
		for _, f := range v.SelectableFields {
			paths = append(paths, f.JSONPath)
		}
	}
	return paths
}

// serves tells whether any of versions is served.
func (c crdSpec) serves(versions []string) bool {
	return slices.ContainsFunc(c.Versions, func(v crdVersion) bool {
		return v.Served && slices.Contains(versions, v.Name)
	})
}

// crdName is the name a CRD must have to define gr.
func crdName(gr schema.GroupResource) string { return gr.String() }
