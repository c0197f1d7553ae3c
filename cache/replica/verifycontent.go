package replica

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/informerd/informerd/cache"
)

const (
	// sweepLeast is how many objects of a source are compared byte for byte by each
	// verification; of many, it is sweepShare of them. So all of it is compared
	// once a day, if it is verified once an hour.
	sweepLeast = 100
	sweepShare = 24
)

// sweep remembers where the comparison of contents goes on, by source. Only the
// goroutine that verifies touches it.
type sweep struct{ at map[string]cache.Key }

// next are the objects whose turn it is.
func (w *sweep) next(namespace string, store *cache.Store) []*cache.Object {
	if w.at == nil {
		w.at = map[string]cache.Key{}
	}
	held := store.Holdings(namespace)
	n, from := max(sweepLeast, held.Len()/sweepShare), w.at[namespace]
	delete(w.at, namespace) // from the beginning, if the end is reached
	var turn []*cache.Object
	for _, o := range held.All() {
		if o.Key().Compare(from) <= 0 {
			continue
		}
		if turn = append(turn, o); len(turn) == n {
			w.at[namespace] = o.Key()
			break
		}
	}
	return turn
}

// verifyContent compares the bytes of objects with the server's, and names the first
// that is other at an equal version; "" if none is. A version does not tell: another
// API server may convert or complete an object differently, and a restored etcd may
// give a version out again.
func (s *source) verifyContent(ctx context.Context, objs []*cache.Object) (differ string, err error) {
	for _, o := range objs {
		their, err := s.getObject(ctx, o.Key())
		if err != nil {
			return "", err
		}
		if their == nil || their.UID() != o.UID() || their.ResourceVersion() != o.ResourceVersion() {
			continue // changed since: the watch tells
		}
		a, errA := o.JSON()
		b, errB := their.JSON()
		if errA != nil || errB != nil {
			return "", fmt.Errorf("read %s: %w", o.Key(), errA)
		}
		if !bytes.Equal(a, b) {
			return o.Key().String(), nil
		}
	}
	return "", nil
}

// followUpgrades has the copy listed anew when all API servers have become of another
// version than it was listed from. A watch that goes on brings no other bytes of what
// does not change.
func (i *Informer) followUpgrades(ctx context.Context) {
	for sleep(ctx, wait.Jitter(i.factory.options.upgradePause, 0.2)) {
		sources, _ := i.feedNow().running()
		for _, s := range sources {
			if !s.live() || s.spec.Aggregated || s.cluster.knownAs(s.servedBy()) {
				continue
			}
			if demand, err := s.upgraded(ctx, time.Now()); err == nil && demand != nil {
				s.demandOf(*demand)
			}
		}
	}
}
