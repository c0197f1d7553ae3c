package cache

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource names one resource of one cluster. It is the key of everything in
// this package; the cluster is part of it so that two clusters never mix.
type Resource struct {
	Cluster string
	GVR     schema.GroupVersionResource
}

// Name is the resource as kubectl names it: "pods", "deployments.apps".
func (r Resource) Name() string { return r.GVR.GroupResource().String() }

// String is the name with its version, and with the cluster when it is named:
// "pods", "deployments.v1.apps", "east/pods".
func (r Resource) String() string {
	name := r.GVR.Resource
	if r.GVR.Group != "" {
		name += "." + r.GVR.Version + "." + r.GVR.Group
	}
	if r.Cluster != "" {
		return r.Cluster + "/" + name
	}
	return name
}

// Compare orders resources by cluster, group, resource and version.
func (r Resource) Compare(o Resource) int {
	return cmp.Or(
		strings.Compare(r.Cluster, o.Cluster),
		strings.Compare(r.GVR.Group, o.GVR.Group),
		strings.Compare(r.GVR.Resource, o.GVR.Resource),
		strings.Compare(r.GVR.Version, o.GVR.Version),
	)
}

// Key names one object within a resource. Namespace is empty for objects of
// cluster scope.
type Key struct {
	Namespace, Name string
}

// String is namespace/name, or the name alone at cluster scope.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders keys by namespace, then name, as the API server lists them.
func (k Key) Compare(o Key) int {
	if c := strings.Compare(k.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, o.Name)
}

// Spec says what is to be done with one discovered resource: whether it is
// watched, which of its objects, what of them is kept, and what is indexed.
// A Spec is a value: once given to Apply it must not be modified.
type Spec struct {
	Resource
	Kind       string
	Singular   string
	ShortNames []string
	Namespaced bool
	// ListKind and Categories are only told to clients that discover resources.
	// An empty ListKind is the Kind with "List".
	ListKind   string   `json:",omitempty"`
	Categories []string `json:",omitempty"`

	// Watch is false for a resource that is known but left out by the
	// configuration; it is listed as unwatched and nothing else happens.
	Watch bool

	// Namespaces are globs over namespace names; none means all.
	Namespaces []string
	// LabelSelector and FieldSelector are sent to the API server with every
	// list and watch, in its grammar.
	LabelSelector string
	FieldSelector string
	// ShardSelector is sent to the API server, too (KEP-5866). One that does not know it
	// sends all objects: those of other shards are left out here.
	ShardSelector string `json:",omitempty"`
	// Indexes maps an index name to the field path it covers. The built-in
	// indexes (namespace, label, owner) are not named here.
	Indexes map[string]string
	// Drop names paths cut out of every object before it is stored.
	Drop []string
	// Redact names paths whose keys stay while their values are emptied
	// before the object is stored.
	Redact []string
	// Columns is no part of what a copy holds: Store.SetColumns changes it at any time.
	Columns ColumnRules `json:"-"`

	// Aggregated marks a resource of an aggregated API server, whose
	// resourceVersions are never resumed (kubernetes-sigs/metrics-server and
	// others accept any version and then miss events).
	Aggregated bool
	// CRDUID and CRDGeneration identify the definition of a custom resource.
	// Another definition may default or convert objects differently without
	// changing their resourceVersion, so it is part of a snapshot's scope.
	CRDUID        string
	CRDGeneration int64
}

// Partial reports whether objects are left out by something other than their namespace, so
// that what is not in the copy may be there nevertheless.
func (s Spec) Partial() bool {
	return s.LabelSelector != "" || s.FieldSelector != "" || s.ShardSelector != ""
}

// SameSelection reports whether both Specs are about the same objects.
func (s Spec) SameSelection(as Spec) bool {
	return slices.Equal(s.Namespaces, as.Namespaces) && s.LabelSelector == as.LabelSelector &&
		s.FieldSelector == as.FieldSelector && s.ShardSelector == as.ShardSelector
}

// Selects reports whether the objects of a namespace belong to the copy.
func (s Spec) Selects(namespace string) bool { return namespaceFilter(s.Namespaces).match(namespace) }
