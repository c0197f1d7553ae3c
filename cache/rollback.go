package cache

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newestAsked is how many of its newest objects a source asks the server for as
// long as they are not there.
const newestAsked = 5

// doubts are objects that are held and that the server did not have when its
// history was checked. Either they were deleted since, which the watch tells, or
// the server was rolled back to before they were made, of which no watch tells:
// no copy is proven current that still holds one of them.
type doubts struct {
	objects []*Object
	since   time.Time
}

// sameHistory compares the cluster's identity and the newest objects held with
// the server's: a server that holds one of them otherwise, and not in a newer
// version, was rolled back, even if it has since passed our resourceVersion. What
// it does not hold is doubted until the watch has told of its deletion.
func (s *source) sameHistory(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	reached, err := s.cluster.sameHistory(ctx, version)
	if err != nil {
		return err
	}
	at := version // for whoever may not ask the cluster: the server must have reached it
	if reached || s.spec.Aggregated {
		at = ""
	}
	newest := s.store.newest(s.namespace, newestAsked)
	if len(newest) == 0 && at != "" {
		return s.hasReached(ctx, at)
	}
	var gone []*Object
	for _, o := range newest {
		there, err := s.sameNewest(ctx, o, version, at)
		if err != nil {
			return err
		}
		if there {
			break
		}
		gone = append(gone, o)
	}
	s.setDoubts(gone)
	return nil
}

// sameNewest reports whether the server has an object of the copy, which holds
// everything up to version. The server is asked for what it has at at or later.
func (s *source) sameNewest(ctx context.Context, o *Object, version, at string) (bool, error) {
	meta, err := s.cluster.metadataAt(ctx, s.path(o.Namespace())+"/"+o.Name(), at)
	switch {
	case err == nil:
		// Everything up to version is held: what is no newer must be the same.
		same := string(meta.UID) == o.UID() && meta.ResourceVersion == o.ResourceVersion()
		if !same && !newer(meta.ResourceVersion, version) {
			return false, fmt.Errorf("%w: at %s, %s has resourceVersion %s there and %s here", errRewritten, version, o.Key(), meta.ResourceVersion, o.ResourceVersion())
		}
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case isFuture(err):
		return false, fmt.Errorf("%w: the server has not reached resourceVersion %s", errOtherHistory, at)
	case apierrors.IsForbidden(err) && !s.refused():
		return false, fmt.Errorf("check the newest object: %w", err)
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		// Whoever may list but not get cannot have the snapshot checked, and
		// one that cannot be checked is not resumed.
		return false, fmt.Errorf("%w: get is not allowed, so the snapshot cannot be checked", errOtherHistory)
	default:
		return false, fmt.Errorf("check the newest object: %w", err)
	}
}

// hasReached asks for an object that need not exist: the server says that there
// is none only when it has reached the version.
func (s *source) hasReached(ctx context.Context, version string) error {
	namespace := s.namespace
	if namespace == "" && s.spec.Namespaced {
		namespace = metav1.NamespaceDefault
	}
	_, err := s.cluster.metadataAt(ctx, s.path(namespace)+"/informerd", version)
	switch {
	case isFuture(err):
		return fmt.Errorf("%w: the server has not reached resourceVersion %s", errOtherHistory, version)
	case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		return nil
	default:
		return fmt.Errorf("check the server's version: %w", err)
	}
}

func (s *source) setDoubts(gone []*Object) {
	s.mu.Lock()
	s.doubts = doubts{gone, time.Now()}
	s.mu.Unlock()
	if len(gone) > 0 {
		s.update(func(h *health) { h.current = false })
	}
}

// undoubted reports whether no doubt is left, now that the watch has told
// everything up to a bookmark. It ends the source when one has lasted: the
// server's own caches may be a moment behind what it said when it was asked.
func (s *source) undoubted() bool {
	s.mu.Lock()
	d := s.doubts
	s.mu.Unlock()
	at := slices.IndexFunc(d.objects, func(o *Object) bool {
		held, ok := s.store.Get(o.Key())
		return ok && held.UID() == o.UID()
	})
	if at < 0 {
		return true
	}
	if time.Since(d.since) > s.grace {
		s.end(fmt.Errorf("%w: it does not have %s and never deleted it", errRewritten, d.objects[at].Key()))
	}
	return false
}
