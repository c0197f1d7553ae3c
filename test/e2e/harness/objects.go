package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is one object as JSON decodes it; numbers stay as they are written.
type Object map[string]any

// ObjectList is a list of them as it came.
type ObjectList struct {
	Kind       string
	APIVersion string
	Metadata   struct {
		ResourceVersion    string
		Continue           string
		RemainingItemCount int
	}
	Items []Object
}

func (o Object) meta() map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func (o Object) text(name string) string {
	s, _ := o.meta()[name].(string)
	return s
}

// Name, Namespace, UID and ResourceVersion are those of its metadata.
func (o Object) Name() string            { return o.text("name") }
func (o Object) Namespace() string       { return o.text("namespace") }
func (o Object) UID() string             { return o.text("uid") }
func (o Object) ResourceVersion() string { return o.text("resourceVersion") }

// Labels are those of its metadata.
func (o Object) Labels() map[string]string {
	labels := map[string]string{}
	m, _ := o.meta()["labels"].(map[string]any)
	for k, v := range m {
		labels[k], _ = v.(string)
	}
	return labels
}

// Key is namespace/name.
func (o Object) Key() string { return o.Namespace() + "/" + o.Name() }

// Canonical is its JSON with sorted keys: equal for equal objects.
func (o Object) Canonical() string {
	data, err := json.Marshal(map[string]any(o))
	if err != nil {
		panic(err) // it was JSON before
	}
	return string(data)
}

// compareKeys is the order of lists: namespace, then name.
func compareKeys(a, b Object) int {
	return cmp.Or(strings.Compare(a.Namespace(), b.Namespace()), strings.Compare(a.Name(), b.Name()))
}

// Kept is what informerd must show of an object under the built-in rules: no
// managedFields, and of a Secret the keys only.
func Kept(o Object) Object {
	delete(o.meta(), "managedFields")
	if o["kind"] != "Secret" || o["apiVersion"] != "v1" {
		return o
	}
	for _, field := range []string{"data", "stringData"} {
		if m, ok := o[field].(map[string]any); ok {
			for k := range m {
				m[k] = ""
			}
		}
	}
	if a, ok := o.meta()["annotations"].(map[string]any); ok {
		delete(a, "kubectl.kubernetes.io/last-applied-configuration")
	}
	return o
}

// List asks the API server itself for all objects of a resource, as it holds
// them now.
func (c *Cluster) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (*ObjectList, error) {
	return c.list(ctx, gvr, namespace, "")
}

// ListAt asks for the objects that there were at a version, and no later.
func (c *Cluster) ListAt(ctx context.Context, gvr schema.GroupVersionResource, version string) (*ObjectList, error) {
	return c.list(ctx, gvr, "", version)
}

func (c *Cluster) list(ctx context.Context, gvr schema.GroupVersionResource, namespace, version string) (*ObjectList, error) {
	path := "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		path = "/api/" + gvr.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	req := c.raw.Get().AbsPath(path, gvr.Resource).SetHeader("Accept", "application/json")
	if version != "" {
		req.Param("resourceVersion", version).Param("resourceVersionMatch", "Exact")
	}
	data, err := req.DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gvr.Resource, err)
	}
	list := &ObjectList{}
	if err := decode(data, list); err != nil {
		return nil, err
	}
	// Items of built-in kinds do not repeat what the list says.
	for _, o := range list.Items {
		if _, ok := o["kind"]; !ok {
			o["kind"], o["apiVersion"] = strings.TrimSuffix(list.Kind, "List"), list.APIVersion
		}
	}
	slices.SortFunc(list.Items, compareKeys)
	return list, nil
}

// values are what a path selects in o, as an index shows them: scalars as JSON
// writes them, strings without quotes, each once.
func (o Object) values(path string) map[string]bool {
	found := []any{map[string]any(o)}
	for _, step := range splitPath(path) {
		var next []any
		for _, v := range found {
			next = append(next, step.from(v)...)
		}
		found = next
	}
	all := map[string]bool{}
	for _, v := range found {
		switch v := v.(type) {
		case string:
			all[v] = true
		case json.Number:
			all[v.String()] = true
		case bool:
			all[fmt.Sprint(v)] = true
		}
	}
	maps.DeleteFunc(all, func(v string, _ bool) bool { return len(v) > 1024 })
	return all
}

// pathStep is a field, or every element of an array.
type pathStep struct {
	field string
	all   bool
}

func (s pathStep) from(v any) []any {
	if s.all {
		elements, _ := v.([]any)
		return elements
	}
	m, _ := v.(map[string]any)
	if f, ok := m[s.field]; ok {
		return []any{f}
	}
	return nil
}

// splitPath reads a.b, a[*].b and a['x.y/z'].
func splitPath(path string) []pathStep {
	var steps []pathStep
	for path != "" {
		switch {
		case strings.HasPrefix(path, "[*]"):
			steps, path = append(steps, pathStep{all: true}), path[3:]
		case strings.HasPrefix(path, "['"):
			name, rest, _ := strings.Cut(path[2:], "']")
			steps, path = append(steps, pathStep{field: name}), rest
		case path[0] == '.':
			path = path[1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			steps, path = append(steps, pathStep{field: path[:end]}), path[end:]
		}
	}
	return steps
}

// owners are the UIDs of its owners.
func (o Object) owners() map[string]bool {
	return o.values("metadata.ownerReferences[*].uid")
}

// indexed are the values of o in an index.
func (o Object) indexed(index, path string) map[string]bool {
	switch index {
	case "namespace":
		if o.Namespace() == "" {
			return nil
		}
		return map[string]bool{o.Namespace(): true}
	case "label":
		all := map[string]bool{}
		for k, v := range o.Labels() {
			all[k+"="+v] = true
		}
		return all
	case "owner":
		return o.owners()
	default:
		return o.values(path)
	}
}
