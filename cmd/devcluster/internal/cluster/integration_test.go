package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/cmd/devcluster/internal/cluster"
	"github.com/informerd/informerd/cmd/devcluster/internal/pki"
	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

// TestIntegration drives the real binary: $DEVCLUSTER if set, else a fresh
// build. Its parts share one cluster and build on each other.
func TestIntegration(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts a control plane")
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	d := start(t, dir, "--seed", "demo", "--pods", "300")

	t.Run("version", func(t *testing.T) {
		v, err := d.client(t, "admin", "test").Discovery().ServerVersion()
		if err != nil || v.GitVersion != "v1.36.3" {
			t.Errorf("ServerVersion() = %v, %v", v, err)
		}
	})
	t.Run("demo", d.testDemo)
	t.Run("bench pods", d.testBenchPods)
	t.Run("users", d.testUsers)
	t.Run("audit", d.testAudit)
	t.Run("aggregated API", d.testAggregatedAPI)
	t.Run("churn", d.testChurn)
	t.Run("control", d.testControl)
	t.Run("double start", func(t *testing.T) {
		out, err := exec.Command(binary(t), "--dir", dir).CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("in use by another devcluster")) {
			t.Errorf("second start on the same directory: %v, %s", err, out)
		}
	})

	before := d.info(t)
	uid := d.namespaceUID(t)
	if err := d.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, d.stderr)
	}
	assertGone(t, before)

	// The same directory again: the same data, keys and ports.
	d = start(t, dir, "--seed", "demo", "--pods", "300")
	after := d.info(t)
	if after.Server != before.Server {
		t.Errorf("server was %s and is %s: kubeconfigs written before the restart are of no use", before.Server, after.Server)
	}
	if got := d.namespaceUID(t); got != uid {
		t.Errorf("the data did not survive the restart: UID was %s and is %s", uid, got)
	}
	t.Run("demo again", d.testDemo)

	// A component that dies is told of and started again.
	dead := d.pid(t, "kube-scheduler")
	_ = syscall.Kill(dead, syscall.SIGKILL)
	eventually(t, func() error {
		for _, c := range d.info(t).Components {
			if c.Name == "kube-scheduler" && c.State == process.Ready && c.PID != dead && c.Deaths == 1 {
				return nil
			}
		}
		return errors.New("kube-scheduler is not started again")
	})
	for _, want := range []string{"kube-scheduler died: signal: killed", "death 1 of kube-scheduler, which is started again in 1s"} {
		if !strings.Contains(d.stderr.String(), want) {
			t.Errorf("stderr does not say %q:\n%s", want, d.stderr)
		}
	}
	if err := d.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, d.stderr)
	}

	// Nor does anything outlive devcluster itself.
	d = start(t, dir, "--components", "etcd,kube-apiserver")
	orphans := d.info(t)
	_ = d.stop(t, syscall.SIGKILL)
	assertGone(t, orphans)
}

func (d *devcluster) testDemo(t *testing.T) {
	client := d.client(t, "admin", "test")
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name"})
	if err != nil {
		t.Fatal(err)
	}
	demo := 0
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Namespace, "bench-") {
			continue
		}
		demo++
		if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("pod %s/%s is %s", pod.Namespace, pod.Name, pod.Status.Phase)
		}
	}
	if demo < 45 || demo > 80 {
		t.Errorf("%d demo pods, want 45 to 80", demo)
	}
	lock, err := client.CoreV1().ConfigMaps("payments").Get(t.Context(), "ledger-migration-lock", metav1.GetOptions{})
	if err != nil || lock.DeletionTimestamp == nil {
		t.Errorf("ledger-migration-lock is not stuck deleting: %v", err)
	}
	queues := schema.GroupVersionResource{Group: "messaging.example.com", Version: "v1beta1", Resource: "queues"}
	list, err := d.dynamic(t, "admin").Resource(queues).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.engine=kafka"})
	if err != nil || len(list.Items) != 5 {
		t.Errorf("queues with engine kafka: %v, want 5", err)
	}
}

func (d *devcluster) testBenchPods(t *testing.T) {
	client := d.client(t, "admin", "test")
	list := func() *corev1.PodList {
		t.Helper()
		pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "tier,team"})
		if err != nil {
			t.Fatal(err)
		}
		pods.Items = keep(pods.Items, func(p corev1.Pod) bool { return strings.HasPrefix(p.Namespace, "bench-") })
		return pods
	}
	before := list()
	if len(before.Items) != 300 {
		t.Fatalf("%d pods, want 300", len(before.Items))
	}
	versions := map[string]string{}
	for _, pod := range before.Items {
		versions[pod.Name] = pod.ResourceVersion
		data, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) < 6500 || len(data) > 8000 {
			t.Errorf("%s has %d bytes, want 6500 to 8000", pod.Name, len(data))
		}
		if pod.Status.Phase != corev1.PodRunning || len(pod.ManagedFields) != 2 {
			t.Errorf("%s is %s with %d managers", pod.Name, pod.Status.Phase, len(pod.ManagedFields))
		}
	}
	time.Sleep(3 * time.Second) // long enough for a controller to disagree
	for _, pod := range list().Items {
		if versions[pod.Name] != pod.ResourceVersion {
			t.Errorf("%s changed after it was loaded", pod.Name)
		}
	}
}

// testChurn: what is written to etcd is what a watch of the API server shows.
func (d *devcluster) testChurn(t *testing.T) {
	pods := d.client(t, "admin", "test").CoreV1().Pods("bench-00")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	cmd := exec.CommandContext(t.Context(), binary(t), "churn", "--dir", d.dir, "--namespace", "bench-00")
	cmd.Stdin = strings.NewReader("100 500ms\n")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"changes":50,`) {
		t.Fatalf("churn: %v\n%s", err, out)
	}
	for n := range 50 {
		event := <-seen.ResultChan()
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type != watch.Modified || pod.Annotations["devcluster.informerd.io/change"] != strconv.Itoa(n+1) {
			t.Fatalf("event %d is %v of %v", n+1, event.Type, event.Object)
		}
	}
}

func (d *devcluster) testUsers(t *testing.T) {
	type access struct{ resource, namespace string }
	all := []access{{"pods", ""}, {"pods", "team-a"}, {"pods", "shop"}, {"secrets", ""}, {"secrets", "shop"},
		{"nodes", ""}, {"queues", ""}, {"apiservices", ""}}
	allowed := map[string]map[access]bool{
		"admin":      {all[0]: true, all[1]: true, all[2]: true, all[3]: true, all[4]: true, all[5]: true, all[6]: true, all[7]: true},
		"namespaced": {all[1]: true},
		"nobody":     {},
		"nosecrets":  {all[0]: true, all[1]: true, all[2]: true, all[5]: true, all[6]: true, all[7]: true},
	}
	groups := map[string]schema.GroupVersion{
		"queues":      {Group: "messaging.example.com", Version: "v1"},
		"apiservices": {Group: "apiregistration.k8s.io", Version: "v1"},
	}
	for user, rights := range allowed {
		client := d.dynamic(t, user)
		for _, a := range all {
			gv, ok := groups[a.resource]
			if !ok {
				gv = schema.GroupVersion{Version: "v1"}
			}
			_, err := client.Resource(gv.WithResource(a.resource)).Namespace(a.namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s lists %v: %v", user, a, err)
			} else if (err == nil) != rights[a] {
				t.Errorf("%s lists %v: %v, want allowed = %v", user, a, err, rights[a])
			}
		}
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: d.info(t).Kubeconfigs["namespaced"]}, nil)
	if namespace, _, err := loader.Namespace(); err != nil || namespace != "team-a" {
		t.Errorf("context namespace of namespaced = %q, %v", namespace, err)
	}
}

// testAudit counts like the README tells tests to count.
func (d *devcluster) testAudit(t *testing.T) {
	const agent = "audit-test"
	client := d.client(t, "admin", agent)
	if _, err := client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("shop").Get(t.Context(), "shop-config", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	watch, err := client.CoreV1().Secrets("shop").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := "list pods 200,get configmaps 200,watch secrets 200"
	if got := d.audited(t, agent); got != want { // the watch is still open
		t.Errorf("audit log: %s, want %s", got, want)
	}
	watch.Stop()
	time.Sleep(200 * time.Millisecond)
	if got := d.audited(t, agent); got != want { // its end is no line of its own
		t.Errorf("audit log after the watch: %s, want %s", got, want)
	}
	_, err = d.client(t, "nobody", agent+"-nobody").CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("nobody watches pods: %v", err)
	}
	if got := d.audited(t, agent+"-nobody"); got != "watch pods 403" {
		t.Errorf("audit log of a refused watch: %s", got)
	}
}

func (d *devcluster) audited(t *testing.T, agent string) string {
	t.Helper()
	data, err := os.ReadFile(d.info(t).AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range bytes.Lines(data) {
		var event struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource string }
			ResponseStatus  struct{ Code int }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("audit log: %v: %s", err, line)
		}
		if event.UserAgent == agent {
			lines = append(lines, fmt.Sprintf("%s %s %d", event.Verb, event.ObjectRef.Resource, event.ResponseStatus.Code))
		}
	}
	return strings.Join(lines, ",")
}

// testAggregatedAPI registers an API served by this process.
func (d *devcluster) testAggregatedAPI(t *testing.T) {
	var user atomic.Value // who last asked for animals
	user.Store("")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/zoo.example.com/v1":
			io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"zoo.example.com/v1","resources":[
				{"name":"animals","namespaced":true,"kind":"Animal","verbs":["get","list","watch"]}]}`)
		case "/apis/zoo.example.com/v1/animals":
			user.Store(r.Header.Get("X-Remote-User"))
			io.WriteString(w, `{"kind":"AnimalList","apiVersion":"zoo.example.com/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	ca, err := pki.OpenAuthority(t.TempDir(), "zoo-ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Server("zoo", "zoo.default.svc")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port

	client := d.client(t, "admin", "test")
	_, err = client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "zoo"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	apiServices := d.dynamic(t, "admin").Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	_, err = apiServices.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": "v1.zoo.example.com"},
		"spec": map[string]any{
			"group": "zoo.example.com", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"caBundle": base64.StdEncoding.EncodeToString(ca.CertPEM),
			"service":  map[string]any{"namespace": "default", "name": "zoo", "port": int64(port)},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer apiServices.Delete(context.Background(), "v1.zoo.example.com", metav1.DeleteOptions{})

	animals := schema.GroupVersionResource{Group: "zoo.example.com", Version: "v1", Resource: "animals"}
	for _, who := range []string{"admin", "nosecrets"} {
		eventually(t, func() error {
			_, err := d.dynamic(t, who).Resource(animals).List(t.Context(), metav1.ListOptions{})
			return err
		})
		if got := user.Load(); got != who {
			t.Errorf("the aggregated server was told the user is %q, want %s", got, who)
		}
	}
}

func (d *devcluster) testControl(t *testing.T) {
	client := d.client(t, "admin", "test")
	before := d.info(t)
	ctl := func(args ...string) { t.Helper(); d.ctl(t, args...) }
	// An open watch must not hold the server up.
	watch, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for _, stop := range []string{"stop", "kill"} {
		began := time.Now()
		ctl(stop, "kube-apiserver")
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("%s took %v", stop, took)
		}
		if _, err := client.Discovery().ServerVersion(); err == nil {
			t.Errorf("the server answers after %s", stop)
		}
		ctl("start", "kube-apiserver")
		if _, err := client.Discovery().ServerVersion(); err != nil {
			t.Errorf("after start: %v", err)
		}
	}
	after := d.info(t)
	if after.Server != before.Server || !after.Ready {
		t.Errorf("after the restart: %s, ready = %v", after.Server, after.Ready)
	}
	ctl("pause", "kube-apiserver")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the server is paused: %v, want a timeout", err)
	}
	ctl("resume", "kube-apiserver")
	eventually(t, func() error {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	out, err := exec.Command(binary(t), "ctl", "--dir", d.dir, "stop", "kubelet").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte(`unknown component "kubelet"`)) {
		t.Errorf("ctl stop kubelet: %v, %s", err, out)
	}
	out, err = exec.Command(binary(t), "ctl", "--dir", d.dir, "status").CombinedOutput()
	if err != nil || bytes.Count(out, []byte(" ready ")) != len(cluster.Components) {
		t.Errorf("ctl status: %v\n%s", err, out)
	}
}
