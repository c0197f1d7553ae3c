package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// javaScript is the program test/e2e/node/informer.mjs.
type javaScript struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func startJavaScript(t *testing.T, server, namespace string) *javaScript {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "test", "e2e", "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatalf("%v: run make e2e-deps", err)
	}
	cmd := exec.Command("node", "informer.mjs", server, namespace)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("node: %v", err)
		}
	})
	return &javaScript{in, bufio.NewReader(out)}
}

// versions are those of the informer's cache, and those its events add up to.
func (j *javaScript) versions() (held, told versions, err error) {
	if _, err := fmt.Fprintln(j.in); err != nil {
		return nil, nil, err
	}
	line, err := j.out.ReadBytes('\n')
	if err != nil {
		return nil, nil, err
	}
	var v struct{ Held, Told versions }
	err = json.Unmarshal(line, &v)
	return v.Held, v.Told, err
}

// TestJavaScriptInformer: an informer of @kubernetes/client-node follows a
// namespace through churn, a restart of informerd and a 410.
func TestJavaScriptInformer(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), Rules: "\n- match: [configmaps]\n", Snapshot: filepath.Join(t.TempDir(), "informerd.db"),
	})
	i.WaitLive(t, syncTime, "configmaps")
	informer := startJavaScript(t, i.URL, "default")
	check := func(when string) {
		t.Helper()
		harness.Eventually(t, time.Minute, when+": an informer equal to the API server", func() error {
			list, err := c.Client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			held, told, err := informer.versions()
			if err != nil {
				return err
			}
			want := byName(list.Items)
			if err := sameVersions(held, want); err != nil {
				return fmt.Errorf("its cache: %w", err)
			}
			if err := sameVersions(told, want); err != nil {
				return fmt.Errorf("its events: %w", err)
			}
			return nil
		})
	}
	check("at first")
	churnMaps(t, c, "javascript-churn")
	check("after churn")

	i.Stop()
	churnMaps(t, c, "javascript-restart")
	i.Start()
	check("after a restart")

	i.Kill()
	churnMaps(t, c, "javascript-expired")
	i.ForgetSnapshot(t)
	i.Start() // without a past: a watch resumed from before is 410
	check("after a 410")
}

func byName(maps []corev1.ConfigMap) versions {
	all := versions{}
	for _, m := range maps {
		all[m.Name] = string(m.UID) + " " + m.ResourceVersion
	}
	return all
}
