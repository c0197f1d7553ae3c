package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/test/e2e/harness"
)

// tokenOf makes a service account with a cluster role, and a token of it.
func tokenOf(t *testing.T, c *harness.Cluster, name, role string) string {
	t.Helper()
	ctx := t.Context()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: "default"}},
	}
	if _, err := c.Client.CoreV1().ServiceAccounts("default").Create(ctx, sa, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if _, err := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Client.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = c.Client.CoreV1().ServiceAccounts("default").Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	answer, err := c.Client.CoreV1().ServiceAccounts("default").CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// passing starts an informerd that passes on what mode says. It speaks TLS, since
// client-go sends the token of a kubeconfig to such a server only.
func passing(t *testing.T, c *harness.Cluster, mode string) *harness.Informerd {
	t.Helper()
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Kubernetes: "passthrough: " + mode, TLS: true})
	i.WaitLive(t, syncTime)
	return i
}

// TestPassthrough: what informerd does not hold is asked for and done with the
// caller's rights, which are not informerd's.
func TestPassthrough(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := passing(t, c, "all")
	ctx := t.Context()
	client := func(token string) kubernetes.Interface {
		k, err := kubernetes.NewForConfig(&rest.Config{Host: i.URL, QPS: -1, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: i.CAFile()}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	admin, viewer, nobody := client(tokenOf(t, c, "pass-admin", "cluster-admin")), client(tokenOf(t, c, "pass-viewer", "view")), client("")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "passed-on"}}
	if _, err := viewer.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer creates: %v, want forbidden", err)
	}
	if _, err := nobody.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("nobody creates: %v, want refused", err)
	}
	created, err := admin.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Its own write is there by the version it was answered.
	got, err := nobody.CoreV1().ConfigMaps("default").Get(ctx, cm.Name, metav1.GetOptions{ResourceVersion: created.ResourceVersion})
	if err != nil || got.UID != created.UID {
		t.Errorf("reading the write: %v %v", got, err)
	}
	if err := admin.CoreV1().ConfigMaps("default").Delete(ctx, cm.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	// Leases are not watched by default.
	if leases, err := admin.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{}); err != nil || len(leases.Items) == 0 {
		t.Errorf("leases: %v", err)
	}
	if _, err := nobody.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("nobody reads leases with informerd's rights")
	}
	readOwnWrites(t, admin.CoreV1().ConfigMaps("default"))
}

// readOwnWrites wants each read, which names no version, to know of the write before it.
func readOwnWrites(t *testing.T, maps typedcorev1.ConfigMapInterface) {
	t.Helper()
	ctx, only := t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=own"}
	for range 20 {
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := maps.List(ctx, only); err != nil || len(list.Items) != 1 || list.Items[0].UID != made.UID {
			t.Fatalf("a list after the creation: %v %v", list, err)
		}
		for n := range 5 {
			patch := fmt.Sprintf(`{"data":{"n":"%d"}}`, n)
			changed, err := maps.Patch(ctx, "own", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := maps.Get(ctx, "own", metav1.GetOptions{}); err != nil || got.ResourceVersion != changed.ResourceVersion {
				t.Fatalf("a get after the change to %s: %v %v", changed.ResourceVersion, got, err)
			}
		}
		if err := maps.Delete(ctx, "own", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err := maps.Get(ctx, "own", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Fatalf("a get after the deletion: %v %v, want not found", got, err)
		}
	}
}

// TestWarnings: what the API server warns of comes with tables, and with what is
// passed on.
func TestWarnings(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := passing(t, c, "reads")
	token := "Bearer " + tokenOf(t, c, "warned", "cluster-admin")
	for _, uri := range []string{"/api/v1/endpoints", "/api/v1/componentstatuses", "/api/v1/pods"} {
		got := i.MustGet(t, uri, "Accept", acceptTable, "Authorization", token).Header.Values("Warning")
		theirs, err := c.Raw(t.Context(), http.MethodGet, uri, acceptTable)
		if err != nil {
			t.Fatal(err)
		}
		if want := theirs.Header.Values("Warning"); !slices.Equal(got, want) || len(want) == 0 && uri != "/api/v1/pods" {
			t.Errorf("warnings of %s: %q, the API server's %q", uri, got, want)
		}
	}
}

// TestConsistentReads: a read that asks for the present sees every write that
// was answered before it.
func TestConsistentReads(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Kubernetes: "reads: consistent"})
	i.WaitLive(t, syncTime)
	replica, err := kubernetes.NewForConfig(&rest.Config{Host: i.URL})
	if err != nil {
		t.Fatal(err)
	}
	maps := c.Client.CoreV1().ConfigMaps("default")
	for n := range 20 {
		name := fmt.Sprintf("consistent-%d", n)
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := replica.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("after the create: %v", err)
		}
		if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := replica.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after the delete: %v", err)
		}
	}
	began := time.Now()
	if _, err := replica.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err) // nothing happens to them: a bookmark has to say so
	}
	t.Logf("a consistent read of a quiet resource took %v", time.Since(began).Round(time.Millisecond))
}

// TestControllers: the control plane itself works through informerd. How long it
// takes is said, not judged: informerd is built with the race detector here, which
// INFORMERD_BIN changes.
func TestControllers(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := passing(t, c, "all")
	direct := scaleUpAndDown(t, c, "direct")

	components := []string{"kube-controller-manager", "kube-scheduler"}
	c.Ctl(t, "stop", components...)
	t.Cleanup(func() { c.Ctl(t, "start", components...) })
	kubeconfig := kubeconfigFor(t, i, tokenOf(t, c, "controllers", "cluster-admin"))
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range components {
		args := []string{"component", name, "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"}
		if name == "kube-controller-manager" {
			args = append(args, "--node-monitor-grace-period=240h")
		}
		cmd := exec.Command(filepath.Join(root, "bin", "devcluster"), args...)
		output, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = output, output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			if text, err := os.ReadFile(output.Name()); err == nil && t.Failed() {
				t.Logf("the end of the log of %s:\n%s", name, text[max(0, len(text)-4000):])
			}
			output.Close()
		})
	}
	through := scaleUpAndDown(t, c, "through")
	t.Logf("0 to %d pods and back: %v against the API server, %v through informerd", scaledPods, direct, through)
}

const scaledPods = 200

// scaleUpAndDown runs a Deployment up and down in a namespace of its own, which
// it deletes, and returns how long that took.
func scaleUpAndDown(t *testing.T, c *harness.Cluster, name string) time.Duration {
	t.Helper()
	ctx, ns := t.Context(), "scale-"+name
	if _, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": name}
	replicas := int32(0)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "registry.example/pause:1"}},
		}},
	}}
	if _, err := c.Client.AppsV1().Deployments(ns).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, n := range []int32{scaledPods, 0} {
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)
		if _, err := c.Client.AppsV1().Deployments(ns).Patch(ctx, name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, time.Minute, fmt.Sprintf("%d pods running", n), func() error {
			pods, err := c.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			running := 0
			for _, p := range pods.Items {
				if p.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			if running != int(n) || len(pods.Items) != int(n) {
				return fmt.Errorf("%d pods, %d running", len(pods.Items), running)
			}
			return nil
		})
	}
	if err := c.Client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, "namespace gone", func() error {
		_, err := c.Client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v", err)
	})
	return time.Since(began).Round(100 * time.Millisecond)
}
