package gate

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/informerd/informerd/cache"
)

// TestAs: somebody whom the configuration names sees what the API server says that they may,
// in each cluster, without showing anything, and is told when that changes.
func TestAs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(false, "east", "west")
		ops := func(s authorizationv1.SubjectAccessReviewSpec) bool {
			return s.User == "jane" && slices.Contains(s.Groups, "ops")
		}
		w.apis["east"].Allow(ops)
		jane := w.As("jane", []string{"ops"})
		if jane.Name() != "jane" {
			t.Errorf("the name is %q", jane.Name())
		}
		for cluster, want := range map[string]bool{"east": true, "west": false, "none": false} {
			scope, err := jane.Scope(t.Context(), cluster, cache.List, pods)
			if err != nil || scope.Whole() != want {
				t.Errorf("in %s: whole %v, %v", cluster, scope.Whole(), err)
			}
		}
		if scope, err := w.As("jane", nil).Scope(t.Context(), "east", cache.List, pods); err != nil || !scope.Empty() {
			t.Errorf("without her groups: %v, %v", scope, err)
		}
		before, err := jane.Generation(t.Context(), "east")
		if err != nil {
			t.Fatal(err)
		}
		w.apis["east"].Allow(nil)
		time.Sleep(time.Minute)
		after, err := jane.Generation(t.Context(), "east")
		if err != nil || after == before {
			t.Errorf("revoked: generation %d, then %d, %v", before, after, err)
		}
		if scope, err := jane.Scope(t.Context(), "east", cache.List, pods); err != nil || !scope.Empty() {
			t.Errorf("revoked: %v, %v", scope, err)
		}
	})
}
