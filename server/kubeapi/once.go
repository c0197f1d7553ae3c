package kubeapi

import (
	"context"

	"golang.org/x/sync/singleflight"

	"github.com/informerd/informerd/cache"
)

// once asks once for all who want the same at the same time. It ends with the question of
// none of them and takes turns of none; each waits for it for no longer than they like.
func once[T any](ctx context.Context, asking *singleflight.Group, key string, ask func(context.Context) (T, error)) (answer T, err error) {
	ch := asking.DoChan(key, func() (any, error) {
		return ask(cache.WithoutTurns(context.WithoutCancel(ctx)))
	})
	defer cache.Pause(ctx)()
	select {
	case <-ctx.Done():
		return answer, ctx.Err()
	case got := <-ch:
		answer, _ = got.Val.(T)
		return answer, got.Err
	}
}
