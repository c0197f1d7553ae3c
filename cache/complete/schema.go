package complete

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache/rawjson"
)

// Schema is what objects of one kind can have, whether or not any has it.
type Schema struct {
	items map[rawjson.Path]Item
}

// openAPI is what is read of an OpenAPI 3 document of the API server.
type openAPI struct {
	Components struct {
		Schemas map[string]*node `json:"schemas"`
	} `json:"components"`
}

// node is a schema of such a document.
type node struct {
	Ref         string           `json:"$ref"`
	AllOf       []*node          `json:"allOf"`
	Type        string           `json:"type"`
	Properties  map[string]*node `json:"properties"`
	Items       *node            `json:"items"`
	IntOrString bool             `json:"x-kubernetes-int-or-string"`
	Format      string           `json:"format"`
	Kinds       []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// ParseSchema reads the schema of a kind from the OpenAPI 3 document of its group
// and version, less the paths in without and what is below them.
func ParseSchema(document []byte, kind schema.GroupVersionKind, without []string) (*Schema, error) {
	var doc openAPI
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("read OpenAPI of %s: %w", kind, err)
	}
	for _, n := range doc.Components.Schemas {
		if n.is(kind) {
			r := schemaReader{doc: &doc, without: without, Schema: &Schema{items: map[rawjson.Path]Item{}}}
			r.read(rawjson.Path{}, n, nil)
			return r.Schema, nil
		}
	}
	return nil, fmt.Errorf("read OpenAPI: there is no schema of %s", kind)
}

func (n *node) is(kind schema.GroupVersionKind) bool {
	for _, k := range n.Kinds {
		// Types such as DeleteOptions are of every kind's group.
		if len(n.Kinds) == 1 && k.Group == kind.Group && k.Version == kind.Version && k.Kind == kind.Kind {
			return true
		}
	}
	return false
}

type schemaReader struct {
	*Schema
	doc     *openAPI
	without []string
}

// read enters what is below a path. within are the references that led there: a
// schema that contains itself, as that of CustomResourceDefinitions does, is
// read once.
func (r *schemaReader) read(at rawjson.Path, n *node, within []string) {
	n, within, ok := r.resolve(n, within)
	if !ok || len(r.items) == maxPaths || r.leftOut(at.String()) {
		return
	}
	if !at.IsZero() {
		r.items[at] = Item{Value: at.String(), Kind: n.kind()}
	}
	for name, below := range n.Properties {
		if name != "" {
			r.read(at.Field(name), below, within)
		}
	}
	if n.Items != nil {
		r.read(at.Elements(), n.Items, within)
	}
}

// resolve follows references; it reports false for one that leads back.
func (r *schemaReader) resolve(n *node, within []string) (*node, []string, bool) {
	for n != nil {
		ref := n.Ref
		if len(n.AllOf) == 1 { // how a default is put beside a reference
			ref = n.AllOf[0].Ref
		}
		if ref == "" {
			return n, within, true
		}
		if slices.Contains(within, ref) {
			return nil, nil, false
		}
		within = append(slices.Clip(within), ref)
		n = r.doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	}
	return nil, nil, false
}

func (r *schemaReader) leftOut(path string) bool {
	return slices.ContainsFunc(r.without, func(out string) bool {
		rest, below := strings.CutPrefix(path, out)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// kind is that of the values, in the words of Item.
func (n *node) kind() string {
	switch {
	case n.IntOrString, n.Format == "int-or-string":
		return "string"
	case n.Type == "integer":
		return "number"
	case n.Type == "boolean":
		return "bool"
	case n.Type == "" && len(n.Properties) > 0:
		return "object"
	}
	return n.Type
}
