package kubeapi

import (
	"context"
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
// versions may come from elsewhere, and an API server may lag behind another. Nor
// does an API server that does not answer.
func (a *API) WentBack(ctx context.Context, view *cache.View, version string) bool {
	if a.outages.last(view.Spec.Cluster, time.Now()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, presentTimeout)
	defer cancel()
	// Who asks at the same time shares an answer, and that may be to a question
	// from before this version came to be. The second one is not.
	for range 2 {
		present, err := a.sharedPresent(ctx, &target{&request{cluster: view.Spec.Cluster}, view})
		if err != nil {
			a.log.Debug("cannot learn the present version", "gvr", view.Spec.Resource.String(), "err", err)
			return false
		}
		if c, err := resourceversion.CompareResourceVersion(present, version); err != nil || c >= 0 {
			return false
		}
	}
	return true
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

// neverWas reports whether a watch from version would wait for what does not come.
func (s *stream) neverWas(ctx context.Context, version string) bool {
	if !before(s.view.Store.Version(), version) {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, SuspectAfter)
	defer cancel()
	return s.view.Store.WaitVersionIn(soon, s.namespace, version) != nil && s.api.WentBack(ctx, s.view, version)
}
