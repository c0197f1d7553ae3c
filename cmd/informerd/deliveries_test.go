package main

import (
	"strings"
	"testing"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// TestActsAsNobodyKnown: authentication needs a restart, and handlers do not. One that is to act
// as a user, in a file that has authentication by now, does not act with all of informerd's
// rights until then.
func TestActsAsNobodyKnown(t *testing.T) {
	var none *doors
	if as, err := none.as(nil); err != nil || as == nil {
		t.Errorf("informerd itself: %v", err)
	}
	if as, err := none.as(&config.Identity{User: "jane"}); err == nil || as != nil || !strings.Contains(err.Error(), "restart") {
		t.Errorf("jane is %v, error %v", as, err)
	}
}
