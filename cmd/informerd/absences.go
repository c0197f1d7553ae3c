package main

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/discovery"
)

// absences know what clusters have told last of which resources they have. A handler tells the
// ends of all objects of a resource that has gone: that its group does not answer is no reason.
type absences struct {
	mu   sync.Mutex // guards sets
	sets map[string]discovery.Set
}

func (a *absences) hear(cluster string, set discovery.Set) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sets == nil {
		a.sets = map[string]discovery.Set{}
	}
	a.sets[cluster] = set
}

// remove forgets what a cluster has told.
func (a *absences) remove(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sets, cluster)
}

// lacks reports whether a cluster has told that it has no such resource, in no version.
func (a *absences) lacks(cluster string, r schema.GroupResource) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	set, ok := a.sets[cluster]
	if !ok || set.Provisional {
		return false
	}
	for version := range set.Failed {
		if version.Group == r.Group {
			return false
		}
	}
	for _, p := range set.Pending {
		if p.GroupResource() == r {
			return false
		}
	}
	_, has := set.Get(r)
	return !has
}

// hear is told what a cluster has.
func (d *deliveries) hear(cluster string, set discovery.Set) {
	if d.absences != nil {
		d.absences.hear(cluster, set)
	}
}

// remove forgets a cluster.
func (d *deliveries) remove(cluster string) {
	if d.absences != nil {
		d.absences.remove(cluster)
	}
}
