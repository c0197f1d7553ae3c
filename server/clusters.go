package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/informerd/informerd/cache"
)

// clustersAsked are those that the parameters name, each once, or all that who asks is
// known in.
func (s *Server) clustersAsked(ctx context.Context, p params) ([]string, error) {
	var all []string
	seen := map[string]bool{}
	for _, name := range s.clustersOf(ctx, p) {
		if err := s.checkCluster(ctx, name); err != nil {
			return nil, err
		}
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		all = []string{""} // and nothing is known of it
	}
	return all, nil
}

// asksSeveral reports whether a request is about several clusters: it names them, or none
// where there are several.
func (s *Server) asksSeveral(r *http.Request) bool {
	return len(s.clustersOf(r.Context(), paramsOf(r))) > 1
}

// listOfSeveral answers about the resource in the path, and values of its indexes, as
// /v1/query does: each cluster has versions of its own, and may lack the resource.
func (s *Server) listOfSeveral(w http.ResponseWriter, r *http.Request, indexed ...string) error {
	name, err := pathValue(r, "resource")
	if err != nil {
		return err
	}
	p := params{maps.Clone(paramsOf(r).Values)}
	for _, one := range []string{"resourceVersion", "timeout"} {
		if p.Has(one) {
			return invalid(one, "each of several clusters has versions of its own: name the cluster")
		}
	}
	if strings.ContainsAny(name, globs+",") {
		return notFound("no resource is called %s", name)
	}
	p.Values["resources"] = []string{name}
	if len(indexed) > 0 {
		p.Values["index"] = slices.Concat(p.Values["index"], indexed)
	}
	return s.queryKinds(w, r.WithContext(context.WithValue(r.Context(), paramsKey{}, p)))
}

// isAway reports whether a cluster cannot answer now, or who asks be told what they may see
// of it.
func isAway(err error) bool {
	return errors.Is(err, cache.ErrNotSynced) || apierrors.IsServiceUnavailable(err)
}

// askEach asks clusters one after the other. One of several that cannot answer now is told
// to unanswered; if none can, or something else is wrong, that is the error.
func askEach(ctx context.Context, clusters []string, unanswered func(unansweredItem), ask func(cluster string) error) error {
	var away []error
	for _, cluster := range clusters {
		err := ask(cluster)
		switch {
		case err == nil:
			continue
		case len(clusters) == 1 || !isAway(err):
			return err
		}
		away = append(away, err)
		item := notTold(ctx, err)
		item.Cluster = cluster
		unanswered(item)
	}
	if len(away) == len(clusters) {
		return away[0]
	}
	return nil
}
