package kubeapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/informerd/informerd/cache"
)

const (
	// presentTimeout bounds the wait for the present version of an API server, of
	// those who can go on without.
	presentTimeout = 5 * time.Second
	// unansweredPause is how long a question that was not answered is not asked again,
	// by however many clients. One that was waited for in vain is let rest as long again.
	unansweredPause = time.Second
)

// WentBack reports whether version, which the copy has not reached, is proven
// never to have come to be: the API server is behind it, so the history that it is
// of was undone. That a copy is behind proves nothing, however current it is:
// versions may come from elsewhere, and an API server may lag behind another. An
// error says that the API server does not answer now: it may come back restored, so
// whoever goes on from version has to be asked about again before that is passed.
// Where nobody ever answers, clients go on.
func (a *API) WentBack(ctx context.Context, view *cache.View, version string) (bool, error) {
	if a.alone || view.Spec.Aggregated {
		return false, nil
	}
	if err := a.away(view.Spec.Cluster); err != nil {
		return false, err
	}
	// Who asks at the same time shares an answer, and that may be to a question
	// from before this version came to be. The second one is not.
	heard := time.Now()
	for range 2 {
		present, asked, err := a.sharedPresent(ctx, known(view))
		if err != nil {
			a.log.Debug("cannot learn the present version", "gvr", view.Spec.Resource.String(), "err", err)
			return false, err
		}
		if c, err := resourceversion.CompareResourceVersion(present, version); err != nil || c >= 0 {
			return false, nil
		}
		if !asked.Before(heard) {
			break // the new history may pass the version any moment
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

// answeredPresent is a present version, and when it was asked for.
type answeredPresent struct {
	version string
	asked   time.Time
}

// sharedPresent asks for the present version of a resource, for all who want to know it
// at the same time, and says when it was asked for. While a question of the resource was not answered a moment ago, or
// one of the cluster was waited for in vain, it is not asked.
func (a *API) sharedPresent(ctx context.Context, t *target) (version string, asked time.Time, err error) {
	resource := t.spec().Resource.String()
	if err := a.unanswered.last(time.Now(), resource, t.cluster); err != nil {
		return "", time.Time{}, err
	}
	present, err := once(ctx, &a.asking, "present "+resource, func(ctx context.Context) (answeredPresent, error) {
		// The question before this one may have ended since.
		if err := a.unanswered.last(time.Now(), resource, t.cluster); err != nil {
			return answeredPresent{}, err
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(ctx, presentTimeout)
		defer cancel()
		version, err := a.present(ctx, t)
		switch took := time.Since(began); {
		case err == nil:
		case took < unansweredPause:
			a.unanswered.note(resource, time.Now().Add(unansweredPause), err)
		default:
			a.unanswered.note(t.cluster, time.Now().Add(took), err)
		}
		return answeredPresent{version, began}, err
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return present.version, present.asked, nil
}

// unanswered remembers questions that were not answered a moment ago. The zero value is
// ready.
type unanswered struct {
	mu     sync.Mutex         // guards recent
	recent map[string]failure // by resource or cluster
}

type failure struct {
	err   error
	until time.Time
}

func (u *unanswered) note(what string, until time.Time, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.recent == nil {
		u.recent = map[string]failure{}
	}
	u.recent[what] = failure{err, until}
}

// last is why one of what is asked for is left alone; nil if none is.
func (u *unanswered) last(now time.Time, what ...string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range what {
		f, ok := u.recent[w]
		if ok && now.Before(f.until) {
			return f.err
		}
		delete(u.recent, w)
	}
	return nil
}

// neverWas reports whether a watch from version would wait for what does not come, or
// may have come to be as something else. It waits as long as nobody can tell; if the copy
// passes the version meanwhile, it is too late to ask.
func (s *stream) neverWas(ctx context.Context, version string) bool {
	inVain := false
	for before(s.reader.Version(), version) {
		soon, cancel := context.WithTimeout(ctx, SuspectAfter)
		err := s.reader.WaitVersionIn(soon, s.namespace, version)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, cache.ErrTooNew) || ctx.Err() != nil {
			return false
		}
		if back, err := s.api.WentBack(ctx, s.view, version); err == nil {
			return back
		}
		inVain = true
	}
	return inVain
}
