package server

import (
	"context"
	"fmt"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// rightsInterval is how often a stream asks whether its reader's rights have changed.
const rightsInterval = 400 * time.Millisecond

// errRights ends a stream: its client begins again with what it may see now.
var errRights = fmt.Errorf("what may be seen has changed: %w", cache.ErrExpired)

// rights follows what the reader of one stream may see. It belongs to the goroutine of
// its request.
type rights struct {
	who         access.Asker
	generations map[string]uint64 // by cluster, those looked at
	looked      time.Time
}

func newRights(who access.Asker) *rights {
	return &rights{who: who, generations: map[string]uint64{}, looked: time.Now()}
}

// pause is how long a stream may wait before it asks.
func (r *rights) pause() time.Duration {
	if access.Settled(r.who) {
		return time.Hour
	}
	return rightsInterval
}

// due reports whether it is time to ask.
func (r *rights) due() bool {
	now := time.Now()
	if access.Settled(r.who) || now.Sub(r.looked) < rightsInterval {
		return false
	}
	r.looked = now
	return true
}

// moved reports whether rights in a cluster may be others than when it was last asked.
// The first time they may: they were asked for before. Whoever cannot be asked about any
// more is nobody.
func (r *rights) moved(ctx context.Context, cluster string) (bool, error) {
	now, err := r.who.Generation(ctx, cluster)
	if err != nil {
		return true, access.Unknown(r.who, err)
	}
	before, known := r.generations[cluster]
	r.generations[cluster] = now
	return !known || before != now, nil
}

// changed reports, now and then, whether something else may be seen of resources than is
// seen of them. What cannot be told may not.
func (r *rights) changed(ctx context.Context, seen ...*viewed) bool {
	if !r.due() {
		return false
	}
	moved := map[string]bool{}
	for _, v := range seen {
		spec := v.view.Spec
		if _, asked := moved[spec.Cluster]; !asked {
			var err error
			if moved[spec.Cluster], err = r.moved(ctx, spec.Cluster); err != nil {
				return true
			}
		}
		if !moved[spec.Cluster] {
			continue
		}
		if now, err := granted(ctx, spec, v.verbs...); err != nil || now.mark() != v.mark() {
			return true
		}
	}
	return false
}
