package kubeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/jsonpath"

	"github.com/informerd/informerd/cache"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// customColumn is one of additionalPrinterColumns.
type customColumn struct {
	Name, Type, Format, Description, JSONPath string
	Priority                                  int32
}

// customPrinter prints custom resources by their definition, as the API server
// does. It belongs to one goroutine.
type customPrinter struct {
	columns []metav1.TableColumnDefinition
	paths   []*jsonpath.JSONPath // of all columns but the first
	warning string               // a Warning header; "": none
}

// customPrinter is nil where no definition is at hand: of a built-in resource,
// of an aggregated one, and where definitions are not watched.
func (a *API) customPrinter(spec cache.Spec) (*customPrinter, error) {
	if spec.CRDUID == "" {
		return nil, nil
	}
	definitions, ok := a.Caches.Resource(cache.Resource{Cluster: spec.Cluster, GVR: crds})
	if !ok {
		return nil, nil
	}
	// How objects are printed is told to all who may see them, whether they may see the
	// definition or not.
	reader := definitions.View().Reader(cache.WholeScope())
	if reader == nil {
		return nil, nil
	}
	crd, ok := reader.Get(cache.Key{Name: spec.Name()})
	if !ok || crd.UID() != spec.CRDUID {
		return nil, nil
	}
	raw, err := crd.JSON()
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct{ Versions []customVersion }
	}
	if err := json.Unmarshal(raw, &definition); err != nil {
		return nil, fmt.Errorf("read printer columns: %w", err)
	}
	for _, v := range definition.Spec.Versions {
		if v.Name != spec.GVR.Version {
			continue
		}
		p := newCustomPrinter(v.columns())
		p.warning, err = v.warning(spec)
		return p, err
	}
	return nil, nil
}

// customVersion is what a definition says of one version.
type customVersion struct {
	Name                     string
	AdditionalPrinterColumns []customColumn
	Deprecated               bool
	DeprecationWarning       string
}

// columns are those the API server takes if there are none.
func (v customVersion) columns() []customColumn {
	if len(v.AdditionalPrinterColumns) > 0 {
		return v.AdditionalPrinterColumns
	}
	return []customColumn{{Name: "Age", Type: "date", Description: described["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"}}
}

// warning is the header that requests for a deprecated version are answered
// with.
func (v customVersion) warning(spec cache.Spec) (string, error) {
	if !v.Deprecated {
		return "", nil
	}
	text := v.DeprecationWarning
	if text == "" {
		text = fmt.Sprintf("%s %s is deprecated", spec.GVR.GroupVersion(), spec.Kind)
	}
	return utilnet.NewWarningHeader(299, "-", text)
}

// described are the API server's descriptions of metadata.
var described = metav1.ObjectMeta{}.SwaggerDoc()

// newCustomPrinter leaves out what follows a column it cannot read, as the API
// server does.
func newCustomPrinter(columns []customColumn) *customPrinter {
	p := &customPrinter{columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: described["name"]},
	}}
	for _, c := range columns {
		path := jsonpath.New(c.Name)
		if path.Parse("{"+c.JSONPath+"}") != nil {
			break
		}
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		p.paths = append(p.paths, path.AllowMissingKeys(true))
		p.columns = append(p.columns, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
	}
	return p
}

// cells print one object.
func (p *customPrinter) cells(o *cache.Object) ([]any, error) {
	raw, err := o.JSON()
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	cells := []any{o.Name()}
	for i, path := range p.paths {
		cells = append(cells, customCell(path, p.columns[i+1].Type, content))
	}
	return cells, nil
}

// customCell is nil for what is missing or of another type. Paths of columns lead
// to one value.
func customCell(path *jsonpath.JSONPath, typ string, content map[string]any) any {
	results, err := path.FindResults(content)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	if typ != "string" {
		return typedCell(typ, value)
	}
	var text bytes.Buffer
	if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
		return nil
	}
	return text.String()
}

func typedCell(typ string, value any) any {
	switch v := value.(type) {
	case int64:
		switch typ {
		case "integer":
			return v
		case "number":
			return float64(v)
		}
	case float64:
		switch typ {
		case "integer":
			return int64(v)
		case "number":
			return v
		}
	case bool:
		if typ == "boolean" {
			return v
		}
	case string:
		if typ == "date" {
			return dateCell(v)
		}
	}
	return nil
}

// dateCell is how long ago a time was.
func dateCell(text string) string {
	var t metav1.Time
	if t.UnmarshalQueryParameter(text) != nil {
		return "<invalid>"
	}
	return metatable.ConvertToHumanReadableDateType(t)
}
