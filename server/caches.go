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
	// cache.Resource.Compare.
	Resources() []Resource
	Clusters() []cache.ClusterStatus
	SnapshotStatus() cache.SnapshotStatus
}

// Resource is one resource as the server sees it; *cache.Informer is one.
type Resource interface {
	Spec() cache.Spec
	Status() cache.Status
	// Store is nil while the resource is not watched.
	Store() *cache.Store
}

// FromFactory shows the informers of f to a server.
func FromFactory(f *cache.Factory) Caches { return factory{f} }

type factory struct{ *cache.Factory }

func (f factory) Lookup(cluster, name string) (Resource, error) {
	i, err := f.Factory.Lookup(cluster, name)
	if i == nil {
		return nil, err // not a nil *Informer
	}
	return i, err
}

func (f factory) Resource(r cache.Resource) (Resource, bool) {
	i, err := f.Informer(r)
	if err != nil {
		return nil, false
	}
	return i, true
}

func (f factory) Resources() []Resource {
	informers := f.Informers()
	all := make([]Resource, len(informers))
	for n, i := range informers {
		all[n] = i
	}
	return all
}
