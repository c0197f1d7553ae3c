package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/graph"
)

// relations holds, for each cluster, what is computed from several resources at
// once. Its parts do nothing until they are asked.
type relations struct {
	caches Caches

	mu     sync.Mutex // guards all below
	graphs map[string]*graph.Graph
}

func newRelations(caches Caches) *relations {
	return &relations{caches: caches, graphs: map[string]*graph.Graph{}}
}

// graph is that of a cluster.
func (r *relations) graph(cluster string) (*graph.Graph, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.graphs[cluster]; g != nil {
		return g, nil
	}
	g, err := graph.New(func() []follow.Resource { return r.resources(cluster) }, graph.Options{})
	if err != nil {
		return nil, fmt.Errorf("make the graph: %w", err)
	}
	r.graphs[cluster] = g
	return g, nil
}

func (r *relations) resources(cluster string) []follow.Resource {
	var all []follow.Resource
	for _, resource := range r.caches.Resources() {
		if resource.Spec().Cluster == cluster {
			all = append(all, resource)
		}
	}
	return all
}

// clusterOf is the cluster a request asks about where no resource says so.
func (s *Server) clusterOf(p params) (string, error) {
	name := p.Get("cluster")
	if err := s.checkCluster(name); err != nil || name != "" {
		return name, err
	}
	var names []string
	for _, c := range s.Caches.Clusters() {
		names = append(names, c.Name)
	}
	if len(names) > 1 {
		return "", invalid("cluster", "there are several, name one of: %s", strings.Join(names, ", "))
	}
	return strings.Join(names, ""), nil
}

// resourceNames reads a list of resources as kubectl names them.
func (s *Server) resourceNames(p params, parameter, cluster string) ([]schema.GroupResource, error) {
	var out []schema.GroupResource
	names, err := p.words(parameter)
	for _, name := range names {
		res, err := s.Caches.Lookup(cluster, name)
		if err != nil && !errors.Is(err, cache.ErrNotWatched) {
			return nil, invalid(parameter, "%v", err)
		}
		out = append(out, res.Spec().GVR.GroupResource())
	}
	return out, err
}

// words reads a list separated by commas; there are none if it is absent.
func (p params) words(name string) ([]string, error) {
	if !p.Has(name) {
		return nil, nil
	}
	words := strings.Split(p.Get(name), ",")
	for i := range words {
		if words[i] = strings.TrimSpace(words[i]); words[i] == "" {
			return nil, invalid(name, "%q has an empty part; write names with commas between them", p.Get(name))
		}
	}
	return words, nil
}

// oneOf reads a parameter that has few values; def is that of one not given.
func (p params) oneOf(name, def string, known ...string) (string, error) {
	if !p.Has(name) {
		return def, nil
	}
	v := p.Get(name)
	if !slices.Contains(known, v) {
		return "", invalid(name, "%q is not one of: %s", v, strings.Join(known, ", "))
	}
	return v, nil
}

// between reads a number within bounds; def is that of one not given.
func (p params) between(name string, def, least, most int) (int, error) {
	if !p.Has(name) {
		return def, nil
	}
	n, err := p.count(name)
	if err != nil || n < least || n > most {
		return 0, invalid(name, "%q is not a number from %d to %d", p.Get(name), least, most)
	}
	return n, nil
}

// unansweredItem is a resource that an answer over many lacks.
type unansweredItem struct {
	Resource string      `json:"resource"`
	State    cache.State `json:"state"`
	Reason   string      `json:"reason,omitempty"`
}

func unansweredItems(statuses []cache.Status) []unansweredItem {
	items := []unansweredItem{}
	for _, s := range statuses {
		items = append(items, unansweredItem{s.Spec.Name(), s.State, s.Reason})
	}
	slices.SortFunc(items, func(a, b unansweredItem) int { return strings.Compare(a.Resource, b.Resource) })
	return items
}
