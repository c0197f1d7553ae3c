package server

import (
	"context"

	"github.com/informerd/informerd/server/access"
)

// moved reports, now and then, whether rights may be others than before in one of the
// clusters.
func (k *kindsWatch) moved(ctx context.Context) bool {
	if !k.rights.due() {
		return false
	}
	changed := false
	for _, cluster := range k.clusters {
		moved, err := k.rights.moved(ctx, cluster)
		changed = changed || moved || err != nil
	}
	return changed
}

// rejoin looks at all resources again if rights may have changed while some were waited
// for: what happens to those that were followed before is written next.
func (k *kindsWatch) rejoin(ctx context.Context) error {
	if !k.moved(ctx) {
		return nil
	}
	return k.refresh(ctx)
}

// regrant checks the rights of what is followed, where the resources of the question
// cannot be told: one that it names is gone, and may stay so. Others are followed on, by
// the rights of now.
func (k *kindsWatch) regrant(ctx context.Context) error {
	for _, cluster := range k.clusters {
		if _, err := k.rights.moved(ctx, cluster); err != nil {
			return k.refuse(err)
		}
	}
	for _, name := range k.known() {
		f := k.followers[name]
		if f == nil {
			continue
		}
		now, err := see(ctx, f.Resource, f.verbs...)
		if err != nil {
			return k.refuse(access.Unknown(f.who, err))
		}
		if now.mark() == f.mark() {
			continue
		}
		k.leave(f)
		if err := k.join(ctx, []*viewed{now}); err != nil {
			return err
		}
	}
	return nil
}

// refuse ends a stream of which nothing may be seen any more: all that was told is void.
func (k *kindsWatch) refuse(err error) error {
	for _, f := range k.followers {
		k.leave(f)
	}
	for _, name := range k.known() {
		k.forget(name)
	}
	k.bookmark(false)
	return err
}
