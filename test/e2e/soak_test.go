package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/soak/soak"
)

// soakKinds are faults of each family that are over soon, for the short soak; the
// long one makes all.
var soakKinds = []string{
	"informerd-kill", "informerd-term", "second-kill", "snapshot-flipped", "server-1-freeze", "balancer-cut", "balancer-move",
	"proxy-503", "proxy-504-too-large", "proxy-cut-events", "proxy-reset", "definition-deleted", "reload-storm", "readers-deaf",
}

// TestSoak is a short soak: whatever readers of each kind are told, under one
// fault after the other, was so in etcd.
func TestSoak(t *testing.T) {
	t.Parallel()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	result, err := soak.Run(t.Context(), soak.Options{
		Time: 40 * time.Second, Gap: 4 * time.Second, Longest: 4 * time.Second, Seed: 1, Only: soakKinds, Dir: t.TempDir(),
		Program: filepath.Join(root, "bin", "informerd-race"), Out: &testOutput{t: t},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range result.Violations {
		t.Error(v)
	}
	for _, err := range result.Troubles {
		t.Errorf("trouble: %v", err)
	}
	if len(result.Faults) < 3 || result.Counts.Events < 1000 || result.Counts.Answers < 100 || result.Counts.Waiting > 0 {
		t.Errorf("faults %v, checked %+v: that is not much", result.Faults, result.Counts)
	}
	t.Logf("faults %v, checked %+v", result.Faults, result.Counts)
}

// testOutput logs lines to a test. Goroutines of a soak have ended when Run
// returns.
type testOutput struct{ t *testing.T }

func (o *testOutput) Write(data []byte) (int, error) {
	o.t.Log(strings.TrimSuffix(string(data), "\n"))
	return len(data), nil
}
