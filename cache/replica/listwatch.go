package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

var _ toolscache.ListerWatcherWithContext = (*source)(nil)

// errResume makes the Reflector turn from the streaming list to List, which
// answers with a resourceVersion to watch from and no objects. It must look like none of the errors
// the Reflector retries (refused, 429, 410, too large; reflector.go watchList).
var errResume = errors.New("resume from what is held")

// WatchWithContext is called by the Reflector: with sendInitialEvents for the
// first sync and every relist, without after a list.
func (s *source) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
	if opts.SendInitialEvents == nil || !*opts.SendInitialEvents {
		return s.watch(ctx, opts), nil
	}
	s.listErr = nil
	if s.resume != "" {
		return nil, errResume
	}
	if !s.retries.await(ctx, s) {
		return nil, context.Cause(ctx)
	}
	if err := s.prepareDifference(ctx); !errors.Is(err, errFullList) {
		return nil, cmp.Or(err, errResume)
	}
	s.askServing(ctx)
	if s.listsPlainly() {
		return nil, errPlain
	}
	// Whatever version the Reflector holds: the list is to be of the latest one,
	// which a server that lags cannot answer with less.
	opts.ResourceVersion = ""
	s.consistent = false
	w, err := s.watchList(ctx, opts)
	if err != nil {
		s.listErr = err
		s.listFailures++
		s.note(err)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			s.log.Info("the server knows no streaming lists, using plain ones", "err", err)
			s.noStreaming, s.listErr = true, nil
		}
	}
	return w, err
}

var errCut = errors.New("streaming list was cut")

// Watch and List are the forms without a context of an older interface.
func (s *source) Watch(opts metav1.ListOptions) (apiwatch.Interface, error) {
	return s.WatchWithContext(context.Background(), opts)
}

func (s *source) List(opts metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), opts)
}

// ListWithContext answers the Reflector's list: from the snapshot when the
// source resumes, from a comparison that was made just before, with a real LIST
// where that is preferred, and otherwise with the error of the streaming list or
// comparison that failed just before.
func (s *source) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if s.resume != "" {
		list := &itemList{}
		list.ResourceVersion, s.resume = s.resume, ""
		s.skipReplace = true
		return list, nil
	}
	if s.pending != nil {
		list := &itemList{}
		list.ResourceVersion = s.pending.version
		return list, nil
	}
	if !s.listsPlainly() || s.listErr != nil {
		return nil, cmp.Or(s.listErr, errCut)
	}
	s.listing.Lock()
	defer s.listing.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // run may have returned
	}
	reading, err := s.beginList(ctx)
	if err != nil {
		return nil, err
	}
	defer s.endList(reading)
	s.reading = reading
	defer func() { s.reading = nil }()
	return s.plainList(ctx, opts)
}

// path is that of the resource in a namespace, or in all ("").
func (s *source) path(namespace string) string {
	p := "/apis/" + s.spec.GVR.Group + "/" + s.spec.GVR.Version
	if s.spec.GVR.Group == "" {
		p = "/api/" + s.spec.GVR.Version
	}
	if namespace != "" {
		p = path.Join(p, "namespaces", namespace)
	}
	return path.Join(p, s.spec.GVR.Resource)
}

// client is for lists and gets of raw bytes.
func (s *source) client() (rest.Interface, error) {
	return s.cluster.rawClient(s.spec.Aggregated, s.decode)
}

// openTimeout is how long a server may take to begin the answer to a watch.
const openTimeout = 15 * time.Second

// openWatch opens one watch of this source. Every failure is an error, see attempt.
func (s *source) openWatch(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(openTimeout, func() { cancel(errLate) })
	attemptCtx, attempt := withAttempt(ctx)
	stream, err := dynamic.New(client).Resource(s.spec.GVR).Namespace(s.namespace).Watch(attemptCtx, opts)
	opened := late.Stop()
	err = cmp.Or(attempt.failure(), err)
	if err == nil && !opened {
		stream.Stop()
		err = errLate
	}
	if errors.Is(context.Cause(ctx), errLate) {
		err = errLate
	}
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("open watch: %w", err)
	}
	return &cancelledWatch{stream, func() { cancel(nil) }}, nil
}

// errLate is a network error, so that it is taken for one.
var errLate error = &net.OpError{Op: "watch", Err: os.ErrDeadlineExceeded}

// cancelledWatch ends the context of a watch with it.
type cancelledWatch struct {
	apiwatch.Interface
	cancel func()
}

func (w *cancelledWatch) Stop() {
	w.cancel()
	w.Interface.Stop()
}

func (s *source) selectors(opts *metav1.ListOptions) {
	opts.LabelSelector, opts.FieldSelector, opts.ShardSelector = s.spec.LabelSelector, s.spec.FieldSelector, s.spec.ShardSelector
}

// acquire takes a place among the syncs that may run at once. Without it, all
// resources would list at the same moment after a restart of the API server.
func (s *source) acquire(ctx context.Context) error {
	select {
	case s.syncs <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *source) release() { <-s.syncs }

// beginList waits until all objects may be asked for, for the sake of the cluster and of this
// process.
func (s *source) beginList(ctx context.Context) (*reading, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	r, err := s.intake.begin(ctx, s.cluster.name)
	if err != nil {
		s.release()
	}
	return r, err
}

// endList is called when they are in.
func (s *source) endList(r *reading) {
	r.end()
	s.release()
}

// undecoded counts an object that the decoder refused.
func (s *source) undecoded(err error) {
	s.count.undecoded.Add(1)
	s.log.Error("object refused, it is missing from the copy", "err", err)
}

// believed reports whether a 403 is to be believed. An API server that has just
// started refuses everybody but its administrators until it has read its roles:
// a source that has data waits that out rather than give the data up.
func (s *source) believed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.standing.held {
		return true
	}
	if s.refused.IsZero() {
		s.refused = time.Now()
	}
	return time.Since(s.refused) > patience*s.retry.last
}

// accepted notes that a request was not refused.
func (s *source) accepted() {
	s.mu.Lock()
	s.refused = time.Time{}
	s.mu.Unlock()
}

// ownFaults is how many lists must fail one after the other before the fault is the
// resource's own.
const ownFaults = 3

// note records why the copy is not current, and ends the source when that is for
// good. A fault that the cluster as a whole does not have is the resource's own.
func (s *source) note(err error) {
	s.cluster.report(err)
	if isUnserved(err) {
		s.cluster.elsewhere()
	}
	if apierrors.IsForbidden(err) && s.believed() {
		s.end(refusal{err})
	}
	permanent := apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
	own := permanent || s.listFailures >= ownFaults && !s.consistent && s.cluster.status().Reachable
	s.breakPromise()
	s.update(func(h *standing) { h.cause, h.own = err, own })
}
