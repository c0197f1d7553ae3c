package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// A source whose resourceVersion has expired need not list every object again:
// it lists their metadata, compares UID and resourceVersion with what is held,
// and gets what changed. docs/performance.md has what either costs.
const (
	// compareLeast is how many objects make a comparison worth its requests.
	compareLeast = 1000
	// compareShare: where more than one object in so many changed, a full list
	// is preferred. The API server does the same work for the two at about that.
	compareShare = 10
	// compareAttempts is how many comparisons may fail one after the other.
	compareAttempts = 5
	// fetchers is how many objects are got at the same time.
	fetchers = 8
	// replayTimeout bounds the wait for changes that a get has already shown.
	replayTimeout = 30 * time.Second
)

// errFullList means that a comparison cannot tell what changed, or would cost
// more than a full list.
var errFullList = errors.New("a full list is needed")

// prepareDifference leaves in pending what a relist has to change. It fails with
// errFullList, or with an error after which the Reflector is to try again.
func (s *source) prepareDifference(ctx context.Context) error {
	s.pending = nil
	d, err := s.findDifference(ctx)
	switch {
	case err == nil:
		s.pending, s.compareFailures = d, 0
		return nil
	case errors.Is(err, errFullList):
		s.log.Debug("relisting in full", "reason", err)
		return err
	}
	s.note(err)
	// What keeps failing need not fail for a full list.
	if s.compareFailures++; s.compareFailures > compareAttempts {
		return errFullList
	}
	s.listErr = err
	return err
}

// findDifference returns what the server changed since the copy's version. It fails
// with errFullList, or with an error that may pass.
func (s *source) findDifference(ctx context.Context) (*difference, error) {
	version := s.store.Versions()[s.namespace]
	if err := s.mayCompare(ctx, version); err != nil {
		return nil, err
	}
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	s.begin()
	answered, answer := withAnswer(ctx)
	d, changed, err := s.compareRefs(answered, version)
	if err != nil {
		return nil, notTransient(err)
	}
	s.asked, s.copied = answer.proof(s.asked), answer.ofReplica()
	doubtful, err := s.fetch(ctx, d, changed)
	if err != nil {
		return nil, notTransient(err)
	}
	if err := s.replay(ctx, d, doubtful); err != nil {
		return nil, notTransient(err)
	}
	s.count.fetched.Add(uint64(len(changed)))
	return d, nil
}

// mayCompare returns nil if an object of an equal UID and resourceVersion is an
// equal object. It is not after an upgrade of the server or another definition
// of a custom resource, which may add defaults or convert, nor if the server
// went back in time.
func (s *source) mayCompare(ctx context.Context, version string) error {
	s.serving = ""
	if s.spec.Aggregated || version == "" || s.store.Holdings(s.namespace).Len() < s.compareLeast {
		return errFullList
	}
	if s.demand.full || s.demand.mend {
		return fmt.Errorf("%w: %s", errFullList, s.demand.reason)
	}
	serving, err := s.cluster.serving(ctx, s.retries.asking())
	if err != nil {
		return notTransient(err)
	}
	s.serving = serving
	if served := s.servedBy(); serving == "" || serving != served {
		return fmt.Errorf("%w: the copy is of API server %q, which is now %q", errFullList, served, serving)
	}
	if err := s.sameDefinition(ctx); err != nil {
		return notTransient(err)
	}
	switch j := s.judge(ctx, version); j.verdict {
	case goneBack, other:
		s.end(j.err)
		return j.err
	case unknown:
		return notTransient(j.err)
	case missed, lacks:
		return fmt.Errorf("%w: %w", errFullList, j.err)
	}
	return nil
}

// askServing notes the version of the API servers that are about to be listed from
// in full; "" while different ones answer.
func (s *source) askServing(ctx context.Context) {
	if s.serving != "" {
		return
	}
	if version, err := s.cluster.serving(ctx, s.retries.asking()); err == nil {
		s.serving = version
	}
}

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// sameDefinition makes sure that a custom resource is still defined as it was
// when the copy was begun. Discovery will tell, too, but perhaps later.
func (s *source) sameDefinition(ctx context.Context) error {
	if s.spec.CRDUID == "" {
		if scheme.Scheme.IsGroupRegistered(s.spec.GVR.Group) {
			return nil
		}
		return fmt.Errorf("%w: the definition of the resource is not known", errFullList)
	}
	crd, err := s.cluster.metadata().Resource(customResourceDefinitions).Get(ctx, s.spec.Name(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get definition: %w", err)
	}
	if string(crd.UID) != s.spec.CRDUID || crd.Generation != s.spec.CRDGeneration {
		return fmt.Errorf("%w: the resource was defined anew", errFullList)
	}
	return nil
}

// notTransient turns every error that will not pass by itself into errFullList:
// a refused get, for one, or a list that expired between two of its pages.
func notTransient(err error) error {
	code := statusCode(err)
	switch {
	case err == nil, errors.Is(err, errFullList), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), isTransport(err),
		code >= 500, code == http.StatusTooManyRequests, code == http.StatusUnauthorized:
		return err
	}
	return fmt.Errorf("%w: %w", errFullList, err)
}
