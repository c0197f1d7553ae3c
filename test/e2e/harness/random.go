package harness

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Random makes random objects of the kinds that an API server describes in its
// OpenAPI v3 documents. They have the shape that is described; whether the
// server accepts them it alone knows, so Mend changes them as it says. The same
// seed makes the same objects.
type Random struct {
	*rand.Rand
	root openapi3.Root
	// documents that were read, by group and version
	documents map[schema.GroupVersion]map[string]*spec.Schema
}

// NewRandom reads the documents of a cluster as they are needed.
func NewRandom(c *Cluster, seed uint64) *Random {
	return &Random{
		Rand: rand.New(rand.NewPCG(seed, 1)), root: openapi3.NewRoot(c.Client.Discovery().OpenAPIV3()),
		documents: map[schema.GroupVersion]map[string]*spec.Schema{},
	}
}

// RandomKind makes objects of one kind.
type RandomKind struct {
	random  *Random
	gvk     schema.GroupVersionKind
	schemas map[string]*spec.Schema
	schema  *spec.Schema
}

// Kind is the maker of objects of a kind.
func (r *Random) Kind(gvk schema.GroupVersionKind) (*RandomKind, error) {
	gv := gvk.GroupVersion()
	if r.documents[gv] == nil {
		document, err := r.root.GVSpec(gv)
		if err != nil {
			return nil, fmt.Errorf("read OpenAPI document of %s: %w", gv, err)
		}
		r.documents[gv] = document.Components.Schemas
	}
	k := &RandomKind{random: r, gvk: gvk, schemas: r.documents[gv]}
	for _, s := range k.schemas {
		if describes(s, gvk) {
			k.schema = s
			return k, nil
		}
	}
	return nil, fmt.Errorf("the OpenAPI document of %s does not describe %s", gv, gvk.Kind)
}

func describes(s *spec.Schema, gvk schema.GroupVersionKind) bool {
	kinds, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
	return slices.ContainsFunc(kinds, func(k any) bool {
		m, _ := k.(map[string]any)
		return m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind
	})
}

// Object makes an object with a name and, unless that is empty, a namespace.
func (k *RandomKind) Object(namespace, name string) map[string]any {
	o := k.members(k.schema, 0)
	o["apiVersion"], o["kind"] = k.gvk.GroupVersion().String(), k.gvk.Kind
	meta := k.random.Metadata()
	meta["name"] = name
	if namespace != "" {
		meta["namespace"] = namespace
	}
	o["metadata"] = meta
	delete(o, "status") // the server drops it
	k.agree(o)
	return o
}

// agree makes what belongs together: no server says how to mend that. What selects
// pods selects those of the template beside it.
func (k *RandomKind) agree(o map[string]any) {
	spec, _ := o["spec"].(map[string]any)
	if k.gvk.Kind == "PersistentVolumeClaim" && spec != nil {
		spec["resources"] = map[string]any{"requests": map[string]any{"storage": "1Gi"}}
	}
	template, ok := spec["template"].(map[string]any)
	if !ok {
		return
	}
	labels := map[string]any{"app": k.random.word()}
	switch k.gvk.Kind {
	case "Job": // which selects by a label of the server's
		delete(spec, "selector")
		delete(spec, "manualSelector")
		return
	case "ReplicationController":
		spec["selector"] = labels
	default:
		spec["selector"] = map[string]any{"matchLabels": labels}
	}
	template["metadata"] = map[string]any{"labels": maps.Clone(labels)}
}

// Metadata makes labels and annotations.
func (r *Random) Metadata() map[string]any {
	labels, annotations := map[string]any{}, map[string]any{}
	for range r.IntN(5) {
		labels[r.word()] = r.word()
	}
	for range r.IntN(4) {
		annotations[r.word()] = r.Text()
	}
	return map[string]any{"labels": labels, "annotations": annotations}
}

// deepest is how far down members are made that need not be there.
const deepest = 9

// value makes a value. name is that of the field, which tells what a string is
// about.
func (k *RandomKind) value(s *spec.Schema, name string, depth int) any {
	r := k.random
	s = k.resolve(s)
	if len(s.Enum) > 0 {
		return s.Enum[r.IntN(len(s.Enum))]
	}
	switch kind := typeOf(s); kind {
	case "string":
		return r.stringFor(s.Format, name)
	case "integer":
		return r.integer(s.Format)
	case "number":
		return r.NormFloat64() * 1e3
	case "boolean":
		return r.IntN(2) == 0
	case "array":
		list := []any{}
		for range r.IntN(3) {
			list = append(list, k.value(s.Items.Schema, name, depth+1))
		}
		return list
	case "object":
		return k.members(s, depth)
	default:
		return r.JSON(2)
	}
}

// typeOf is the type of a schema that says so, or whose keywords do.
func typeOf(s *spec.Schema) string {
	switch {
	case s.Format == "int-or-string":
		return "integer"
	case len(s.Type) > 0:
		return s.Type[0]
	case len(s.OneOf) > 0 && len(s.OneOf[0].Type) > 0:
		return s.OneOf[len(s.OneOf)-1].Type[0] // a quantity may be a string
	case len(s.Properties) > 0:
		return "object"
	default:
		return ""
	}
}

// resolve follows references.
func (k *RandomKind) resolve(s *spec.Schema) *spec.Schema {
	for {
		switch {
		case s.Ref.String() != "":
			name := s.Ref.String()[strings.LastIndex(s.Ref.String(), "/")+1:]
			if name == quantitySchema {
				return quantities
			}
			s = k.schemas[name]
		case len(s.AllOf) == 1 && len(s.Type) == 0:
			s = &s.AllOf[0]
		default:
			return s
		}
	}
}

const quantitySchema = "io.k8s.apimachinery.pkg.api.resource.Quantity"

// quantities stands for the schema of quantities, which says no more than that
// they may be strings.
var quantities = &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}, Format: "quantity"}}

// naming are fields of pods with which they are only admitted if what they name
// exists. The server waits for some of it.
var naming = []string{"serviceAccountName", "serviceAccount", "priorityClassName", "runtimeClassName"}

// members makes an object.
func (k *RandomKind) members(s *spec.Schema, depth int) map[string]any {
	r, o := k.random, map[string]any{}
	if len(s.Properties) == 0 && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		each := k.resolve(s.AdditionalProperties.Schema)
		for range r.IntN(3) {
			key := r.word()
			if each == quantities {
				key = []string{"cpu", "memory", "storage", "ephemeral-storage"}[r.IntN(4)]
			}
			o[key] = k.value(each, "", depth+1)
		}
		return o
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // the order of a map is another one each time
		property := s.Properties[name]
		required := slices.Contains(s.Required, name)
		if !required && (slices.Contains(naming, name) || depth >= deepest || r.IntN(2+depth) != 0) {
			continue
		}
		if name == "metadata" {
			o[name] = r.Metadata()
			continue
		}
		o[name] = k.value(&property, name, depth+1)
	}
	return o
}

// word is a name as DNS labels, labels and keys may be.
func (r *Random) word() string {
	words := []string{"a", "app", "b-2", "cache", "data", "east", "frontend", "http", "x1", "zone"}
	return words[r.IntN(len(words))] + "-" + strconv.Itoa(r.IntN(50))
}

// Text is any text, also of the sort that breaks encoders.
func (r *Random) Text() string {
	texts := []string{
		"", "plain", `quotes " and \ backslashes`, "line\nbreaks\r\nand\ttabs", "<html>&amp;\u2028\u2029", "grüße, 世界, 🚀 \U0010ffff",
		"\u0000\u001f\u007f\u0080\ufffd\ufeff", `{"a":[1,2,{"b":"}"}]}`, "%41%2F%zz", "true", "null", "1e3", "0x1F", "2026-01-02T03:04:05Z", "1Gi",
		strings.Repeat("long ", 300),
	}
	return texts[r.IntN(len(texts))] + strconv.Itoa(r.IntN(10))
}

// Incompressible is text of n letters.
func (r *Random) Incompressible(n int) string {
	raw := make([]byte, n*3/4)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func (r *Random) stringFor(format, name string) string {
	at := time.Unix(1_700_000_000+r.Int64N(1e8), r.Int64N(1e9)).UTC()
	switch {
	case format == "date-time" && strings.HasPrefix(name, "micro"), name == "renewTime", name == "acquireTime":
		return at.Format("2006-01-02T15:04:05.000000Z07:00")
	case format == "date-time":
		return at.Format(time.RFC3339)
	case format == "byte":
		return base64.StdEncoding.EncodeToString([]byte(r.Text()))
	case format == "quantity":
		return []string{"0", "1", "100m", "1500m", "2Gi", "0.5", "1e3", "128974848", "12Ki"}[r.IntN(9)]
	case isFree(name) && r.IntN(3) > 0:
		return r.Text()
	case strings.Contains(strings.ToLower(name), "path"):
		return "/" + r.word() + "/" + r.word()
	case r.IntN(4) == 0:
		return []string{"example.com/" + r.word(), "192.0.2." + strconv.Itoa(r.IntN(250)), "10.0.0.0/8", strconv.Itoa(r.IntN(100)), "*/5 * * * *"}[r.IntN(5)]
	default:
		return r.word()
	}
}

// isFree tells fields that may hold any text in most kinds.
func isFree(name string) bool {
	return slices.Contains([]string{"args", "command", "value", "description", "message", "reason", "note", "data", "stringData"}, name)
}

func (r *Random) integer(format string) int64 {
	most := int64(math.MaxInt32)
	if format == "int64" || format == "" {
		most = math.MaxInt64
	}
	return []int64{0, 1, 2, 3, 30, 80, 8080, 65535, most, min(most, 1<<53+1)}[r.IntN(10)]
}

// notations are legal ways to write numbers and texts that decoders and encoders
// rarely see.
var notations = []string{
	"0", "-0", "-1", "42", "1.0", "1E+2", "1e21", "-1.5e-9", "0.1", "123456789.125", "1.7976931348623157e308", "5e-324",
	"9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "123456789012345678901234567890",
	`"\u0041\u00e9\ud83d\ude00"`, `"\ud800"`, `"\/\b\f\u0000"`, `"caf\u0065\u0301"`,
}

// Nested is a value that many others are around.
func (r *Random) Nested(depth int) any {
	v := r.JSON(0)
	for range depth {
		if r.IntN(2) == 0 {
			v = []any{v}
		} else {
			v = map[string]any{r.Text(): v}
		}
	}
	return v
}

// JSON is any value as an API server keeps it where it preserves unknown fields.
func (r *Random) JSON(depth int) any {
	n := r.IntN(10)
	if depth == 0 {
		n = r.IntN(7)
	}
	switch n {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2, 3:
		return json.RawMessage(notations[r.IntN(len(notations))])
	case 4, 5, 6:
		return r.Text()
	case 7:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, r.JSON(depth-1))
		}
		return list
	default:
		o := map[string]any{}
		for range r.IntN(5) {
			o[r.Text()] = r.JSON(depth - 1)
		}
		return o
	}
}

// Mend changes an object that the server found invalid: what is missing is made,
// what must be one of some values becomes one of them, and what else is wrong
// goes. failed counts how often each field was wrong: what cannot be mended goes
// with what it is in. Mend reports whether there was anything to change.
func (k *RandomKind) Mend(o map[string]any, causes []metav1.StatusCause, failed map[string]int) bool {
	changed, mended := false, map[string]bool{}
	for _, cause := range causes {
		path := splitField(cause.Field)
		if len(path) == 0 || path[0] == "metadata" || mended[cause.Field] {
			continue
		}
		mended[cause.Field] = true
		failed[cause.Field]++
		up := failed[cause.Field] / patience
		path = path[:max(1, len(path)-up)]
		switch {
		case up > 0 && len(path) > 1:
			changed = remove(o, path) || changed
		case hasChoice(cause.Message):
			changed = k.choose(o, path, cause.Message) || changed
		case cause.Type == metav1.CauseTypeFieldValueRequired:
			changed = k.require(o, path) || changed
		default:
			changed = remove(o, path) || changed
		}
	}
	k.agree(o)
	return changed
}

// patience is how often the same field is mended before what it is in goes.
const patience = 5

// require makes the value at a path.
func (k *RandomKind) require(o map[string]any, path []string) bool {
	s := k.schemaAt(path)
	if s == nil {
		return false
	}
	value := k.value(s, path[len(path)-1], len(path))
	if list, ok := value.([]any); ok && len(list) == 0 {
		value = []any{k.value(s.Items.Schema, path[len(path)-1], len(path))}
	}
	return set(o, path, value)
}

// schemaAt is that of the value at a path, nil if there can be none.
func (k *RandomKind) schemaAt(path []string) *spec.Schema {
	s := k.resolve(k.schema)
	for _, step := range path {
		property, ok := s.Properties[step]
		switch {
		case ok:
			s = k.resolve(&property)
		case s.Items != nil:
			s = k.resolve(s.Items.Schema)
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			s = k.resolve(s.AdditionalProperties.Schema)
		default:
			return nil
		}
	}
	return s
}

var (
	choice = regexp.MustCompile(`(supported|valid) values: (.*)`)
	quoted = regexp.MustCompile(`"([^"]+)"`)
)

// hasChoice tells messages that name the values there may be.
func hasChoice(message string) bool {
	m := choice.FindStringSubmatch(message)
	return m != nil && quoted.MatchString(m[2])
}

// choose takes one of the values that the server names: as it is, as the only
// element of a list, or as the key of an object.
func (k *RandomKind) choose(o map[string]any, path []string, message string) bool {
	s := k.schemaAt(path)
	if s == nil {
		return remove(o, path)
	}
	values := quoted.FindAllStringSubmatch(choice.FindStringSubmatch(message)[2], -1)
	value := values[k.random.IntN(len(values))][1]
	switch {
	case s.Items != nil:
		return set(o, path, []any{value})
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return set(o, path, map[string]any{value: k.value(s.AdditionalProperties.Schema, "", len(path))})
	default:
		return set(o, path, value)
	}
}

// splitField reads the path of a cause: a.b[0].c[key].
func splitField(field string) []string {
	var path []string
	for field != "" {
		if rest, ok := strings.CutPrefix(field, "["); ok {
			step, after, _ := strings.Cut(rest, "]")
			path, field = append(path, step), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(field, ".[")
		if end < 0 {
			return append(path, field)
		}
		path = append(path, field[:end])
		field = strings.TrimPrefix(field[end:], ".")
	}
	return path
}

// set puts a value at a path; objects on the way are made.
func set(o map[string]any, path []string, value any) bool {
	var at any = o
	for n, step := range path {
		last := n == len(path)-1
		switch here := at.(type) {
		case map[string]any:
			if last {
				here[step] = value
				return true
			}
			if _, err := strconv.Atoi(path[n+1]); here[step] == nil && err != nil {
				here[step] = map[string]any{}
			}
			at = here[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(here) {
				return false
			}
			if last {
				here[i] = value
				return true
			}
			at = here[i]
		default:
			return false
		}
	}
	return false
}

// remove takes away what is at a path, or the nearest above it that is there.
// Of an array all goes: another element would move to its place.
func remove(o map[string]any, path []string) bool {
	at, holder, name := any(o), map[string]any(nil), ""
	for _, step := range path {
		switch here := at.(type) {
		case map[string]any:
			next, ok := here[step]
			if !ok {
				break
			}
			holder, name, at = here, step, next
			continue
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(here) {
				break
			}
			at = here[i]
			continue
		}
		break
	}
	if holder == nil {
		return false
	}
	delete(holder, name)
	return true
}
