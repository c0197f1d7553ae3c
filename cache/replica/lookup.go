package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
)

// Lookup finds a resource by the names kubectl accepts: pods, deployments.apps,
// deployments.v1.apps, the singular, short names and the kind, in any case. The
// cluster may be left out when there is only one. An unwatched resource is
// returned together with ErrNotWatched. As long as the cluster has not told which
// resources it has, none is unknown: that is ErrNotSynced.
func (f *Factory) Lookup(cluster, name string) (*Informer, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	cluster, err := f.clusterNameLocked(cluster)
	if err != nil {
		return nil, err
	}
	r, err := f.names[cluster].Find(name)
	if errors.Is(err, cache.ErrUnknownResource) && !f.discovered[cluster] {
		return nil, f.statusLocked(f.clusters[cluster]).NotDiscovered()
	}
	if err != nil {
		return nil, err
	}
	found := f.informers[r]
	if !found.Spec().Watch {
		return found, fmt.Errorf("%w: %s is left out by the configuration", cache.ErrNotWatched, found.resource.Name())
	}
	return found, nil
}

func (f *Factory) clusterNameLocked(name string) (string, error) {
	names := make([]string, 0, len(f.clusters))
	for c := range f.clusters {
		names = append(names, c)
	}
	slices.Sort(names)
	switch {
	case name != "" && slices.Contains(names, name):
		return name, nil
	case name != "":
		return "", invalidCluster("there is no cluster %q; there are: %s", name, strings.Join(names, ", "))
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", fmt.Errorf("%w: no cluster is known yet", cache.ErrNotSynced)
	default:
		return "", invalidCluster("there are several, name one of: %s", strings.Join(names, ", "))
	}
}

func invalidCluster(format string, args ...any) error {
	return &cache.InvalidError{Parameter: "cluster", Message: fmt.Sprintf(format, args...)}
}
