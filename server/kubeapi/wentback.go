package kubeapi

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/informerd/informerd/cache"
)

// presentTimeout bounds the wait for the present version of an API server, of
// those who can go on without.
const presentTimeout = 5 * time.Second

// WentBack reports whether version, which the copy has not reached, is proven
// never to have come to be: the API server is behind it, so the history that it is
// of was undone. That a copy is behind proves nothing, however current it is:
// versions may come from elsewhere, and an API server may lag behind another. An
// error says that the API server does not answer: it may come back restored, so
// whoever goes on from version has to be asked about again before that is passed.
func (a *API) WentBack(ctx context.Context, view *cache.View, version string) (bool, error) {
	if err := a.away(view.Spec.Cluster); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, presentTimeout)
	defer cancel()
	// Who asks at the same time shares an answer, and that may be to a question
	// from before this version came to be. The second one is not.
	for range 2 {
		present, err := a.sharedPresent(ctx, &target{&request{cluster: view.Spec.Cluster}, view})
		if err != nil {
			a.log.Debug("cannot learn the present version", "gvr", view.Spec.Resource.String(), "err", err)
			return false, err
		}
		if c, err := resourceversion.CompareResourceVersion(present, version); err != nil || c >= 0 {
			return false, nil
		}
	}
	return true, nil
}

// away is an error while the API server of a cluster is known not to answer: each
// question would be waited for in vain. Its return is noticed within a second.
func (a *API) away(cluster string) error {
	for _, c := range a.Caches.Clusters() {
		if c.Name == cluster && !c.Reachable {
			return errNoUpstream(cluster, errors.New(c.Err))
		}
	}
	return nil
}

func (a *API) sharedPresent(ctx context.Context, t *target) (string, error) {
	ch := a.asking.DoChan("present "+t.spec().Resource.String(), func() (any, error) {
		return a.present(context.WithoutCancel(ctx), t)
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case answer := <-ch:
		if answer.Err != nil {
			return "", answer.Err
		}
		return answer.Val.(string), nil
	}
}

// neverWas reports whether a watch from version would wait for what does not come, or
// comes to be as something else. It waits as long as nobody can tell.
func (s *stream) neverWas(ctx context.Context, version string) bool {
	for before(s.view.Store.Version(), version) {
		soon, cancel := context.WithTimeout(ctx, SuspectAfter)
		err := s.view.Store.WaitVersionIn(soon, s.namespace, version)
		cancel()
		if !errors.Is(err, cache.ErrTooNew) || ctx.Err() != nil {
			return false
		}
		if back, err := s.api.WentBack(ctx, s.view, version); err == nil {
			return back
		}
	}
	return false
}
