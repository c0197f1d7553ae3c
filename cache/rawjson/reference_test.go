package rawjson

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// The reference does what this package does, slowly, on apimachinery's maps.

// refDecode decodes as unstructured objects are decoded; ok is false for what
// is no object.
func refDecode(src []byte) (m map[string]any, ok bool) {
	if err := kjson.Unmarshal(src, &m); err != nil || m == nil {
		return nil, false
	}
	return m, true
}

// refValues returns the values at steps below v, in order.
func refValues(v any, steps []step) []any {
	if len(steps) == 0 {
		return []any{v}
	}
	st, rest := steps[0], steps[1:]
	switch v := v.(type) {
	case map[string]any:
		if c, ok := v[st.name]; ok && st.kind == stepField {
			return refValues(c, rest)
		}
	case []any:
		var out []any
		for i, e := range v {
			if st.kind == stepStar || st.kind == stepIndex && st.index == i {
				out = append(out, refValues(e, rest)...)
			}
		}
		return out
	}
	return nil
}

// refChange applies change to the value at steps below v.
func refChange(v any, steps []step, change func(any) any) any {
	if len(steps) == 0 {
		return change(v)
	}
	st, rest := steps[0], steps[1:]
	switch v := v.(type) {
	case map[string]any:
		if c, ok := v[st.name]; ok && st.kind == stepField {
			v[st.name] = refChange(c, rest, change)
		}
	case []any:
		for i, e := range v {
			if st.kind == stepStar || st.kind == stepIndex && st.index == i {
				v[i] = refChange(e, rest, change)
			}
		}
	}
	return v
}

func refDrop(m map[string]any, steps []step) {
	name := steps[len(steps)-1].name
	refChange(m, steps[:len(steps)-1], func(v any) any {
		if m, ok := v.(map[string]any); ok {
			delete(m, name)
		}
		return v
	})
}

func refRedact(m map[string]any, steps []step) {
	refChange(m, steps, func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = ""
			}
			return v
		case []any:
			for i := range v {
				v[i] = ""
			}
			return v
		}
		return ""
	})
}

// refStored makes the stored form of m in place.
func refStored(m map[string]any, s Spec, apiVersion, kind string) {
	// An identity field that is no string counts as absent.
	for key, def := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
		if s, _ := m[key].(string); s == "" {
			delete(m, key)
			if def != "" {
				m[key] = def
			}
		}
	}
	drop := s.Drop
	if len(s.Redact) > 0 {
		drop = append(slices.Clone(drop), LastApplied)
	}
	for _, p := range drop {
		refDrop(m, p.steps())
	}
	for _, p := range s.Redact {
		refRedact(m, p.steps())
	}
}

type none struct{}

// refProject returns what paths want of v, or none.
func refProject(v any, paths [][]step) any {
	fields := map[string][][]step{}
	var elements [][]step
	last, star := -1, false
	for _, p := range paths {
		switch {
		case len(p) == 0:
			return v
		case p[0].kind == stepField:
			fields[p[0].name] = append(fields[p[0].name], p[1:])
		default:
			elements = append(elements, p)
			star = star || p[0].kind == stepStar
			last = max(last, p[0].index)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if len(fields) == 0 {
			return none{}
		}
		out := map[string]any{}
		for k, below := range fields {
			if c, ok := v[k]; ok {
				if c = refProject(c, below); c != (any)(none{}) {
					out[k] = c
				}
			}
		}
		return out
	case []any:
		if len(elements) == 0 {
			return none{}
		}
		out := []any{}
		for i, e := range v {
			if i > last && !star {
				break
			}
			var below [][]step
			for _, p := range elements {
				if p[0].kind == stepStar || p[0].index == i {
					below = append(below, p[1:])
				}
			}
			var c any = none{}
			if len(below) > 0 {
				c = refProject(e, below)
			}
			if _, missing := c.(none); missing {
				c = nil
			}
			out = append(out, c)
		}
		return out
	}
	return none{}
}

// identityOf returns what apimachinery's accessors say.
type identity struct {
	APIVersion, Kind, Namespace, Name, UID, ResourceVersion string
	Labels                                                  map[string]string
	Owners                                                  []ownerText
	InitialEventsEnd                                        bool
}

type ownerText struct {
	UID, Kind, Name, APIVersion string
	Controller                  bool
}

func refIdentity(m map[string]any) identity {
	u := &unstructured.Unstructured{Object: m}
	id := identity{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion(),
		InitialEventsEnd: u.GetAnnotations()["k8s.io/initial-events-end"] == "true",
	}
	if l := u.GetLabels(); len(l) > 0 {
		id.Labels = l
	}
	for _, o := range u.GetOwnerReferences() {
		id.Owners = append(id.Owners, ownerText{string(o.UID), o.Kind, o.Name, o.APIVersion, o.Controller != nil && *o.Controller})
	}
	return id
}

func identityOf(d *Document) identity {
	id := identity{
		APIVersion: string(d.APIVersion), Kind: string(d.Kind), Namespace: string(d.Namespace), Name: string(d.Name),
		UID: string(d.UID), ResourceVersion: string(d.ResourceVersion), InitialEventsEnd: d.InitialEventsEnd,
	}
	for _, p := range d.Labels {
		if id.Labels == nil {
			id.Labels = map[string]string{}
		}
		id.Labels[string(p.Key)] = string(p.Value)
	}
	for _, o := range d.Owners {
		id.Owners = append(id.Owners, ownerText{string(o.UID), string(o.Kind), string(o.Name), string(o.APIVersion), o.Controller})
	}
	return id
}

// generator writes random objects that dwell on what is hard: duplicate and
// escaped keys, wrong types, odd white space, numbers and strings.
type generator struct {
	r *rand.Rand
	b strings.Builder
}

var vocabulary = []string{
	"apiVersion", "kind", "metadata", "name", "namespace", "uid", "resourceVersion", "labels", "annotations",
	"ownerReferences", "controller", "managedFields", "data", "stringData", "spec", "status", "a", "b", "c",
	"k8s.io/initial-events-end", "kubectl.kubernetes.io/last-applied-configuration", "x'y", "", "ü", "\ufffd",
	"creationTimestamp", "deletionTimestamp",
}

func generate(seed uint64) []byte {
	g := generator{r: rand.New(rand.NewPCG(seed, 1))}
	g.space()
	g.object(0, "")
	g.space()
	return []byte(g.b.String())
}

func (g *generator) oneIn(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) space() {
	if g.oneIn(8) {
		g.b.WriteString([]string{" ", "\n", "\t", "\r\n", "  "}[g.r.IntN(5)])
	}
}

func (g *generator) text(s string) {
	g.b.WriteByte('"')
	for _, c := range s {
		switch {
		case g.oneIn(24) && c < 0x10000:
			g.b.WriteString(`\u` + strconv.FormatInt(0x10000+int64(c), 16)[1:])
		case c == utf8.RuneError && g.oneIn(2):
			g.b.WriteString([]string{"\xff", `\ud800`, `\udc00\ud800`[:6], "\xe4\xbd"[:1]}[g.r.IntN(4)])
		case c == '"' || c == '\\':
			g.b.WriteString(`\` + string(c))
		default:
			g.b.WriteRune(c)
		}
	}
	g.b.WriteByte('"')
}

// favourites are the keys that matter inside the value of a key.
var favourites = map[string][]string{
	"":                {"apiVersion", "kind", "metadata", "metadata", "spec", "status", "data", "a", "b"},
	"metadata":        {"name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences", "managedFields"},
	"ownerReferences": {"uid", "kind", "name", "apiVersion", "controller"},
	"annotations":     {"k8s.io/initial-events-end", "kubectl.kubernetes.io/last-applied-configuration", "a"},
}

func (g *generator) object(depth int, of string) {
	g.b.WriteByte('{')
	g.space()
	for i, n := 0, g.r.IntN(7); i < n; i++ {
		if i > 0 {
			g.b.WriteByte(',')
			g.space()
		}
		names := favourites[of]
		if names == nil || g.oneIn(4) {
			names = vocabulary
		}
		key := names[g.r.IntN(len(names))]
		g.text(key)
		g.space()
		g.b.WriteByte(':')
		g.space()
		g.value(depth+1, key)
		g.space()
	}
	g.b.WriteByte('}')
}

func (g *generator) value(depth int, key string) {
	if favourites[key] != nil || key == "labels" {
		if key == "ownerReferences" && !g.oneIn(6) {
			g.array(depth, key)
			return
		}
		if !g.oneIn(6) {
			g.object(depth, key)
			return
		}
	}
	switch n := g.r.IntN(16); {
	case n < 3 && depth < 6:
		g.object(depth, "a")
	case n < 6 && depth < 6:
		g.array(depth, "a")
	case n == 7:
		g.b.WriteString([]string{"null", "true", "false"}[g.r.IntN(3)])
	case n == 8:
		g.b.WriteString([]string{"0", "-0", "12", "9223372036854775807", "9223372036854775808", "1.5e3", "1E-7", "-0.0", "1e300", "0.25"}[g.r.IntN(10)])
	case n == 9 && g.oneIn(40):
		g.b.WriteString([]string{"1e999", "01", "+1", "nul", "'a'", `"\x"`, "\"\n\"", "1.", ".5", "-", "1e", "]", "}"}[g.r.IntN(13)])
	default:
		g.text([]string{"", "true", "x", "a longer text with ü and more in it", "\ufffd", "say \"hi\" \\ there", "\U0001F600", "web-0"}[g.r.IntN(8)])
	}
}

func (g *generator) array(depth int, key string) {
	g.b.WriteByte('[')
	g.space()
	for i, n := 0, g.r.IntN(4); i < n; i++ {
		if i > 0 {
			g.b.WriteByte(',')
			g.space()
		}
		if key == "ownerReferences" && !g.oneIn(8) {
			g.object(depth, key)
		} else {
			g.value(depth+1, "")
		}
		g.space()
	}
	g.b.WriteByte(']')
}

// grouped sorts values by path and keeps their order within one.
func grouped(values []Value) []Value {
	sort.SliceStable(values, func(i, j int) bool { return values[i].Path < values[j].Path })
	return values
}
