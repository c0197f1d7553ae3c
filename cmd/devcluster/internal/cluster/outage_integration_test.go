package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// TestIntegrationOutages lets the control plane of two API servers misbehave. Its
// parts share the cluster and leave it well.
func TestIntegrationOutages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts a control plane")
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	d := start(t, dir, "--components", "etcd,kube-apiserver", "--apiservers", "2", "--proxy")
	t.Run("balancer", d.testBalancer)
	t.Run("proxy", d.testProxy)
	t.Run("backup", d.testBackup)
	t.Run("program", d.testProgram)
}

func (d *devcluster) testBalancer(t *testing.T) {
	if info := d.info(t); info.Server != "https://"+info.Balancer {
		t.Errorf("clients are sent to %s, the balancer is %s", info.Server, info.Balancer)
	}
	ask := func(user string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := d.client(t, user, "test").CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	for _, user := range []string{"admin", "apiserver-1", "apiserver-2"} {
		if err := ask(user); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
	d.ctl(t, "pause", "kube-apiserver-2")
	d.ctl(t, "balancer", "only", "kube-apiserver-2")
	d.ctl(t, "balancer", "cut")
	if err := ask("admin"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("only a frozen server is left: %v, want a timeout", err)
	}
	d.ctl(t, "balancer", "drop", "kube-apiserver-2")
	d.ctl(t, "balancer", "cut")
	if err := ask("admin"); err != nil {
		t.Errorf("the frozen server is taken out: %v", err)
	}
	d.ctl(t, "kill", "kube-apiserver-2")
	d.ctl(t, "balancer", "normal")
	for range 3 {
		if err := ask("admin"); err != nil {
			t.Errorf("a killed server is skipped: %v", err)
		}
	}
	d.ctl(t, "start", "kube-apiserver-2")
	if err := ask("apiserver-2"); err != nil {
		t.Errorf("apiserver-2 after its start: %v", err)
	}
	d.ctl(t, "balancer", "reset")
	if err := ask("admin"); err == nil {
		t.Error("an answer although connections are reset")
	}
	d.ctl(t, "balancer", "normal")
	if err := ask("admin"); err != nil {
		t.Errorf("normal again: %v", err)
	}
}

// testProxy: the real server's answers can be recognised and changed in both
// encodings.
func (d *devcluster) testProxy(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := d.config(t, "proxied")
		config.ContentType = contentType
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		maps := client.CoreV1().ConfigMaps("default")
		d.ctl(t, "proxy", `{"rules":[]}`)
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		watches := func() watch.Interface {
			t.Helper()
			w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			return w
		}
		open := watches()
		d.ctl(t, "proxy", `{"rules":[{"match":{"verb":"watch","path":"/configmaps$"},"do":{"drop":{}}}]}`)
		for _, name := range []string{"dropped", "seen"} {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: name}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		if m, ok := nextObject(open).(*corev1.ConfigMap); !ok || m.GenerateName != "seen" {
			t.Errorf("%s: the first event seen is of %v", contentType, m)
		}
		d.ctl(t, "proxy", `{"rules":[{"match":{"verb":"watch","path":"/configmaps$"},"do":{"bookmark":{"once":true}}}]}`)
		m, ok := nextObject(watches()).(*corev1.ConfigMap)
		if !ok || m.ResourceVersion != list.ResourceVersion || m.Name != "" {
			t.Errorf("%s: instead of a bookmark: %v", contentType, m)
		}
		d.ctl(t, "proxy", `{"rules":[{"match":{"verb":"list"},"do":{"error":{"code":410}}}]}`)
		if _, err := maps.List(t.Context(), metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: %v, want 410", contentType, err)
		}
	}
	d.ctl(t, "proxy", `{"rules":[]}`)
}

func nextObject(w watch.Interface) runtime.Object {
	select {
	case event := <-w.ResultChan():
		return event.Object
	case <-time.After(10 * time.Second):
		return nil
	}
}

func (d *devcluster) testBackup(t *testing.T) {
	maps := d.client(t, "admin", "test").CoreV1().ConfigMaps("default")
	create := func(name string) {
		t.Helper()
		eventually(t, func() error {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		})
	}
	gone := func(name string) {
		t.Helper()
		eventually(t, func() error {
			_, err := maps.Get(t.Context(), name, metav1.GetOptions{})
			if err == nil {
				return errors.New(name + " is still there")
			} else if !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
	result := func(args ...string) (r struct{ Was, Revision int64 }) {
		t.Helper()
		if err := json.Unmarshal([]byte(d.ctl(t, args...)), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	create("before")
	saved := result("backup", "one")
	create("after")
	if r := result("restore", "one"); r.Revision != saved.Revision || r.Was <= saved.Revision {
		t.Errorf("restored from %d to %d, saved was %d", r.Was, r.Revision, saved.Revision)
	}
	gone("after")
	create("after")
	server := d.pid(t, "kube-apiserver")
	if r := result("restore", "one", "--running", "--bump", "1000"); r.Revision < saved.Revision+1000 {
		t.Errorf("restored to %d, saved was %d", r.Revision, saved.Revision)
	}
	if d.pid(t, "kube-apiserver") != server {
		t.Error("the API server was restarted")
	}
	gone("after")
	if r := result("compact"); r.Revision < saved.Revision+1000 {
		t.Errorf("compacted at %d", r.Revision)
	}
	if out, err := exec.Command(binary(t), "ctl", "--dir", d.dir, "restore", "two").CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no backup two") {
		t.Errorf("ctl restore two: %v, %s", err, out)
	}
}

// testProgram starts a component from another binary: here a copy.
func (d *devcluster) testProgram(t *testing.T) {
	other := filepath.Join(t.TempDir(), "devcluster-other")
	if out, err := exec.Command("cp", binary(t), other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.ctl(t, "program", "kube-apiserver-2", other)
	d.ctl(t, "restart", "kube-apiserver-2")
	for _, c := range d.info(t).Components {
		if (c.Name == "kube-apiserver-2") != (c.Program == other) {
			t.Errorf("%s is started from %q", c.Name, c.Program)
		}
	}
	d.ctl(t, "program", "kube-apiserver-2", "-")
	d.ctl(t, "restart", "kube-apiserver-2")
}
