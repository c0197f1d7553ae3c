package server

import "context"

// moved reports, now and then, whether rights may be others than before in one of the
// clusters.
func (k *kindsWatch) moved(ctx context.Context) bool {
	if !k.rights.due() {
		return false
	}
	changed := false
	for _, cluster := range k.server.clustersOf(k.params) {
		moved, err := k.rights.moved(ctx, cluster)
		changed = changed || moved || err != nil
	}
	return changed
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
