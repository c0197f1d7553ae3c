package discovery

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one resource the cluster serves with list and watch, in one
// version. It is immutable: its slices are shared by every Set that holds it.
type Resource struct {
	// GVR is what to watch. Its version is the pinned one, else the first in
	// the server's order that can be listed and watched.
	GVR schema.GroupVersionResource
	// Kind and ListKind name the objects and lists of this version.
	Kind     string
	ListKind string
	// Singular, ShortNames and Categories are the names kubectl accepts.
	// Singular may be empty.
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool
	Verbs      []string
	// Versions are all served versions that can be listed and watched, in the
	// server's order. GVR.Version is one of them, but for a stale entry.
	Versions []string

	// Aggregated is true when an APIService hands this version to a server of
	// its own, whose resourceVersions must never be resumed from. Where
	// APIServices cannot be read it is true for every group that is neither
	// built in nor known from a CRD.
	Aggregated bool

	// CRDUID and CRDGeneration identify the schema of a custom resource: after
	// a change of either, equal resourceVersions do not mean equal bytes. They
	// are "" and 0 for other resources, and where CRDs cannot be read: an empty
	// CRDUID is unknown, not changed.
	CRDUID        string
	CRDGeneration int64
	// SelectableFields are the JSON paths of this version that the CRD makes
	// selectable, such as ".spec.color".
	SelectableFields []string

	// Stale is true when the last answer said nothing certain about this
	// resource: its entry is carried over from the last good answer.
	Stale bool
}

// GroupResource is the resource without its version: unique within a Set.
func (r Resource) GroupResource() schema.GroupResource { return r.GVR.GroupResource() }

// GVK is what the data is.
func (r Resource) GVK() schema.GroupVersionKind { return r.GVR.GroupVersion().WithKind(r.Kind) }

// Set is one full answer. It is immutable and may be shared.
type Set struct {
	// Resources are sorted by group, then resource; each GroupResource occurs
	// once. Core events stand for events.k8s.io too, which serves the same
	// objects, unless events.k8s.io is pinned.
	Resources []Resource
	// Failed holds the group versions that did not answer, and why. What is
	// known of their resources from before is in Resources, marked Stale; of
	// one that never answered nothing is known, so a resource of it that is
	// missing here is unknown, not gone: see Unknown.
	Failed map[schema.GroupVersion]error
	// Pending are resources whose CRD is established and that discovery does
	// not serve, for now. They occur for a moment after a CRD was created, and
	// while an API server starts.
	Pending []schema.GroupVersionResource
	// Provisional is true for the first Sets where no watch on CRDs and
	// APIServices could tell whether the first answer was complete, or where API
	// servers of different versions answer. A Set that is not follows soon.
	Provisional bool
	// ServerVersion is the API server's gitVersion, "" if it does not tell.
	ServerVersion string
}

// Get returns the resource reported for gr.
func (s Set) Get(gr schema.GroupResource) (Resource, bool) {
	i, ok := slices.BinarySearchFunc(s.Resources, gr, func(r Resource, gr schema.GroupResource) int {
		return compareGroupResource(r.GroupResource(), gr)
	})
	if !ok {
		return Resource{}, false
	}
	return s.Resources[i], true
}

// Unknown tells whether gvr may be served although Resources does not say so.
// Such a resource must not be taken for gone, nor its snapshot be dropped.
func (s Set) Unknown(gvr schema.GroupVersionResource) bool {
	_, failed := s.Failed[gvr.GroupVersion()]
	return failed || s.Provisional || slices.Contains(s.Pending, gvr)
}

// Equal tells whether both say the same. Which group versions failed counts,
// the wording of their errors does not.
func (s Set) Equal(o Set) bool {
	return s.ServerVersion == o.ServerVersion && s.Provisional == o.Provisional &&
		slices.Equal(s.Pending, o.Pending) &&
		maps.EqualFunc(s.Failed, o.Failed, func(error, error) bool { return true }) &&
		slices.EqualFunc(s.Resources, o.Resources, func(a, b Resource) bool { return reflect.DeepEqual(a, b) })
}

// String is short enough for a log line.
func (s Set) String() string {
	return fmt.Sprintf("%d resources, %d group versions failed, server %s", len(s.Resources), len(s.Failed), s.ServerVersion)
}
