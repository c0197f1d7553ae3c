package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
)

// unknownResources is what the resources are called that a cluster has not told
// yet, where an answer names what it lacks.
const unknownResources = "*"

// undiscovered is why a cluster may have resources that are not known, nil if it
// has none. Ask before looking for resources: a cluster that tells them meanwhile
// would make what was not found look absent.
func (s *Server) undiscovered(cluster string) error {
	for _, c := range s.Caches.Clusters() {
		if c.Name == cluster {
			return c.NotDiscovered()
		}
	}
	return fmt.Errorf("%w: no cluster is known yet", cache.ErrNotSynced)
}

// checkKnown refuses a question about all resources of a cluster while none is
// known. Where some are, missing names the others among what is not answered.
func (s *Server) checkKnown(ctx context.Context, cluster string) (missing []unansweredItem, err error) {
	if err = s.undiscovered(cluster); err == nil {
		return nil, nil
	}
	if len(s.relations.resources(cluster)) == 0 {
		return nil, err
	}
	return []unansweredItem{notTold(ctx, err)}, nil
}

// notTold is all that a cluster has and has not told.
func notTold(ctx context.Context, err error) unansweredItem {
	return unansweredItem{Resource: unknownResources, State: cache.Syncing, Reason: kubeapi.Discreet(ctx, err).Error()}
}

// undiscoveredKinds are the resources that patterns may mean and that are not
// known yet, one for all of a cluster. Without globs each is one by itself.
func (s *Server) undiscoveredKinds(ctx context.Context, clusters []string, patterns string) (states []kindState) {
	for _, c := range s.Caches.Clusters() {
		err := c.NotDiscovered()
		if err == nil || !slices.Contains(clusters, c.Name) {
			continue
		}
		if strings.ContainsAny(patterns, globs) {
			states = append(states, untold(ctx, c.Name, unknownResources, err))
			continue
		}
		for name := range strings.SplitSeq(patterns, ",") {
			name = strings.TrimSpace(name)
			if _, err := s.Caches.Lookup(c.Name, name); len(clusters) > 1 && errors.Is(err, cache.ErrNotSynced) {
				states = append(states, untold(ctx, c.Name, name, err))
			}
		}
	}
	return states
}

// untold is a resource of a cluster of which nothing can be told now.
func untold(ctx context.Context, cluster, resource string, err error) kindState {
	return kindState{Cluster: cluster, Resource: resource, State: cache.Syncing, Reason: kubeapi.Discreet(ctx, err).Error()}
}
