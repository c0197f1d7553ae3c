package kubeapi

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"
)

// edition tells sets of resources of a cluster apart by what its documents say
// of them: which there are, and by which definitions. The order of the resources
// does not count.
func edition(resources []Resource, cluster string) (sum uint64) {
	for _, r := range resources {
		s := r.Spec()
		if s.Cluster != cluster {
			continue
		}
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%q %q %q %q %t %q %d", s.GVR.Group, s.GVR.Version, s.GVR.Resource, s.Kind, s.Namespaced, s.CRDUID, s.CRDGeneration)
		sum += h.Sum64()
	}
	return sum
}

// editions notes when the resources of clusters changed. informerd learns of a
// new definition within moments, and what was fetched before does not tell of it.
// What is fetched soon after may not either: an API server makes its documents
// some time after it serves the resource, and of several behind one address each
// has its own. The zero value is ready.
type editions struct {
	mu        sync.Mutex // guards byCluster
	byCluster map[string]served
}

// served is since when a cluster serves what it does.
type served struct {
	edition uint64
	since   time.Time
	// settled is from when on the documents of the API server are expected to
	// tell of it.
	settled time.Time
}

// serves notes that a cluster now serves an edition.
func (e *editions) serves(cluster string, edition uint64, now time.Time) served {
	e.mu.Lock()
	defer e.mu.Unlock()
	was, known := e.byCluster[cluster]
	if known && was.edition == edition {
		return was
	}
	is := served{edition: edition, since: now, settled: now}
	if known {
		is.settled = now.Add(documentAge)
	}
	if e.byCluster == nil {
		e.byCluster = map[string]served{}
	}
	e.byCluster[cluster] = is
	return is
}

// forget forgets a cluster.
func (e *editions) forget(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byCluster, cluster)
}

// trusts reports whether a document is given without asking whether it still
// holds. Asking costs little: it has a tag.
func (s served) trusts(fetched, now time.Time) bool {
	age := now.Sub(fetched) // below 0: another run's clock was wrong
	return 0 <= age && age < documentAge && !fetched.Before(s.since) && !now.Before(s.settled)
}
