package harness

import (
	"context"
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CRD describes a definition whose objects have spec.color, spec.size and any
// other field, and a status.
type CRD struct {
	Group, Plural, Kind string
	Cluster             bool     // of cluster scope
	Versions            []string // the first is stored; default v1
	Selectable          []string // such as ".spec.color"
	Columns             []string // such as ".spec.size"
	// Printed are columns beside those.
	Printed []apiextensionsv1.CustomResourceColumnDefinition
}

// Name is the name of the definition and of its resource.
func (d CRD) Name() string { return d.Plural + "." + d.Group }

// GVR is the resource in its first version.
func (d CRD) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.Group, Version: d.versions()[0], Resource: d.Plural}
}

func (d CRD) versions() []string {
	if len(d.Versions) == 0 {
		return []string{"v1"}
	}
	return d.Versions
}

// Definition is what to create.
func (d CRD) Definition() *apiextensionsv1.CustomResourceDefinition {
	open := true
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	schema := &apiextensionsv1.JSONSchemaProps{
		Type:                   "object",
		XPreserveUnknownFields: &open,
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", XPreserveUnknownFields: &open, Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"color": text, "size": {Type: "integer"},
			}},
			"status": {Type: "object", XPreserveUnknownFields: &open},
		},
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: d.Name()}}
	crd.Spec.Group = d.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: d.Plural, Kind: d.Kind}
	crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	if d.Cluster {
		crd.Spec.Scope = apiextensionsv1.ClusterScoped
	}
	for n, name := range d.versions() {
		v := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: n == 0,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}
		for _, path := range d.Selectable {
			v.SelectableFields = append(v.SelectableFields, apiextensionsv1.SelectableField{JSONPath: path})
		}
		for _, path := range d.Columns {
			v.AdditionalPrinterColumns = append(v.AdditionalPrinterColumns,
				apiextensionsv1.CustomResourceColumnDefinition{Name: path, Type: "string", JSONPath: path})
		}
		v.AdditionalPrinterColumns = append(v.AdditionalPrinterColumns, d.Printed...)
		crd.Spec.Versions = append(crd.Spec.Versions, v)
	}
	return crd
}

// CreateCRD creates a definition and waits until the API server serves it. It is
// deleted at the end of the test.
func (c *Cluster) CreateCRD(tb testing.TB, d CRD) {
	tb.Helper()
	crds := c.Extensions.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := crds.Create(tb.Context(), d.Definition(), metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.DeleteCRD(ctx, d); err != nil {
			tb.Logf("delete definition: %v", err)
		}
	})
	Eventually(tb, 30*time.Second, d.Name()+" served", func() error {
		_, err := c.Dynamic.Resource(d.GVR()).List(tb.Context(), metav1.ListOptions{Limit: 1})
		return err
	})
}

// DeleteCRD deletes a definition and waits until it is gone; one that is gone is
// no error.
func (c *Cluster) DeleteCRD(ctx context.Context, d CRD) error {
	crds := c.Extensions.ApiextensionsV1().CustomResourceDefinitions()
	if err := crds.Delete(ctx, d.Name(), metav1.DeleteOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	return Poll(30*time.Second, func() error {
		_, err := crds.Get(ctx, d.Name(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("definition %s is still there: %v", d.Name(), err)
	})
}
