package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/cache/health"
	"github.com/informerd/informerd/cache/search"
)

// relations holds, for each cluster, what is computed from several resources at
// once. Its parts do nothing until they are asked.
type relations struct {
	caches Caches

	mu         sync.Mutex // guards all below
	references []graph.Rule
	texts      map[string][]string
	graphs     map[string]*graph.Graph
	searches   map[string]*search.Search
	healths    map[string]*health.Index
}

// newRelations fails for references and paths that cannot be read.
func newRelations(opts Options) (*relations, error) {
	r := &relations{
		caches: opts.Caches, references: opts.References, texts: opts.SearchTexts,
		graphs: map[string]*graph.Graph{}, searches: map[string]*search.Search{}, healths: map[string]*health.Index{},
	}
	if _, err := r.newGraph(""); err != nil {
		return nil, err
	}
	if _, err := r.newSearch(""); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *relations) newGraph(cluster string) (*graph.Graph, error) {
	return graph.New(func() []follow.Resource { return r.resources(cluster) }, graph.Options{Declared: r.references})
}

func (r *relations) newSearch(cluster string) (*search.Search, error) {
	return search.New(func() []follow.Resource { return r.resources(cluster) }, search.Options{Texts: r.texts})
}

// Declare replaces Options.References and Options.SearchTexts while the Server
// runs. What did not change is left alone; after an error that is everything.
func (s *Server) Declare(references []graph.Rule, texts map[string][]string) error {
	return s.relations.declare(references, texts)
}

func (r *relations) declare(references []graph.Rule, texts map[string][]string) error {
	next, err := newRelations(Options{Caches: r.caches, References: references, SearchTexts: texts})
	if err != nil {
		return err
	}
	graphs, searches := r.outdated(next)
	for _, g := range graphs {
		err = errors.Join(err, g.Declare(references))
	}
	for _, s := range searches {
		err = errors.Join(err, s.Declare(texts))
	}
	return err
}

// outdated takes over what next declares and returns what was made before by
// other declarations. Those that are made from now on need nothing.
func (r *relations) outdated(next *relations) (graphs []*graph.Graph, searches []*search.Search) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.references, next.references) {
		r.references = next.references
		graphs = slices.Collect(maps.Values(r.graphs))
	}
	if !maps.EqualFunc(r.texts, next.texts, slices.Equal) {
		r.texts = next.texts
		searches = slices.Collect(maps.Values(r.searches))
	}
	return graphs, searches
}

// graph is that of a cluster.
func (r *relations) graph(cluster string) (*graph.Graph, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.graphs[cluster]; g != nil {
		return g, nil
	}
	g, err := r.newGraph(cluster)
	if err != nil {
		return nil, fmt.Errorf("make the graph: %w", err)
	}
	r.graphs[cluster] = g
	return g, nil
}

// search is that of a cluster.
func (r *relations) search(cluster string) (*search.Search, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.searches[cluster]; s != nil {
		return s, nil
	}
	s, err := r.newSearch(cluster)
	if err != nil {
		return nil, fmt.Errorf("make the search: %w", err)
	}
	r.searches[cluster] = s
	return s, nil
}

// health is that of a cluster.
func (r *relations) health(cluster string) *health.Index {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.healths[cluster]
	if h == nil {
		h = health.NewIndex(func() []follow.Resource { return r.resources(cluster) })
		r.healths[cluster] = h
	}
	return h
}

// keepOnly forgets what was computed of clusters that are there no more.
func (r *relations) keepOnly(clusters []cache.ClusterStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.known() {
		if !slices.ContainsFunc(clusters, func(c cache.ClusterStatus) bool { return c.Name == name }) {
			delete(r.graphs, name)
			delete(r.searches, name)
			delete(r.healths, name)
		}
	}
}

// known are the names of the clusters of which there is something. The caller holds mu.
func (r *relations) known() map[string]bool {
	names := map[string]bool{}
	for name := range r.graphs {
		names[name] = true
	}
	for name := range r.searches {
		names[name] = true
	}
	for name := range r.healths {
		names[name] = true
	}
	return names
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

var (
	graphNodes    = relationDesc("graph_nodes", "Objects in the graph, and what they name.")
	graphEdges    = relationDesc("graph_edges", "References in the graph.")
	graphUnread   = relationDesc("graph_unread_total", "Objects whose references could not be read.")
	searchObjects = relationDesc("search_objects", "Objects that can be found.")
	searchTexts   = relationDesc("search_texts", "Different texts they can be found by.")
	searchUnread  = relationDesc("search_unread_total", "Objects of which only identity and labels can be found.")

	healthObjects = prometheus.NewDesc("informerd_health_objects", "Objects by what state they are in by themselves.",
		[]string{"cluster", "resource", "status"}, nil)
)

func relationDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("informerd_"+name, help, []string{"cluster"}, nil)
}

// Describe is of prometheus.Collector.
func (r *relations) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{graphNodes, graphEdges, graphUnread, searchObjects, searchTexts, searchUnread, healthObjects} {
		ch <- d
	}
}

// Collect is of prometheus.Collector. It says nothing of what was not asked yet. The counts
// of objects by health it brings up to date first, and waits for that: an update that is
// given up begins anew with the next scrape, and might never end.
func (r *relations) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	graphs, searches, healths := maps.Clone(r.graphs), maps.Clone(r.searches), maps.Clone(r.healths)
	r.mu.Unlock()
	for cluster, g := range graphs {
		s := g.Stats()
		ch <- constant(graphNodes, prometheus.GaugeValue, float64(s.Nodes), cluster)
		ch <- constant(graphEdges, prometheus.GaugeValue, float64(s.Edges), cluster)
		ch <- constant(graphUnread, prometheus.CounterValue, float64(s.Unread), cluster)
	}
	for cluster, e := range searches {
		s := e.Stats()
		ch <- constant(searchObjects, prometheus.GaugeValue, float64(s.Objects), cluster)
		ch <- constant(searchTexts, prometheus.GaugeValue, float64(s.Texts), cluster)
		ch <- constant(searchUnread, prometheus.CounterValue, float64(s.Unread), cluster)
	}
	for cluster, h := range healths {
		for _, s := range h.Stats(context.Background()) {
			for _, status := range health.Statuses {
				ch <- constant(healthObjects, prometheus.GaugeValue, float64(s.Objects[status]), cluster, s.Resource, status.String())
			}
		}
	}
}

// clusterOf is the cluster a request asks about where no resource says so.
func (s *Server) clusterOf(ctx context.Context, p params) (string, error) {
	name := p.Get("cluster")
	if err := s.checkCluster(ctx, name); err != nil || name != "" {
		return name, err
	}
	names := s.clusterNames(ctx)
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
		if errors.Is(err, cache.ErrNotSynced) {
			return nil, fmt.Errorf("%s: %w", parameter, err)
		}
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

// objectID is the end of an object's paths in the API.
func objectID(resource string, key cache.Key) string {
	return string(appendObjectID(nil, resource, key))
}

func appendObjectID(dst []byte, resource string, key cache.Key) []byte {
	namespace := key.Namespace
	if namespace == "" {
		namespace = "-"
	}
	dst = append(append(dst, resource...), '/')
	dst = append(append(dst, namespace...), '/')
	return append(dst, key.Name...)
}

// unansweredItem is a resource that an answer over many lacks.
type unansweredItem struct {
	// Cluster is told where several were asked.
	Cluster  string      `json:"cluster,omitempty"`
	Resource string      `json:"resource"`
	State    cache.State `json:"state"`
	Reason   string      `json:"reason,omitempty"`
}

func unansweredItems(views []cache.View) []unansweredItem {
	items := []unansweredItem{}
	for _, v := range views {
		items = append(items, unansweredItem{Resource: v.Spec.Name(), State: v.State, Reason: v.Reason})
	}
	slices.SortFunc(items, func(a, b unansweredItem) int { return strings.Compare(a.Resource, b.Resource) })
	return items
}
