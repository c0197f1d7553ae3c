package replica

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/informerd/informerd/cache"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// difference is what has to change in the copy of a source for it to be exactly
// what the server held at version.
type difference struct {
	version string
	gone    map[cache.Key]struct{}
	come    map[cache.Key]*cache.Object
}

// apply enters the next event after version. It returns the key it is about.
func (d *difference) apply(event apiwatch.Event) (cache.Key, error) {
	it, ok := event.Object.(*item)
	if !ok {
		return cache.Key{}, apierrors.FromObject(event.Object)
	}
	if err := it.fault(event.Type); err != nil {
		return cache.Key{}, fmt.Errorf("%w: %w", errFullList, err)
	}
	d.version = it.resourceVersion
	if it.obj == nil || it.obj.Foreign() {
		return cache.Key{}, nil
	}
	key := it.obj.Key()
	if event.Type == apiwatch.Deleted {
		delete(d.come, key)
		d.gone[key] = struct{}{}
	} else {
		delete(d.gone, key)
		d.come[key] = it.obj
	}
	return key, nil
}

// lists returns the difference as a Store takes it.
func (d *difference) lists() (gone []cache.Key, come []*cache.Object) {
	for key := range d.gone {
		gone = append(gone, key)
	}
	slices.SortFunc(gone, cache.Key.Compare)
	for _, o := range d.come {
		come = append(come, o)
	}
	return gone, come
}

// compareRefs compares what is held, complete up to version, with the metadata
// of all objects. It returns the difference without the objects that changed,
// and these.
func (s *source) compareRefs(ctx context.Context, version string) (*difference, map[cache.Key]ref, error) {
	held := s.store.Holdings(s.namespace)
	seen := roaring.New() // rows of held that the server has, too
	changed := map[cache.Key]ref{}
	most := held.Len() / compareShare
	at, err := s.eachRef(ctx, func(key cache.Key, their ref) error {
		o, row, ok := held.Get(key)
		if ok {
			seen.Add(row)
			if o.UID() == their.uid && o.ResourceVersion() == their.version {
				return nil
			}
			// Everything up to version is held: no difference can be older.
			if !cache.Newer(their.version, version) {
				return fmt.Errorf("%w: at %s, %s has resourceVersion %s there and %s here", errFullList, version, key, their.version, o.ResourceVersion())
			}
		}
		if changed[key] = their; len(changed) > most {
			return fmt.Errorf("%w: more than %d objects changed", errFullList, most)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if cache.Older(at, version) {
		return nil, nil, fmt.Errorf("%w: the server is at %s and the copy at %s", errFullList, at, version)
	}
	d := &difference{version: at, gone: map[cache.Key]struct{}{}, come: map[cache.Key]*cache.Object{}}
	for row, o := range held.All() {
		if !seen.Contains(row) {
			d.gone[o.Key()] = struct{}{}
		}
	}
	return d, changed, nil
}

// fetch gets the objects that changed. It returns the keys of those that are not
// any more as the list had them.
func (s *source) fetch(ctx context.Context, d *difference, changed map[cache.Key]ref) (doubtful map[cache.Key]struct{}, err error) {
	keys := slices.SortedFunc(maps.Keys(changed), cache.Key.Compare)
	objs := make([]*cache.Object, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fetchers)
	for n, key := range keys {
		g.Go(func() (err error) {
			objs[n], err = s.getObject(ctx, key)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	doubtful = map[cache.Key]struct{}{}
	for n, key := range keys {
		if o := objs[n]; o != nil && o.UID() == changed[key].uid && o.ResourceVersion() == changed[key].version {
			d.come[key] = o
		} else {
			doubtful[key] = struct{}{}
		}
	}
	return doubtful, nil
}

// getObject returns nil if there is no such object. One that cannot be decoded fails:
// what is missing from the copy is counted by a full list.
func (s *source) getObject(ctx context.Context, key cache.Key) (*cache.Object, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	result := client.Get().AbsPath(s.path(key.Namespace), key.Name).Do(ctx)
	if err := result.Error(); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	obj, err := s.decode(raw)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return obj, nil
}

// replay takes the difference on to a version at which every doubtful object is
// known again. An object that a get found changed or gone has a change after
// the list, which a watch from there delivers: until then it is unknown what the
// object was at any moment, and an object from the future must not be held, since
// its resourceVersion would promise all changes before it.
func (s *source) replay(ctx context.Context, d *difference, doubtful map[cache.Key]struct{}) error {
	if len(doubtful) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, replayTimeout, errNoReplay)
	defer cancel()
	opts := metav1.ListOptions{ResourceVersion: d.version, TimeoutSeconds: ptr.To(int64(2 * replayTimeout / time.Second))}
	s.selectors(&opts)
	w, err := s.openWatch(ctx, opts)
	if err != nil {
		return fmt.Errorf("watch from %s: %w", d.version, err)
	}
	defer w.Stop()
	for len(doubtful) > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, ok := <-w.ResultChan():
			if !ok && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !ok {
				return fmt.Errorf("watch from %s: %w", d.version, io.ErrUnexpectedEOF)
			}
			key, err := d.apply(event)
			if err != nil {
				return fmt.Errorf("watch from %s: %w", d.version, err)
			}
			delete(doubtful, key)
		}
	}
	return nil
}

var errNoReplay = fmt.Errorf("%w: a change seen by a get was not delivered", errFullList)
