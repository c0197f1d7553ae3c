package e2e

import (
	"testing"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestDemo: every object of every selected resource of an ordinary cluster, and
// every index, is what the API server says.
func TestDemo(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	mark := c.AuditMark(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime, "pods", "deployments.apps", "secrets", "customresourcedefinitions.apiextensions.k8s.io")
	harness.CheckEqual(t, c, i, harness.Check{})

	all, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	if state := all["leases.coordination.k8s.io"].State; state != "unwatched" {
		t.Errorf("leases are %q, want unwatched", state)
	}
	if n := all["pods"].Objects; n == 0 {
		t.Error("the demo cluster has no pods")
	}
	for name, lists := range harness.Lists(c.Audit(t, mark, harness.Agent)) {
		if len(lists) > 1+discoveryStreams[name] {
			t.Errorf("%s was listed %d times: %v", name, len(lists), lists)
		}
	}
}
