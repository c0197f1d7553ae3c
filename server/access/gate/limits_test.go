package gate

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/informerd/informerd/server/access"
)

// TestTooManyIsTold: a request that takes too many questions is its maker's fault, and
// no failure of an API server.
func TestTooManyIsTold(t *testing.T) {
	w := newWorld(false, "c")
	a := newAsker(w.Gate, request("/api/v1/pods", "t"))
	err := a.in("c").untold(t.Context(), fmt.Errorf("ask: %w", &access.TooManyError{Asked: 2, Most: 1}))
	if !apierrors.IsBadRequest(err) {
		t.Errorf("untold() = %v", err)
	}
}

// TestAddressIsShown: places for tokens are by the address that they come from.
func TestAddressIsShown(t *testing.T) {
	r := request("/api/v1/pods", "t")
	if got := newAsker(newWorld(false, "c").Gate, r).shown.RemoteAddr; got == "" || got != r.RemoteAddr {
		t.Errorf("shown is from %q", got)
	}
}
