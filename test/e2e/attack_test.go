package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/informerd/informerd/test/attack/attack"
	"github.com/informerd/informerd/test/attack/innocent"
	"github.com/informerd/informerd/test/e2e/harness"
)

// TestAttack: all at once what has hurt informerd once, for some seconds and by fewer than
// in make attack. It lives within its limits, its users are answered, and no answer is one
// that no server may give. Attackers wait for less than the test does: one worker of a kind
// that asks one long question would have come to nothing on a slow machine. How long
// answers take is for a machine that does nothing else.
func TestAttack(t *testing.T) {
	alone(t, &smallLane)
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	result, err := attack.Run(t.Context(), attack.Options{
		// The race detector takes more address space than there is.
		Program: filepath.Join(root, "bin", "informerd"), Cluster: smallCluster(t),
		Alone: time.Second, Time: 5 * time.Second, Patience: time.Minute, Wait: 20 * time.Second, Share: 0.1, Calm: true, Dir: t.TempDir(), Out: &testOutput{t: t},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range result.Wrong() {
		t.Error(wrong)
	}
	for _, f := range result.Attacked.Failures {
		t.Errorf("%s: %v", f.Question, f.Err)
	}
	// What takes long may outlast its clients; these are refused, or told to come again, at once.
	for _, quick := range []string{"navigate", "scrape", "stranger"} {
		if outcomes := result.Attacks[quick]; len(outcomes) == 1 && outcomes["left"] > 0 {
			t.Errorf("%s: all its clients went away without an answer", quick)
		}
	}
	if n := len(result.Attacked.Times[innocent.Get]); n < 5 || len(result.Attacks) < 10 {
		t.Errorf("%d answers, attacks %v: that is not much", n, result.Attacks)
	}
	t.Logf("%+v; stopped within %v", result.Memory, result.Stop)
}
