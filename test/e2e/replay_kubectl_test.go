package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestKubectlAuth: kubectl auth says of informerd what it says of the API server, to each
// user, but for what changes something.
func TestKubectlAuth(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	for mode, users := range map[string][]string{"review": rightsUsers, "rbac": {"namespaced"}} {
		t.Run(mode, func(t *testing.T) {
			i := startGuarded(t, c, mode)
			for _, user := range users {
				t.Run(user, func(t *testing.T) { checkKubectlAuth(t, c, i, user) })
			}
		})
	}
}

// checkKubectlAuth asks as people do.
func checkKubectlAuth(t *testing.T, c *harness.Cluster, i *harness.Informerd, user string) {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	there, here, cache := c.Kubeconfig(user), informerdKubeconfig(t, c, i, user), t.TempDir()
	ask := func(kubeconfig string, words ...string) string {
		args := append([]string{"kubectl", "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(cache, filepath.Base(kubeconfig))}, words...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "devcluster"), args...).CombinedOutput()
		return fmt.Sprint(string(out), err) // can-i ends with 1 where the answer is no
	}
	for _, line := range []string{
		"auth whoami -o jsonpath={.status}",
		"auth can-i list pods -n " + tenant,
		"auth can-i list pods -A",
		"auth can-i watch secrets -n " + tenant,
		"auth can-i get nodes",
		"auth can-i get /version",
	} {
		words := strings.Fields(line)
		if err := harness.Poll(20*time.Second, func() error { return alike(ask(there, words...), ask(here, words...)) }); err != nil {
			t.Errorf("kubectl %s: %v", line, err)
		}
	}
	list := []string{"auth", "can-i", "--list", "--no-headers", "-n", tenant}
	if err := harness.Poll(20*time.Second, func() error { return alike(reading(ask(there, list...)), reading(ask(here, list...))) }); err != nil {
		t.Errorf("kubectl auth can-i --list: %v", err)
	}
	if out := ask(here, "auth", "can-i", "delete", "pods", "-n", tenant); !strings.HasPrefix(out, "no") {
		t.Errorf("kubectl auth can-i delete pods: %s", out)
	}
}

func alike(want, got string) error {
	if got != want {
		return fmt.Errorf("informerd:\n%s\nAPI server:\n%s", got, want)
	}
	return nil
}

// informerdKubeconfig is that of a user, for informerd.
func informerdKubeconfig(t *testing.T, c *harness.Cluster, i *harness.Informerd, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig(user))
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData = i.URL, i.CAFile(), nil
	}
	file := filepath.Join(t.TempDir(), "informerd.kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// reading is what kubectl auth can-i --list prints, less what changes something: rows
// without verbs and subresources are left out, and a * stands for what reads. Paths are
// only got.
func reading(table string) string {
	var rows []string
	for line := range strings.Lines(table) {
		open := strings.LastIndex(line, "[")
		if open < 0 {
			continue
		}
		what := strings.Join(strings.Fields(line[:open]), " ")
		if strings.Contains(what, "/") && !strings.HasPrefix(what, "[") {
			continue // a subresource, which informerd does not hold
		}
		verbs, _, _ := strings.Cut(line[open+1:], "]")
		var reads []string
		for _, verb := range []string{"get", "list", "watch"} {
			if has(strings.Fields(verbs), verb) && (verb == "get" || !strings.HasPrefix(what, "[")) {
				reads = append(reads, verb)
			}
		}
		if len(reads) > 0 {
			rows = append(rows, fmt.Sprint(what, " ", reads))
		}
	}
	slices.Sort(rows)
	return strings.Join(slices.Compact(rows), "\n")
}
