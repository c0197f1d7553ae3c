package main

import (
	"sync"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/server"
)

// factoryCaches shows the informers of a factory to a server.
type factoryCaches struct {
	*replica.Factory

	mu  sync.Mutex          // guards all below
	of  []*replica.Informer // what all was made of
	all []server.Resource
}

var _ server.Caches = (*factoryCaches)(nil)

func (f *factoryCaches) Lookup(cluster, name string) (server.Resource, error) {
	i, err := f.Factory.Lookup(cluster, name)
	if i == nil {
		return nil, err // not a nil *Informer
	}
	return i, err
}

func (f *factoryCaches) Resource(r cache.Resource) (server.Resource, bool) {
	i, err := f.Informer(r)
	if err != nil {
		return nil, false
	}
	return i, true
}

// Resources are asked for every few seconds for each cluster, and are others only when some
// come or go. Callers share the slice, which nobody may modify.
func (f *factoryCaches) Resources() []server.Resource {
	informers := f.Informers()
	f.mu.Lock()
	defer f.mu.Unlock()
	if same := len(informers) == len(f.of) && (len(informers) == 0 || &informers[0] == &f.of[0]); same {
		return f.all
	}
	all := make([]server.Resource, len(informers))
	for n, i := range informers {
		all[n] = i
	}
	f.of, f.all = informers, all
	return all
}
