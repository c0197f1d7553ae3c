package cache

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
)

// identityPaths lead to what is known of an object without its JSON. No rule can take
// these out (rawjson.Compile refuses it).
var identityPaths = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// OfIdentity reports whether AppendIdentity has all that paths lead to.
func OfIdentity(paths []rawjson.Path) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p rawjson.Path) bool { return !slices.Contains(identityPaths, p.String()) })
}

// AppendIdentity appends what is known of o, an object of the resource, without its JSON,
// as JSON: of it, the values that OfIdentity is about, in the order that API servers give
// them. It is for answers that need no more; to unpack an object costs twenty times as
// much. ok is false where an API server may order them otherwise, or leave them out.
func (s *Spec) AppendIdentity(dst []byte, o *Object) (_ []byte, ok bool) {
	if s.Aggregated {
		return dst, false
	}
	version, kind := s.GVR.GroupVersion().String(), s.Kind
	member := func(name, value string) {
		if value == "" {
			return // the group of a namespace that there is not
		}
		if last := dst[len(dst)-1]; last != '{' {
			dst = append(dst, ',')
		}
		dst = appendText(append(append(append(dst, '"'), name...), `":`...), value)
	}
	dst = append(dst, '{')
	if s.CRDUID != "" { // kept as a map, which is written in the order of its keys
		member("apiVersion", version)
		member("kind", kind)
		dst = append(dst, `,"metadata":{`...)
		member("name", o.Name())
		member("namespace", o.Namespace())
		member("resourceVersion", o.ResourceVersion())
		member("uid", o.UID())
		return append(dst, "}}"...), true
	}
	member("kind", kind)
	member("apiVersion", version)
	dst = append(dst, `,"metadata":{`...)
	member("name", o.Name())
	member("namespace", o.Namespace())
	member("uid", o.UID())
	member("resourceVersion", o.ResourceVersion())
	return append(dst, "}}"...), true
}

// appendText appends a string of JSON.
func appendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic(err) // a string
			}
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// ReadAs is Read of other JSON than that which the objects are unpacked to: write appends
// that of object i.
func ReadAs(ctx context.Context, objects []*Object, write func(dst []byte, i int) ([]byte, error), visit func(ctx context.Context, worker, i int, json []byte) error) error {
	return (&reading{objects: objects, write: write, visit: visit}).run(ctx)
}
