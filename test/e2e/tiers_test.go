package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/informerd/informerd/test/e2e/harness"
)

// kubeconfigFor writes a kubeconfig of an informerd, with a token if it is not
// empty.
func kubeconfigFor(t *testing.T, i *harness.Informerd, token string) string {
	t.Helper()
	file, ca := filepath.Join(t.TempDir(), "kubeconfig"), ""
	if strings.HasPrefix(i.URL, "https:") {
		ca = i.CAFile()
	}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"x","cluster":{"server":%q,"certificate-authority":%q}}],`+
		`"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"users":[{"name":"x","user":{"token":%q}}]}`, i.URL, ca, token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTwoTiers: an informerd whose API server is an informerd equals the API
// server, which does not hear of it; a restart of the first is a resumed watch
// for the second.
func TestTwoTiers(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	first := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "first.db"), Rules: wholeCluster})
	first.WaitLive(t, syncTime)
	mark := c.AuditMark(t)
	second := harness.StartInformerd(t, harness.Options{Kubeconfig: kubeconfigFor(t, first, ""), Snapshot: filepath.Join(t.TempDir(), "second.db"), Rules: wholeCluster})
	second.WaitLive(t, syncTime)
	equal := harness.Check{Kept: func(o harness.Object) harness.Object { return o }}
	harness.CheckEqual(t, c, second, equal)
	churnMaps(t, c, "tiers")
	harness.CheckEqual(t, c, second, equal)
	for _, r := range c.Audit(t, mark, harness.Agent) {
		// The first tier renews its watches, and asks what the API server serves and
		// how far its etcd is.
		if r.Resource == "namespaces" && r.IsMetadataPage() {
			continue
		}
		if r.Resource != "" && (r.Verb != "watch" || r.IsList()) {
			t.Errorf("the second tier cost the API server a request: %s", r)
		}
	}

	relists := func() string {
		all, err := second.Resources()
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]uint64{}
		for name, r := range all {
			counts[name] = r.Counts.Relists
		}
		text, _ := json.Marshal(counts)
		return string(text)
	}
	before := relists()
	first.Stop()
	churnMaps(t, c, "tiers-restart")
	first.Start()
	first.WaitLive(t, syncTime)
	second.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, second, equal)
	if after := relists(); after != before {
		t.Errorf("the second tier listed again:\n%s\n%s", before, after)
	}

	second.Stop()
	churnMaps(t, c, "tiers-second")
	second.Start()
	second.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, second, equal)
	if log := second.LogLines("snapshot dropped"); len(log) > 0 {
		t.Errorf("the second tier did not start warm: %s", strings.Join(log, "\n"))
	}
}
