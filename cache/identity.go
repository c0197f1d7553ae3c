package cache

import (
	"encoding/json"
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
)

// Identity is some of what is known of an object without its JSON. No rule can take these out
// (rawjson.Compile refuses it).
type Identity uint8

const (
	identityVersion Identity = 1 << iota
	identityKind
	identityName
	identityNamespace
	identityUID
	identityResourceVersion

	// WholeIdentity is all of it.
	WholeIdentity = 1<<iota - 1
)

// identityPaths lead to it, in the order of its bits.
var identityPaths = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

const identityMetadata = identityName | identityNamespace | identityUID | identityResourceVersion

// IdentityOf is what paths lead to, and 0 if there are none or if one leads to something else.
func IdentityOf(paths []rawjson.Path) Identity {
	var all Identity
	for _, p := range paths {
		i := slices.Index(identityPaths, p.String())
		if i < 0 {
			return 0
		}
		all |= 1 << i
	}
	return all
}

// AppendIdentity appends the wanted of what is known of o, an object of the resource, without
// its JSON, as JSON: what rawjson.Projection makes of the object, in the order that API servers
// give it. It is for answers that need no more; to unpack an object costs twenty times as
// much. ok is false where an API server may order them otherwise, or leave them out.
func (s *Spec) AppendIdentity(dst []byte, o *Object, wanted Identity) (_ []byte, ok bool) {
	if s.Aggregated {
		return dst, false
	}
	w := identityWriter{append(dst, '{'), wanted}
	if s.CRDUID != "" { // kept as a map, which is written in the order of its keys
		w.member(identityVersion, `"apiVersion":`, s.GVR.GroupVersion().String())
		w.member(identityKind, `"kind":`, s.Kind)
		w.open()
		w.member(identityName, `"name":`, o.Name())
		w.member(identityNamespace, `"namespace":`, o.Namespace())
		w.member(identityResourceVersion, `"resourceVersion":`, o.ResourceVersion())
		w.member(identityUID, `"uid":`, o.UID())
		return w.close(), true
	}
	w.member(identityKind, `"kind":`, s.Kind)
	w.member(identityVersion, `"apiVersion":`, s.GVR.GroupVersion().String())
	w.open()
	w.member(identityName, `"name":`, o.Name())
	w.member(identityNamespace, `"namespace":`, o.Namespace())
	w.member(identityUID, `"uid":`, o.UID())
	w.member(identityResourceVersion, `"resourceVersion":`, o.ResourceVersion())
	return w.close(), true
}

// identityWriter writes the wanted members of an object and of its metadata.
type identityWriter struct {
	dst    []byte
	wanted Identity
}

// member writes one, unless there is none, as there is no namespace of a Namespace.
func (w *identityWriter) member(which Identity, name, value string) {
	if w.wanted&which == 0 || value == "" {
		return
	}
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = appendText(append(w.dst, name...), value)
}

func (w *identityWriter) open() {
	if w.wanted&identityMetadata == 0 {
		return
	}
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, `"metadata":{`...)
}

func (w *identityWriter) close() []byte {
	if w.wanted&identityMetadata != 0 {
		w.dst = append(w.dst, '}')
	}
	return append(w.dst, '}')
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
