package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/drain"
	"github.com/informerd/informerd/server/audit"
)

// drainAnswer is what draining a node would do to its pods.
type drainAnswer struct {
	Kind       string             `json:"kind"`
	APIVersion string             `json:"apiVersion"`
	Node       string             `json:"node"`
	Summary    map[drain.Fate]int `json:"summary"`
	Items      []drainItem        `json:"items"`
	// Partial: there may be pods on the node that who asks may not see.
	Partial bool `json:"partial,omitempty"`
	// BudgetsUnknown: what would be blocked is not known of every pod.
	BudgetsUnknown bool `json:"budgetsUnknown,omitempty"`
}

type drainItem struct {
	ID         string     `json:"id"`
	Namespace  string     `json:"namespace"`
	Name       string     `json:"name"`
	Fate       drain.Fate `json:"fate"`
	Reason     string     `json:"reason,omitempty"`
	Controller string     `json:"controller,omitempty"`
	LosesData  bool       `json:"losesData,omitempty"`
}

func (s *Server) foreseeDrain(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	node, err := pathValue(r, "node")
	if err != nil {
		return err
	}
	pretty, err := p.flag("pretty")
	if err != nil {
		return err
	}
	cluster, err := s.clusterOf(r.Context(), p)
	if err != nil {
		return err
	}
	nodes, err := s.readableNamed(w, r, cluster, "nodes")
	if err != nil {
		return err
	}
	if _, ok := nodes.reader.Get(cache.Key{Name: node}); !ok {
		return notFound("nodes %q not found", node)
	}
	pods, err := s.readableNamed(w, r, cluster, "pods")
	if err != nil {
		return err
	}
	readers := drain.Readers{Pods: pods.reader}
	if readers.Budgets, readers.Knows, err = s.budgets(r.Context(), cluster); err != nil {
		return err
	}
	found, err := drain.Foresee(r.Context(), node, readers)
	if err != nil {
		return err
	}
	answer := drainAnswerOf(node, found)
	answer.Partial = !pods.scope.Whole()
	audit.From(r.Context()).Returned(len(answer.Items))
	setFreshness(w.Header(), pods.view, "")
	return writeTagged(w, r, answer, pretty)
}

// readableNamed is a resource of a cluster by its name.
func (s *Server) readableNamed(w http.ResponseWriter, r *http.Request, cluster, name string) (*viewed, error) {
	res, err := s.Caches.Lookup(cluster, name)
	if err != nil {
		return nil, err
	}
	recordResource(r, res.Spec())
	return readableOf(w, r, res, nil, cache.List)
}

// budgets are what can be read of PodDisruptionBudgets, and of which namespaces that is all
// there are. That they cannot be read is no error: the answer says so.
func (s *Server) budgets(ctx context.Context, cluster string) (*cache.Reader, func(namespace string) bool, error) {
	res, err := s.Caches.Lookup(cluster, "poddisruptionbudgets.policy")
	if errors.Is(err, cache.ErrNotFound) || errors.Is(err, cache.ErrNotWatched) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	v, err := see(ctx, res, cache.List)
	if err != nil {
		return nil, nil, err
	}
	return v.reader, v.scope.Namespace, nil
}

func drainAnswerOf(node string, found *drain.Answer) *drainAnswer {
	a := &drainAnswer{Kind: "Drain", APIVersion: apiVersion, Node: node, Summary: map[drain.Fate]int{}, Items: []drainItem{}, BudgetsUnknown: found.BudgetsUnknown}
	for _, f := range drain.Fates {
		a.Summary[f] = found.Counts[f]
	}
	for _, p := range found.Pods {
		a.Items = append(a.Items, drainItem{objectID("pods", p.Key), p.Key.Namespace, p.Key.Name, p.Fate, p.Reason, p.Controller, p.LosesData})
	}
	return a
}
