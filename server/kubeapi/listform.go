package kubeapi

import (
	"bytes"

	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// listForm writes a list piece by piece, in the form that was asked for: what the
// API server makes of the same list as a whole.
type listForm struct {
	media
	head, foot string
	between    string   // two objects
	emptyEnd   string   // instead of foot, where there are none
	plain      []byte   // one object, in memory used again
	starts     [][]byte // of objects, which items of this list lack
}

// newListForm makes what is around the objects of a list.
func newListForm(t *target, m media, meta listMeta) (f *listForm, err error) {
	kind, apiVersion, starts := listKind(t.spec()), t.spec().GVR.GroupVersion().String(), bareStarts(t.spec())
	if m.as == asPartialList {
		kind, apiVersion, starts = asPartialList, "meta.k8s.io/v1", nil
	}
	if m.yaml {
		f, err = newYAMLForm(m, kind, apiVersion, meta)
	} else {
		f, err = newJSONForm(m, kind, apiVersion, meta)
	}
	if err == nil {
		f.starts = starts
	}
	return f, err
}

func newJSONForm(m media, kind, apiVersion string, meta listMeta) (*listForm, error) {
	head, err := reply.JSON(struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   listMeta `json:"metadata"`
		Items      []string `json:"items"`
	}{kind, apiVersion, meta, []string{}}, m.pretty)
	f := &listForm{media: m, between: ",", foot: "]}\n", emptyEnd: "]}\n"}
	end := "]}"
	if m.pretty {
		end, f.between, f.foot, f.emptyEnd = "]\n}", ",\n    ", "\n  ]\n}\n", "]\n}\n"
	}
	f.head = string(bytes.TrimSuffix(head, []byte(end)))
	return f, err
}

// newYAMLForm is in the order of keys, as YAML is that was made from JSON.
func newYAMLForm(m media, kind, apiVersion string, meta listMeta) (*listForm, error) {
	foot, err := yaml.Marshal(map[string]any{"kind": kind, "metadata": meta})
	if err != nil {
		return nil, err
	}
	return &listForm{media: m, head: "apiVersion: " + apiVersion + "\nitems:", foot: string(foot), emptyEnd: " []\n" + string(foot)}, nil
}

func (f *listForm) write(out *reply.Writer, objects []*cache.Object) error {
	text := func(s string) func([]byte) ([]byte, error) {
		return func(dst []byte) ([]byte, error) { return append(dst, s...), nil }
	}
	if err := out.Append(text(f.head)); err != nil {
		return err
	}
	for n, o := range objects {
		if err := out.Append(func(dst []byte) ([]byte, error) { return f.object(dst, n, o) }); err != nil {
			return err
		}
	}
	if len(objects) == 0 {
		return out.Append(text(f.emptyEnd))
	}
	return out.Append(text(f.foot))
}

// object appends the object at place n.
func (f *listForm) object(dst []byte, n int, o *cache.Object) (_ []byte, err error) {
	switch {
	case n > 0:
		dst = append(dst, f.between...)
	case f.yaml:
		dst = append(dst, '\n')
	case f.pretty:
		dst = append(dst, "\n    "...)
	}
	if !f.yaml && !f.pretty {
		return f.item(dst, o)
	}
	if f.plain, err = f.item(f.plain[:0], o); err != nil {
		return dst, err
	}
	if f.yaml {
		return reply.AppendYAMLItem(dst, f.plain)
	}
	return reply.AppendIndented(dst, f.plain, "    ")
}

// item appends the JSON of an object as it is within a list.
func (f *listForm) item(dst []byte, o *cache.Object) ([]byte, error) {
	from := len(dst)
	dst, err := appendObject(dst, o, f.as)
	if err != nil {
		return dst, err
	}
	return cutStart(dst, from, f.starts), nil
}

func listKind(spec cache.Spec) string {
	if spec.ListKind != "" {
		return spec.ListKind
	}
	return spec.Kind + "List"
}
