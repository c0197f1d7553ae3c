package main

import (
	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/server"
)

// factoryCaches shows the informers of a factory to a server.
type factoryCaches struct{ *replica.Factory }

var _ server.Caches = factoryCaches{}

func (f factoryCaches) Lookup(cluster, name string) (server.Resource, error) {
	i, err := f.Factory.Lookup(cluster, name)
	if i == nil {
		return nil, err // not a nil *Informer
	}
	return i, err
}

func (f factoryCaches) Resource(r cache.Resource) (server.Resource, bool) {
	i, err := f.Informer(r)
	if err != nil {
		return nil, false
	}
	return i, true
}

func (f factoryCaches) Resources() []server.Resource {
	informers := f.Informers()
	all := make([]server.Resource, len(informers))
	for n, i := range informers {
		all[n] = i
	}
	return all
}
