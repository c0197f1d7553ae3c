package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestKubeconfig: with a kubeconfig that is missing, broken or points nowhere
// informerd runs on and says what is wrong; mending the file is enough.
func TestKubeconfig(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	good, err := os.ReadFile(c.Kubeconfig("admin"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		text string // "" is no file
		said string // part of what readyz says
	}{
		"missing":        {"", "no such file"},
		"not YAML":       {"{{{", "kubeconfig"},
		"no context":     {"apiVersion: v1\nkind: Config\n", "context"},
		"points nowhere": {strings.ReplaceAll(string(good), c.Server(), "https://127.0.0.1:1"), "connection refused"},
		"wrong name":     {strings.ReplaceAll(string(good), c.Server(), "https://nowhere.invalid:6443"), "nowhere.invalid"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			write := func(text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tc.text != "" {
				write(tc.text)
			}
			i := harness.StartInformerd(t, harness.Options{Kubeconfig: path})
			if a := i.MustGet(t, "/livez"); a.Status != http.StatusOK {
				t.Errorf("livez is %d", a.Status)
			}
			harness.Eventually(t, 30*time.Second, "readyz says what is wrong", func() error {
				a, err := i.Get("/readyz")
				if err == nil && (a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), tc.said)) {
					err = fmt.Errorf("%d without %q:\n%s", a.Status, tc.said, a.Body)
				}
				return err
			})
			if a := i.MustGet(t, "/v1/resources/pods/objects"); a.Status != http.StatusServiceUnavailable {
				t.Errorf("pods: %d %s, want 503", a.Status, a.Body)
			}
			write(string(good))
			i.WaitLive(t, syncTime, "pods")
			harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps", "namespaces"}})
			if n := len(i.LogLines("level=WARN")) + len(i.LogLines("level=ERROR")); n == 0 || n > 10 {
				t.Errorf("%d log lines of trouble, want some: %q", n, i.LogLines("level=WARN"))
			}
		})
	}
}
