package replica

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// consistentTimeout bounds a consistent read. A server that cannot reach its etcd
// does not answer one.
const consistentTimeout = 20 * time.Second

// consistentVersion is the version that the etcd behind a resource is at: the
// server asks etcd itself before it answers a list without a resourceVersion
// (KEP-2340), however far behind its caches are. One object's metadata is asked for.
// It is the one answer of a lagging server that can be believed. Another informerd
// answers from its copy, unless it is asked consistently.
func (c *cluster) consistentVersion(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (version string, copied bool, err error) {
	ctx, answer := withAnswer(ctx)
	ctx, cancel := context.WithTimeout(ctx, consistentTimeout)
	defer cancel()
	list, err := c.metadata().Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", false, fmt.Errorf("ask for the present version: %w", err)
	}
	if err := checkVersion(list.ResourceVersion); err != nil {
		return "", false, fmt.Errorf("ask for the present version: %w", err)
	}
	return list.ResourceVersion, answer.ofReplica(), nil
}

// present is how far the etcd behind the source's resource is. What is held is
// current for a moment as soon as it is complete up to that version.
func (s *source) present(ctx context.Context) (string, error) {
	asked := time.Now()
	version, copied, err := s.cluster.consistentVersion(ctx, s.spec.GVR, s.namespace)
	if err != nil || copied {
		return version, err
	}
	s.mu.Lock()
	s.read = mark{version, asked}
	s.mu.Unlock()
	return version, nil
}

// lastRead is what etcd last said of the resource, and when it was asked.
func (s *source) lastRead() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// provenAt is when a copy that is complete up to version, as a bookmark told at a
// moment, was current for sure; zero if that is not known.
func (s *source) provenAt(version string, told time.Time) time.Time {
	if s.ownHistory() {
		return told
	}
	at := s.cluster.provenAt(version, told)
	if own := s.lastRead(); own.at.After(at) && own.at.Before(told) && !cache.Newer(own.version, version) {
		at = own.at
	}
	return at
}

// confirmed reports whether etcd is known to have reached version.
func (s *source) confirmed(version string) bool {
	if !s.ownHistory() && s.cluster.confirmed(version) {
		return true
	}
	return !cache.Newer(version, s.lastRead().version)
}

// askPresent finds out, beside the watch that is being opened, how far etcd is. The
// cache of a quiet resource in the API server learns of it only now and then, and
// this read makes it ask (KEP-2340): so the first bookmark of the watch is of a version
// that proves something, and it is known of when.
func (s *source) askPresent() {
	s.beside(func(ctx context.Context) error {
		_, err := s.present(ctx)
		return err
	})
}

// beside asks a question beside the watch, unless one is being asked.
func (s *source) beside(question func(context.Context) error) {
	if !s.asking.CompareAndSwap(false, true) {
		return
	}
	s.background.Go(func() {
		defer s.asking.Store(false)
		if err := question(s.ctx); err != nil {
			s.cluster.report(err)
		}
	})
}

// present is the version that the cluster's etcd is at, by its namespaces, which
// are in the same etcd as everything that is not said to be in another. One that is
// lower than one before proves that etcd was restored.
func (c *cluster) present(ctx context.Context) (string, error) {
	history, asked := c.presentHistory(), time.Now()
	version, copied, err := c.consistentVersion(ctx, namespaces, "")
	switch {
	case err == nil && copied:
		c.forgetMarks() // a copy says how old it is, and may be behind what it was
	case err == nil && !c.note(history, version, asked):
		return "", c.wentBack(ctx, history, version)
	case err != nil && !passes(err):
		c.forgetMarks()
	}
	return version, err
}

// passes reports whether an error may be of the moment, and is not the API server's word
// that it does not answer such a request.
func passes(err error) bool {
	switch code := statusCode(err); code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests:
		return true
	default:
		return code < 400 || code >= 500
	}
}

// forgetMarks: where none are added, what was known before grows old, and would say that
// of every copy.
func (c *cluster) forgetMarks() {
	c.mu.Lock()
	c.marks, c.unmarked = marks{}, true
	c.mu.Unlock()
}

// note remembers what a consistent read answered. It reports false if that is not of
// the history of the answers before.
func (c *cluster) note(history context.Context, version string, asked time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.history != history {
		return true
	}
	c.unmarked = false
	return c.marks.note(version, asked, time.Now())
}

// wentBack ends the history of which etcd has had a higher version than now: it was
// restored, or is another cluster's. The error it returns says so.
func (c *cluster) wentBack(ctx context.Context, history context.Context, version string) error {
	c.mu.RLock()
	err := fmt.Errorf("%w: etcd is at resourceVersion %s and was at %s", errRewritten, version, c.marks.highest())
	c.mu.RUnlock()
	if uid, rc := c.identityNow(); uid != addressIdentity(rc) {
		ns, failure := c.systemNamespace(ctx, "")
		switch {
		case failure == nil && string(ns.UID) != uid:
			gitVersion, failure := c.serverVersion(ctx)
			if failure != nil {
				return failure
			}
			err = &otherClusterError{was: uid, uid: string(ns.UID), version: gitVersion}
		case failure != nil && !apierrors.IsForbidden(failure) && !apierrors.IsNotFound(failure):
			return failure // the next read finds it again
		}
	}
	c.rewritten(history, err)
	return err
}

// presentPause is the time between two looks at how far etcd is. No copy is proven
// current at a later moment than the last look, so that this is how much an age may
// be too high.
const presentPause = 2 * time.Second

// followPresent keeps knowing how far the cluster's etcd is, until ctx ends. Without it
// a server that has stalled could not be told from one with nothing to say.
func (c *cluster) followPresent(ctx context.Context) {
	for c.awaitReachable(ctx) {
		_, err := c.present(ctx)
		if err != nil && ctx.Err() == nil {
			c.report(err)
		}
		if code := statusCode(err); err == nil || code != 0 && code < 500 {
			c.mu.Lock()
			c.answered = time.Now()
			c.mu.Unlock()
		}
		if !sleep(ctx, presentPause) {
			return
		}
	}
}

// confirmed reports whether the cluster is known to have reached version.
func (c *cluster) confirmed(version string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return !cache.Newer(version, c.marks.highest())
}

// provenAt is when a copy that is complete up to version, as it was told at a moment,
// was current for sure; zero if that is not known, as before the first consistent read.
// Of a cluster that does not show its namespaces, a bookmark is believed to be as fresh
// as it looks.
func (c *cluster) provenAt(version string, told time.Time) time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.unmarked {
		return told
	}
	if at := c.marks.proven(version); at.Before(told) {
		return at
	}
	return told
}

// confirm asks whether the server has reached the version that one of its
// bookmarks names. Its etcd may be asked for the cluster, or, by whoever may not,
// and where the two are not the same, for the resource.
func (s *source) confirm(ctx context.Context, version string) (bool, error) {
	if s.confirmed(version) {
		return true, nil
	}
	if !s.ownHistory() {
		reached, err := s.cluster.confirm(ctx, version)
		if reached || err != nil && passes(err) {
			return reached, err
		}
	}
	own, err := s.present(ctx)
	if err != nil {
		return false, err
	}
	return !cache.Newer(version, own), nil
}

// confirm asks whether the cluster has reached version. Those who ask at once share
// the answer: after an outage that is every resource.
func (c *cluster) confirm(ctx context.Context, version string) (bool, error) {
	select {
	case c.confirming <- struct{}{}:
		defer func() { <-c.confirming }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if c.confirmed(version) {
		return true, nil
	}
	present, err := c.present(ctx)
	return err == nil && !cache.Newer(version, present), err
}

// ownHistory reports whether the versions of the resource are those of an etcd of
// its own (--etcd-servers-overrides), or are not known to be of the cluster's. That
// is how Events are kept in many clusters.
func (s *source) ownHistory() bool {
	return s.spec.Aggregated || isUncached(s.spec.GVR.GroupResource()) || s.apart.Load()
}
