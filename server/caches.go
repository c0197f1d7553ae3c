package server

import (
	"github.com/informerd/informerd/cache"
)

// Caches is what the server needs of the running informers. Implementations are
// safe for concurrent use.
type Caches interface {
	// Lookup finds a resource by the names kubectl accepts. The cluster may be
	// empty when there is only one. An unwatched resource is returned together
	// with cache.ErrNotWatched; other errors are cache.ErrUnknownResource,
	// cache.ErrNotSynced as long as its cluster has not told which resources it
	// has, and *cache.InvalidError.
	Lookup(cluster, name string) (Resource, error)
	// Resource finds a resource by its exact name; false if it is not known.
	Resource(cache.Resource) (Resource, bool)
	// Resources are all known ones, unwatched included, in the order of
	// cache.Resource.Compare. Callers may share the slice, which nobody may modify.
	Resources() []Resource
	Clusters() []cache.ClusterStatus
	SnapshotStatus() cache.SnapshotStatus
}

// Resource is one resource as the server sees it; *replica.Informer is one.
type Resource interface {
	// Spec is what is wanted of it now: it is found by this.
	Spec() cache.Spec
	// View is what it is worth now. An answer is made of one View, taken once.
	View() *cache.View
	// Status is a View with counts, which take longer.
	Status() cache.Status
}
