package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/informerd/informerd/cache"
)

const (
	// refPage is the page size of a list of metadata.
	refPage = 1000
	// verifyGrace is how long a difference may last before it is one: the watch
	// may just be about to deliver it.
	verifyGrace = 10 * time.Second
	// verifyDoubts bounds how many differences are looked into one by one. More of them
	// are compared a second time first: what comes and goes faster than the objects can be
	// listed differs once, what the watch lost differs again.
	verifyDoubts = 20
)

// verifyLoop is what an informer's resync is for here: not to tell every object
// again, but to compare the copy with the server now and then. Nothing should
// ever differ; if something does, it is counted, said and mended.
func (i *Informer) verifyLoop(ctx context.Context) {
	interval := i.factory.options.VerifyInterval
	if interval <= 0 {
		return
	}
	for sleep(ctx, wait.Jitter(interval, 0.2)) {
		if i.View().State != cache.Live {
			continue
		}
		if err := i.verify(ctx); err != nil && ctx.Err() == nil {
			i.log.Warn("cannot verify the copy", "err", err)
		}
	}
}

// errNotReached means that nothing can be said this time: the watch did not bring
// the copy to the version that it was to be compared at, or took it far beyond.
var errNotReached = errors.New("the copy has not reached what the API server holds")

// verify compares every source with the server and has those relisted that
// differ. The copy as a whole is verified if all were compared and are equal.
func (i *Informer) verify(ctx context.Context) error {
	f := i.feedNow()
	sources, _ := f.running()
	equal := len(sources) > 0
	for _, s := range sources {
		if !s.live() {
			equal = false
			continue
		}
		differ, err := s.verify(ctx)
		if err == nil && differ == "" {
			differ, err = s.verifyContent(ctx, i.swept.next(s.namespace, s.store))
		}
		switch {
		case errors.Is(err, errNotReached):
			equal = false
		case err != nil:
			return err
		case i.feedNow() != f:
			return nil // another rule took over meanwhile: what was compared is gone
		case differ != "":
			equal = false
			i.log.Error("the copy differs from the API server, relisting", "first", differ)
			s.demandOf(relistDemand{reason: "verification found differences, relisting", full: true, mend: true})
		}
	}
	if !equal {
		return nil
	}
	i.mu.Lock()
	i.verified = time.Now()
	i.mu.Unlock()
	return nil
}

// ref is one object as far as a comparison goes.
type ref struct{ uid, version string }

// verify names the first object that differs; "" if none does.
func (s *source) verify(ctx context.Context) (differ string, err error) {
	doubts, err := s.differing(ctx)
	if err == nil && len(doubts) > verifyDoubts {
		first := sets.New(doubts...)
		doubts, err = s.differing(ctx)
		doubts = slices.DeleteFunc(doubts, func(key cache.Key) bool { return !first.Has(key) })
	}
	if err != nil {
		return "", err
	}
	for n, key := range doubts {
		if n == verifyDoubts {
			return fmt.Sprintf("%d objects, %s among them", len(doubts), key), nil
		}
		if same, err := s.sameObject(ctx, key); err != nil {
			return "", err
		} else if !same {
			return key.String(), nil
		}
	}
	return "", nil
}

// differing lists the keys in which the copy seems to differ from the server.
func (s *source) differing(ctx context.Context) ([]cache.Key, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	theirs, version, err := s.listRefs(ctx)
	s.release()
	if err != nil {
		return nil, err
	}
	wctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := s.store.WaitVersionIn(wctx, s.namespace, version); errors.Is(err, cache.ErrTooNew) {
		return nil, errNotReached // no bookmark came
	} else if err != nil {
		return nil, err
	}
	return s.compare(theirs, version), nil
}

// listRefs lists the identities of all objects.
func (s *source) listRefs(ctx context.Context) (refs map[cache.Key]ref, version string, err error) {
	refs = map[cache.Key]ref{}
	version, err = s.eachRef(ctx, func(key cache.Key, r ref) error {
		refs[key] = r
		return nil
	})
	return refs, version, err
}

// eachRef visits the identities of all objects as they were at one version, which
// it returns. It asks for PartialObjectMetadata in protobuf, page by page: a
// fortieth of the bytes of a full list, and never more than a page in memory.
func (s *source) eachRef(ctx context.Context, visit func(cache.Key, ref) error) (version string, err error) {
	opts := metav1.ListOptions{Limit: refPage}
	s.selectors(&opts)
	for {
		page, err := s.cluster.metadata().Resource(s.spec.GVR).Namespace(s.namespace).List(ctx, opts)
		if err != nil {
			return "", fmt.Errorf("list metadata: %w", err)
		}
		if err := s.versioned(page.ResourceVersion); err != nil {
			return "", fmt.Errorf("list metadata: %w", err)
		}
		for i := range page.Items {
			o := &page.Items[i]
			if !s.store.Selects(o.Namespace, string(o.UID)) {
				continue
			}
			if err := visit(cache.Key{Namespace: o.Namespace, Name: o.Name}, ref{string(o.UID), o.ResourceVersion}); err != nil {
				return "", err
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return page.ResourceVersion, nil
		}
	}
}

// compare lists the keys in which the store, having reached version, differs
// from what the server held at version. What changed since is no difference.
func (s *source) compare(theirs map[cache.Key]ref, version string) []cache.Key {
	var doubts []cache.Key
	for _, o := range s.store.Holdings(s.namespace).All() {
		key := o.Key()
		their, ok := theirs[key]
		delete(theirs, key)
		switch {
		case cache.Newer(o.ResourceVersion(), version):
		case !ok, their.uid != o.UID(), their.version != o.ResourceVersion():
			doubts = append(doubts, key)
		}
	}
	for key := range theirs {
		doubts = append(doubts, key) // missing here, unless deleted since
	}
	return doubts
}

// sameObject compares one object with the server's, giving the watch some time
// to deliver what it is about to.
func (s *source) sameObject(ctx context.Context, key cache.Key) (bool, error) {
	client := s.cluster.metadata().Resource(s.spec.GVR).Namespace(key.Namespace)
	deadline := time.Now().Add(s.grace)
	for {
		meta, err := client.Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil && (!apierrors.IsNotFound(err) || isUnserved(err)) {
			return false, fmt.Errorf("get %s: %w", key, err)
		}
		held, ok := s.store.Get(key)
		switch {
		case err != nil && !ok:
			return true, nil
		case err == nil && ok && held.UID() == string(meta.UID) && held.ResourceVersion() == meta.ResourceVersion:
			return true, nil
		case time.Now().After(deadline):
			// An object the selectors do not match any more is not held.
			return err == nil && !ok && s.spec.Partial(), nil
		}
		if !sleep(ctx, s.grace/20) {
			return false, ctx.Err()
		}
	}
}
