package replica

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// retries keep the lists of a source apart as long as none of them succeeds. The
// Reflector pauses as well, but starts its pauses anew every two minutes, however
// long everything has failed (wait.Backoff.DelayWithReset). A Replace ends them.
type retries struct {
	tries   int
	last    time.Time // when the last list was begun
	backoff wait.Backoff
}

// await returns when the next list is due, false when ctx ended first. The first one
// is due at once; while the API server is away, none is.
func (r *retries) await(ctx context.Context, s *source) bool {
	if r.tries++; r.tries == 1 {
		r.backoff = s.retry.backoff()
	} else if !s.cluster.awaitReachable(ctx) || !s.cluster.pause(ctx, r.backoff.Step()-time.Since(r.last)) {
		return false
	}
	r.last = time.Now()
	return true
}

// asking is since when the API servers have to have said of which version they are
// for a list to be known to be of that. A list that is tried again goes by what was
// heard for the one before: at worst the copy is said to be of an older server, and
// listed once more.
func (r *retries) asking() time.Time {
	if r.tries > 1 {
		return time.Now().Add(-surveyPause)
	}
	return time.Now()
}
