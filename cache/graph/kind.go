package graph

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
	"github.com/informerd/informerd/cache/internal/rows"
)

// kindID is the position of a kind in its state.
type kindID uint16

// kind is one resource of the cluster, or one that references name and the
// cluster does not know.
type kind struct {
	view    cache.View // not Readable: cannot be read
	version string     // up to which its objects are entered
	known   bool       // the cluster has it
	group   schema.GroupKind
	reader  *reader    // nil of what the cluster does not know
	byKey   rows.Table // nodes
}

// name is the resource as kubectl names it; of what the cluster does not know,
// what the reference said.
func (k *kind) name() string {
	if k.view.Spec.GVR.Resource != "" {
		return k.view.Spec.Name()
	}
	return k.group.String()
}

func (k *kind) namespaced() bool { return k.view.Spec.Namespaced || !k.known }

// forget marks a kind that the cluster does not have, or not any more.
func (k *kind) forget() {
	k.known, k.view.State = false, ""
	k.view.Hold(nil)
}

// covers reports whether what is not in a namespace of the copy is not in the
// cluster.
func (k *kind) covers(namespace string) bool {
	return k.view.Readable() && k.view.Store(inside.Cache).Covers(namespace)
}

// hub reports whether the object called name is one of hubs.
func (k *kind) hub(name string) bool {
	only, ok := hubs[k.name()]
	return ok && (only == "" || only == name)
}

// kinds finds kinds by what references call them.
type kinds struct {
	all        []*kind
	byResource map[schema.GroupResource]kindID
	byKind     map[schema.GroupKind]kindID
}

func newKinds() kinds {
	return kinds{byResource: map[schema.GroupResource]kindID{}, byKind: map[schema.GroupKind]kindID{}}
}

func (k *kinds) add(new *kind) kindID {
	k.all = append(k.all, new)
	return kindID(len(k.all) - 1)
}

// of returns the kind a reference names, made up if nobody knows it.
func (k *kinds) of(ref *reference) kindID {
	if ref.to.Resource != "" {
		if id, ok := k.byResource[ref.to]; ok {
			return id
		}
		id := k.add(&kind{view: cache.View{Spec: cache.Spec{Resource: cache.Resource{GVR: ref.to.WithVersion("")}}}})
		k.byResource[ref.to] = id
		return id
	}
	if id, ok := k.byKind[ref.kind]; ok {
		return id
	}
	group := schema.GroupKind{Group: strings.Clone(ref.kind.Group), Kind: strings.Clone(ref.kind.Kind)}
	id := k.add(&kind{group: group})
	k.byKind[group] = id
	return id
}

// learn enters a resource of the cluster. It reports false if references to it
// were read before anybody knew it, so that all have to be read again.
func (k *kinds) learn(spec *cache.Spec, readers readers) (kindID, bool) {
	group := schema.GroupKind{Group: spec.GVR.Group, Kind: spec.Kind}
	id, ok := k.byResource[spec.GVR.GroupResource()]
	if ok {
		known := k.all[id].known && k.all[id].group == group && k.all[id].view.Spec.Namespaced == spec.Namespaced
		return id, known
	}
	first, named := k.byKind[group]
	if named && !k.all[first].known {
		return 0, false
	}
	id = k.add(&kind{known: true, group: group, reader: readers.of(spec.GVR.GroupResource())})
	k.byResource[spec.GVR.GroupResource()] = id
	if !named && spec.Kind != "" {
		k.byKind[group] = id
	}
	return id, true
}
