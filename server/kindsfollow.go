package server

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/informerd/informerd/cache"
)

// follower is one resource of the stream.
type follower struct {
	watcher
	name string
	stop context.CancelFunc
}

// follow begins to follow a resource. It reports false for one that cannot be
// read, or does not have what the question needs: what the client has of it is
// resumed when it can be.
func (k *kindsWatch) follow(ctx context.Context, name string, res *viewed) (bool, error) {
	if _, known := k.versions[name]; known && res.view.State == cache.Unwatched {
		k.forget(name)
	}
	if err := res.refused(k.query.Namespaces); err != nil {
		k.forget(name)
		res.because(err)
		return false, nil
	}
	if res.reader == nil {
		return false, nil
	}
	if _, err := res.lacking(k.query.Namespaces); err != nil {
		if apierrors.IsNotFound(err) { // else there is data soon, to resume with
			k.forget(name)
		}
		res.because(err)
		return false, nil
	}
	f := &follower{name: name, watcher: watcher{viewed: res, server: k.server, rights: k.rights, query: k.query, state: res.view.State}}
	start, err := k.start(ctx, f)
	if isOwn(err) {
		res.because(err)
		return false, nil
	}
	if errors.Is(err, cache.ErrStopped) {
		return false, nil // it comes back as another
	}
	if err != nil {
		return false, err
	}
	// It may have taken long to find where to begin, here or of the resources before.
	// What may be seen now is followed when resources are looked at again.
	if err := res.stillSeen(ctx); err != nil {
		f.sub.Close()
		if !errors.Is(err, errRights) && !apierrors.IsForbidden(err) {
			return false, err
		}
		k.forget(name)
		res.because(err)
		return false, nil
	}
	if err := k.begin(ctx, f, start); err != nil {
		f.sub.Close()
		if !errors.Is(err, errRights) {
			return false, err
		}
		k.forget(name)
		res.because(err)
		return false, nil
	}
	run, stop := context.WithCancel(ctx)
	f.stop = stop
	k.followers[name] = f
	k.running.Go(func() { k.collect(cache.BesideTurns(run), f) })
	return true, nil
}

// start finds where to begin: after the version that the client has, or with the
// objects there are.
func (k *kindsWatch) start(ctx context.Context, f *follower) (start beginning, err error) {
	if f.matcher, err = f.reader.Matcher(k.query.Query); err != nil {
		return beginning{}, err
	}
	since, known := k.versions[f.name]
	switch {
	case !known:
		// A client cut off among the first objects of a resource has some of
		// them and no version.
		return f.restart(ctx, k.resumed)
	case since == void:
		return f.restart(ctx, false)
	case k.marks[f.name] != f.mark():
		return f.restart(ctx, true)
	}
	return f.resumeAt(ctx, since, time.Until(k.waiting))
}

// begin writes what a resource begins with. Initial objects have no id, see
// watcher.opening.
func (k *kindsWatch) begin(ctx context.Context, f *follower, start beginning) error {
	if start.resync {
		k.forget(f.name)
	}
	k.versions[f.name], k.marks[f.name] = f.sub.Version(), f.mark()
	if start.initial == nil {
		return nil
	}
	for n, o := range start.initial.Objects {
		if n%checkEvery == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if k.rights.changed(ctx, f.viewed) { // the client may have been slow
				return errRights
			}
		}
		if err := k.out.objectOf(f.name, cache.Added, o, ""); err != nil {
			return err
		}
	}
	k.written = true
	k.versions[f.name] = start.initial.Version
	f.faults = start.initial.Faults
	k.warn(f)
	return nil
}

// collect hands over what happens to a resource. Now and then it says how far
// the resource is although nothing happened.
func (k *kindsWatch) collect(ctx context.Context, f *follower) {
	defer f.sub.Close()
	for {
		next, cancel := context.WithTimeout(ctx, k.server.Bookmarks)
		events, err := f.sub.Next(next)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		select {
		case k.batches <- batch{f, events, f.sub.Version(), err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// shown reports whether a resource still has the store that is followed.
// Versions of one mean nothing in another.
func (k *kindsWatch) shown(f *follower) bool {
	now, ok := k.server.Caches.Resource(f.view.Spec.Resource)
	return ok && now.View().SameCopy(f.view)
}

// left reports whether a resource has another store than the one that is
// followed, or none any more. One that cannot be read just now may still have it:
// its end would be told to the one who follows it.
func (f *follower) left(now *cache.View) bool {
	if !now.Readable() {
		return now.State == cache.Unwatched
	}
	return !now.SameCopy(f.view)
}

// leave ends the following of a resource.
func (k *kindsWatch) leave(f *follower) {
	f.stop()
	delete(k.followers, f.name)
	k.forget(f.name)
}
