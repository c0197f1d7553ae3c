package cache

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
)

var thingSpec = Spec{
	Resource:   Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}},
	Kind:       "Thing",
	Namespaced: true,
	Watch:      true,
	Indexes:    map[string]string{"node": "spec.node"},
}

// thing is an object of the model. Its JSON is made and read by encoding/json.
type thing struct {
	Metadata thingMeta `json:"metadata"`
	Spec     thingBody `json:"spec"`

	doc *map[string]any // what encoding/json reads of it, made when needed
}

type thingMeta struct {
	Namespace       string              `json:"namespace"`
	Name            string              `json:"name"`
	UID             string              `json:"uid"`
	ResourceVersion string              `json:"resourceVersion"`
	Created         string              `json:"creationTimestamp,omitempty"`
	Labels          map[string]string   `json:"labels,omitempty"`
	OwnerReferences []map[string]string `json:"ownerReferences,omitempty"`
}

type thingBody struct {
	Node  *string          `json:"node,omitempty"`
	Count *int             `json:"count"`
	Ready *bool            `json:"ready,omitempty"`
	Parts []map[string]any `json:"parts,omitempty"`
	Text  string           `json:"text,omitempty"`
}

func (t thing) key() Key { return Key{t.Metadata.Namespace, t.Metadata.Name} }

func (t thing) json() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return b
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomThing(r *rand.Rand, key Key, uid string, version int) thing {
	t := thing{Metadata: thingMeta{Namespace: key.Namespace, Name: key.Name, UID: uid, ResourceVersion: strconv.Itoa(version)}, doc: new(map[string]any)}
	t.Metadata.Created = pick(r, "", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06+01:00", "1970-01-01T00:00:00Z", "2500-01-01T00:00:00.5Z", "soon")
	t.Metadata.Labels = map[string]string{}
	for _, k := range []string{"app", "tier", "level"} {
		if r.IntN(3) > 0 {
			t.Metadata.Labels[k] = pick(r, "", "a", "b", "c", "1", "2")
		}
	}
	if r.IntN(3) == 0 {
		t.Metadata.OwnerReferences = []map[string]string{{"uid": pick(r, "o1", "o2"), "name": "owner", "kind": "Owner"}}
	}
	if r.IntN(4) > 0 {
		t.Spec.Node = new(pick(r, "", "n1", "n2", "n3"))
	}
	if r.IntN(4) > 0 {
		t.Spec.Count = new(r.IntN(3))
	}
	if r.IntN(3) > 0 {
		t.Spec.Ready = new(r.IntN(2) == 0)
	}
	for range r.IntN(3) {
		t.Spec.Parts = append(t.Spec.Parts, map[string]any{"v": pick[any](r, "x", "y", "", nil, 7, map[string]string{"z": "z"})})
	}
	if r.IntN(6) == 0 {
		t.Spec.Text = strings.Repeat("long ", r.IntN(500))
	}
	return t
}

// fieldPaths are the paths that queries and indexes of the model use.
var fieldPaths = []string{"spec.node", "spec.count", "spec.ready", "spec.parts[*].v", "spec.none", "spec.text", "spec", "metadata.name", "metadata.namespace"}

// values are what a path leads to: nil for null.
func (t thing) values(path string) []any {
	doc := *t.doc
	if doc == nil {
		if err := json.Unmarshal(t.json(), t.doc); err != nil {
			panic(err)
		}
		doc = *t.doc
	}
	if path == "spec.parts[*].v" {
		var out []any
		parts, _ := doc["spec"].(map[string]any)["parts"].([]any)
		for _, p := range parts {
			out = append(out, p.(map[string]any)["v"])
		}
		return out
	}
	var at any = doc
	for _, step := range strings.Split(path, ".") {
		m, _ := at.(map[string]any)
		v, ok := m[step]
		if !ok {
			return nil
		}
		at = v
	}
	return []any{at}
}

// text is how a value compares; ok is false for objects and arrays.
func text(v any) (s string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool, float64:
		return fmt.Sprint(v), true
	default:
		return "", false
	}
}

func (t thing) matchesField(f FieldRequirement) bool {
	values := t.values(f.Path.String())
	exists, hit := false, false
	for _, v := range values {
		exists = exists || v != nil
		if s, ok := text(v); ok && slices.Contains(f.Values, s) {
			hit = true
		}
	}
	if len(values) == 0 && slices.Contains(f.Values, "") {
		hit = true
	}
	switch f.Operator {
	case selection.Exists:
		return exists
	case selection.DoesNotExist:
		return !exists
	case selection.NotEquals, selection.NotIn:
		return !hit
	default:
		return hit
	}
}

// terms are the values of an index.
func (t thing) terms(index string, definitions map[string]string) []string {
	var out []string
	switch index {
	case NamespaceIndex:
		out = append(out, t.Metadata.Namespace)
	case LabelIndex:
		for k, v := range t.Metadata.Labels {
			out = append(out, k+"="+v)
		}
	case OwnerIndex:
		for _, o := range t.Metadata.OwnerReferences {
			out = append(out, o["uid"])
		}
	default:
		for _, v := range t.values(definitions[index]) {
			if s, ok := text(v); ok && v != nil && len(s) <= maxIndexedValue {
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (t thing) matches(q Query, definitions map[string]string) bool {
	if len(q.Namespaces) > 0 && !slices.ContainsFunc(q.Namespaces, func(g string) bool {
		ok, _ := path.Match(g, t.Metadata.Namespace)
		return ok
	}) {
		return false
	}
	if q.Labels != nil && !q.Labels.Matches(labels.Set(t.Metadata.Labels)) {
		return false
	}
	for _, f := range q.Fields.requirements {
		if !t.matchesField(f) {
			return false
		}
	}
	for _, term := range q.Terms {
		if !slices.Contains(t.terms(term.Index, definitions), term.Value) {
			return false
		}
	}
	return true
}
