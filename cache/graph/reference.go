package graph

import (
	"cmp"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/internal/brief"
	"github.com/informerd/informerd/cache/rawjson"
)

// reference is one place of an object that names another. Its texts are of its links.
type reference struct {
	rule *compiled
	// to is the resource that is named, or kind where only that is known.
	to       schema.GroupResource
	kind     schema.GroupKind
	key      cache.Key // its namespace is the holder's unless the reference says
	uid      string    // of owners, and where the rule says
	optional bool      // the holder can do without
}

// links are all that an object says about others.
type links struct {
	key        cache.Key
	uid        string
	stamp      uint64 // of the version they were read from
	references []reference
	selections []selection
	unread     bool        // it could not be read
	texts      brief.Texts // of references
}

// allLinks are those that were entered, to be read into again: there is one for each object.
var allLinks = sync.Pool{New: func() any { return &links{texts: brief.New()} }}

// release gives l to other objects. Its selections are kept by the node.
func (l *links) release() {
	l.texts.Release()
	clear(l.references)
	*l = links{references: l.references[:0], texts: l.texts}
	allLinks.Put(l)
}

// fragment is the JSON of any reference: the fields of Kubernetes' many types
// of them together.
type fragment struct {
	texts                                                         *brief.Texts
	apiVersion, kind, namespace, name, secretName, claimName, uid string
	apiGroup, group                                               *string
	optional                                                      bool
}

// read reads an object of a valid document. It reports false where a field has a value of
// another kind than it should.
func (f *fragment) read(object []byte) bool {
	for parts := rawjson.NewLazy(object).Parts(); ; {
		key, plain, value, ok := parts.Next()
		if !ok {
			return true
		}
		if !plain {
			key = rawjson.AppendKeyText(nil, key, false)
		}
		if !f.field(key, value) {
			return false
		}
	}
}

func (f *fragment) field(name []byte, value rawjson.Lazy) bool {
	text := func(into *string) bool {
		if value.Kind() == rawjson.String {
			*into = f.texts.Append(value.AppendText)
			return true
		}
		return value.Kind() == rawjson.Null
	}
	there := func(into **string) bool {
		if value.Kind() == rawjson.String {
			*into = new(string)
		}
		return text(*into)
	}
	switch string(name) {
	case "apiVersion":
		return text(&f.apiVersion)
	case "apiGroup":
		return there(&f.apiGroup)
	case "group":
		return there(&f.group)
	case "kind":
		return text(&f.kind)
	case "namespace":
		return text(&f.namespace)
	case "name":
		return text(&f.name)
	case "secretName":
		return text(&f.secretName)
	case "claimName":
		return text(&f.claimName)
	case "uid":
		return text(&f.uid)
	case "optional":
		f.optional = value.Kind() == rawjson.Bool && string(value.Raw()) == "true"
		return value.Kind() == rawjson.Bool || value.Kind() == rawjson.Null
	}
	return true
}

// read takes the links out of o. If that fails the object has none.
func (r *reader) read(o *cache.Object) *links {
	l := allLinks.Get().(*links)
	l.key, l.uid, l.stamp = o.Key(), o.UID(), follow.Stamp(o)
	if err := r.fill(l, o); err != nil {
		l.references, l.selections, l.unread = nil, nil, true
	}
	return l
}

func (r *reader) fill(l *links, o *cache.Object) error {
	if r.slices() {
		if service := o.Labels().Get(serviceNameLabel); service != "" {
			l.references = append(l.references, reference{rule: sliceRule,
				to: schema.GroupResource{Resource: "services"}, key: cache.Key{Namespace: o.Namespace(), Name: service}})
		}
	}
	if r.plain() && !o.Owned() {
		return nil
	}
	namespaces := map[*compiled]string{}
	err := o.ReadJSON(func(plain []byte) error {
		return r.extractor.Each(plain, func(v rawjson.Value) bool {
			if rule := r.namespaces[v.Path]; rule != nil && v.Kind == rawjson.String {
				namespaces[rule] = string(v.Text)
			}
			r.add(l, v)
			return true
		})
	})
	for i := range l.references {
		if ns, ok := namespaces[l.references[i].rule]; ok {
			l.references[i].key.Namespace = ns
		}
	}
	return err
}

// slices reports whether r reads EndpointSlices.
func (r *reader) slices() bool {
	return len(r.rules) > 1 && r.rules[1].from.Resource == "endpointslices"
}

func (r *reader) add(l *links, v rawjson.Value) {
	switch rule := r.selectors[v.Path]; {
	case rule != nil:
		if s, ok := rule.read(v); ok {
			l.selections = append(l.selections, s)
		}
	case v.Path < len(r.rules):
		if ref, ok := r.rules[v.Path].read(v, l.key.Namespace, &l.texts); ok {
			l.references = append(l.references, ref)
		}
	}
}

// read takes one reference out of a value. What is malformed, empty or of a
// kind that does not count is none.
func (c *compiled) read(v rawjson.Value, namespace string, in *brief.Texts) (reference, bool) {
	ref := reference{rule: c, to: c.to, kind: c.kind, key: cache.Key{Namespace: namespace}}
	switch v.Kind {
	case rawjson.String:
		ref.key.Name = in.Add(v.Text)
		return ref, ref.key.Name != "" && c.To != ""
	case rawjson.Object:
		f := fragment{texts: in}
		if !f.read(v.Text) {
			return ref, false
		}
		return c.readFragment(ref, &f)
	default:
		return ref, false
	}
}

func (c *compiled) readFragment(ref reference, f *fragment) (reference, bool) {
	ref.key.Name = cmp.Or(f.name, f.secretName, f.claimName)
	ref.key.Namespace = cmp.Or(f.namespace, ref.key.Namespace)
	ref.optional = f.optional
	if c.byUID {
		ref.uid = f.uid
	}
	if ref.key.Name == "" || c.only != "" && f.kind != c.only {
		return ref, false
	}
	if c.To != "" {
		return ref, true
	}
	ref.kind = f.groupKind(c.kind)
	if c == ownerRule && ref.uid == "" {
		return ref, false
	}
	return ref, ref.kind.Kind != ""
}

// groupKind is what the reference says it names, completed by what it means
// when it does not.
func (f *fragment) groupKind(def schema.GroupKind) schema.GroupKind {
	kind := schema.GroupKind{Group: def.Group, Kind: cmp.Or(f.kind, def.Kind)}
	switch {
	case f.apiVersion != "":
		gv, err := schema.ParseGroupVersion(f.apiVersion)
		if err != nil {
			return schema.GroupKind{}
		}
		kind.Group = gv.Group
	case f.apiGroup != nil:
		kind.Group = *f.apiGroup
	case f.group != nil:
		kind.Group = *f.group
	}
	return kind
}
