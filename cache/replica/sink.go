package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/informerd/informerd/cache"
)

// sink is the store the Reflector writes to.
type sink struct{ *source }

var (
	_ toolscache.ReflectorStore         = sink{}
	_ toolscache.ReflectorBookmarkStore = sink{}
)

func (s sink) Add(obj any) error    { return s.apply(cache.Added, obj) }
func (s sink) Update(obj any) error { return s.apply(cache.Modified, obj) }
func (s sink) Delete(obj any) error { return s.apply(cache.Deleted, obj) }
func (s sink) Resync() error        { return nil }

// apply never returns an error: the Reflector would log it and go on, with the
// object lost and the resourceVersion past it.
func (s sink) apply(t cache.EventType, obj any) error {
	if it, ok := obj.(*item); ok && it.obj != nil {
		s.store.Apply(s.namespace, t, it.obj)
	}
	return nil
}

// Bookmark advances the copy, and proves it current if the bookmark was promised
// to.
func (s sink) Bookmark(version string) error {
	s.store.Bookmark(s.namespace, version)
	p, ok := s.keptPromise(version)
	if !ok || !s.undoubted(version) {
		return nil
	}
	at := p.told
	if !p.copied {
		at = s.provenAt(version, p.told)
	}
	if p.told.Sub(at) > lagAsked {
		s.askLag()
	}
	if !at.IsZero() {
		s.proved(at)
	}
	return nil
}

func (s sink) Replace(items []any, version string) error {
	if s.skipReplace {
		s.skipReplace = false
		return nil
	}
	objs, streaming := objectsOf(items), s.streaming
	s.streaming = nil
	if err := s.goesBack(objs, version); errors.Is(err, errBehind) {
		s.note(err)
		if streaming != nil {
			streaming.Stop() // the Reflector forgets it (reflector.go, watchList)
		}
		return err // the Reflector lists again
	} else if err != nil {
		s.end(err)
		return nil
	}
	s.doubt(nil) // a list is the truth
	s.listFailures, s.retries = 0, retries{}
	if d := s.pending; d != nil {
		s.pending = nil
		gone, come := d.lists()
		s.store.Amend(s.namespace, gone, come, d.version)
		s.count.compared.Add(1)
	} else {
		s.replace(objs, version)
		s.servedFrom(s.serving)
	}
	s.demand = relistDemand{}
	s.noteListed(streaming == nil)
	asked := s.asked
	s.breakPromise()
	if asked.IsZero() {
		s.update(func(h *standing) { h.held = true })
		return nil
	}
	s.proved(asked)
	return nil
}

// noteListed notes what a list or comparison has made of the copy. The watch that opens after a
// long list has to prove its history first (reopening.heldUp), and to find the newest among a
// million objects takes 40 ms. It is done now, before the copy is live: afterwards events would
// wait for it. Where the list was not long, there are not many objects either.
func (s sink) noteListed(opens bool) {
	listed := s.store.Versions()[s.namespace]
	var newest []*cache.Object
	if opens && !s.spec.Aggregated { // which is not judged
		newest = s.store.Holdings(s.namespace).Newest(newestAsked)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.newestListed = listed, newest
}

// proved notes that the copy was current at a moment, and tells those who follow it.
func (s *source) proved(at time.Time) {
	s.update(func(h *standing) { h.proved(at) })
	s.store.Proved()
}

// errBehind is about another informerd that is not as far again as it was: a list of it
// would take the copy back.
var errBehind = errors.New("the server is behind the copy")

// goesBack returns an errRewritten if a list proves that the copy is of another history.
// Aggregated APIs may answer from caches of their own, which prove nothing. Another
// informerd may have been restarted with an older copy, so it is asked once more: if
// it does not prove to have gone back, goesBack returns errBehind.
func (s *source) goesBack(objs []*cache.Object, version string) error {
	if s.copied && s.begins() && !s.consistent && !s.asked.After(s.after) {
		return fmt.Errorf("%w: it was not proven current since", errBehind)
	}
	// A copy that does not know its age proves nothing, but it may be behind all the same.
	if s.asked.IsZero() && !s.copied || s.spec.Aggregated {
		return nil
	}
	if err := s.store.MayFollow(s.namespace, objs, version); err != nil {
		if s.copied && s.judgeVersion(s.ctx, s.store.Versions()[s.namespace]).verdict != goneBack {
			return fmt.Errorf("%w: %w", errBehind, err)
		}
		return fmt.Errorf("%w: %w", errRewritten, err)
	}
	return nil
}

// begins reports whether nothing is held yet, and something was told before by a copy of
// the same resource. Another informerd, started again, may be behind that: it is asked
// for a consistent read, or for a list proven since.
// An aggregated API has versions of its own, or none, that no reader waits for.
func (s *source) begins() bool {
	return !s.after.IsZero() && !s.spec.Aggregated && s.store.Versions()[s.namespace] == ""
}

// objectsOf are the objects of a list, without those that could not be decoded.
func objectsOf(items []any) []*cache.Object {
	objs := make([]*cache.Object, 0, len(items))
	for _, i := range items {
		switch i := i.(type) {
		case listed:
			objs = append(objs, i.obj)
		case *item: // of a streaming list
			if i.obj != nil {
				objs = append(objs, i.obj)
			}
		}
	}
	return objs
}

// servedFrom notes the version of the API servers that everything was listed from,
// "" for several.
func (s *source) servedFrom(version string) {
	s.mu.Lock()
	was := s.served
	s.served = version
	s.mu.Unlock()
	if version != was {
		// The objects may have been saved a moment ago, as of the older server.
		s.store.SaveVersions()
	}
}

// replace enters a full list.
func (s sink) replace(objs []*cache.Object, version string) {
	stats := s.store.Replace(s.namespace, objs, version)
	s.count.relists.Add(1)
	s.compareFailures = 0
	if s.demand.mend {
		s.count.mended.Add(uint64(stats.Added + stats.Modified + stats.Deleted))
	}
}

// lagAsked is how far a bookmark may be behind what the cluster is known to have
// reached before that is looked into.
const lagAsked = 15 * time.Second

// askLag finds out, beside the watch and once a lease, why bookmarks are behind.
// The versions of the resource may be of another etcd, behind the cluster's. Or its
// cache in the API server is quiet, and etcd tells such a cache only now and then how
// far it is: a consistent read makes it ask (KEP-2340), and the next watch begins
// with a bookmark from there.
func (s *source) askLag() {
	s.mu.Lock()
	due := time.Since(s.lagged) > s.lease
	if due {
		s.lagged = time.Now()
	}
	s.mu.Unlock()
	if !due {
		return
	}
	s.beside(func(ctx context.Context) error {
		before, err := s.cluster.present(ctx)
		if err != nil {
			return err
		}
		own, err := s.present(ctx)
		if err != nil {
			return err
		}
		if cache.Older(own, before) {
			// Of one etcd, what is read later is never of an earlier version.
			s.apart.Store(true)
		}
		select {
		case s.renew <- struct{}{}:
		default:
		}
		return nil
	})
}
