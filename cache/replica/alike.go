package replica

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// alike has the count of each resource's objects in all clusters. What is in it stays: there
// are as many resources as the clusters have.
type alike struct {
	mu  sync.Mutex // guards all
	all map[schema.GroupResource]*cache.Alike
}

func (a *alike) of(r schema.GroupResource) *cache.Alike {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[schema.GroupResource]*cache.Alike{}
	}
	if a.all[r] == nil {
		a.all[r] = &cache.Alike{}
	}
	return a.all[r]
}
