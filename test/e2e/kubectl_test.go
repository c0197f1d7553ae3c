package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// wholeCluster watches all there is and keeps it whole, so that answers can equal
// the API server's.
const wholeCluster = `
- match: [secrets]
  drop: []
  redact: []
- match: ["*"]
  drop: []
`

// kubectl is one kubectl, asking either side.
type kubectl struct {
	name, program string
	args          []string
	cluster       *harness.Cluster
	informerd     *harness.Informerd
	cache         string
}

// kubectls are the machine's, if it has one, and that of the cluster's version.
func kubectls(t *testing.T, c *harness.Cluster, i *harness.Informerd) []*kubectl {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := []*kubectl{{name: "cluster's", program: filepath.Join(root, "bin", "devcluster"), args: []string{"kubectl"}}}
	if path, err := exec.LookPath("kubectl"); err == nil {
		all = append(all, &kubectl{name: "machine's", program: path})
	} else {
		t.Log("this machine has no kubectl of its own")
	}
	for _, k := range all {
		k.cluster, k.informerd, k.cache = c, i, t.TempDir()
	}
	return all
}

// command asks informerd, or the API server.
func (k *kubectl) command(ctx context.Context, server bool, args ...string) *exec.Cmd {
	where := []string{"--server", k.informerd.URL, "--kubeconfig", "/dev/null", "--cache-dir", filepath.Join(k.cache, "informerd")}
	if server {
		where = []string{"--kubeconfig", k.cluster.Kubeconfig("admin"), "--cache-dir", filepath.Join(k.cache, "server")}
	}
	return exec.CommandContext(ctx, k.program, slices.Concat(k.args, where, args)...)
}

// run returns what is printed; warnings and errors are printed last.
func (k *kubectl) run(server bool, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := k.command(ctx, server, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String() + err.Error()
	}
	return stdout.String()
}

// elapsed is a time that has passed, which is never the same twice, and what a
// table pads it with.
var elapsed = regexp.MustCompile(`\b([0-9]+[dhms]){1,2}\b|  +|-{3,}`)

// equal compares what both print until it is the same but for the time. The cluster
// changes now and then, and on a busy machine one comparison may take as long as
// several otherwise: a few are made in any case.
func (k *kubectl) equal(t *testing.T, args ...string) {
	t.Helper()
	const least, long = 4, 20 * time.Second
	began := time.Now()
	for n := 1; ; n++ {
		got, want := k.run(false, args...), k.run(true, args...)
		if !slices.Contains(args, "json") {
			got, want = elapsed.ReplaceAllString(got, " "), elapsed.ReplaceAllString(want, " ")
		}
		if got == want {
			return
		}
		if n >= least && time.Since(began) > long {
			t.Errorf("%s kubectl %s differs: informerd:\n%s\nAPI server:\n%s", k.name, strings.Join(args, " "), differing(got, want), differing(want, got))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// differing are the first lines of a that b does not have.
func differing(a, b string) string {
	theirs := map[string]bool{}
	for line := range strings.Lines(b) {
		theirs[line] = true
	}
	var only []string
	for line := range strings.Lines(a) {
		if !theirs[line] {
			only = append(only, line)
		}
	}
	return strings.Join(only[:min(len(only), 8)], "")
}

// TestKubectl: whatever kubectl shows of a cluster, it shows of its replica.
func TestKubectl(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster})
	i.WaitLive(t, syncTime)
	all, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(all))
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == "leases.coordination.k8s.io" // written all the time
	})
	for _, k := range kubectls(t, c, i) {
		t.Run(k.name, func(t *testing.T) {
			for batch := range slices.Chunk(names, 10) {
				k.equal(t, "get", strings.Join(batch, ","), "-A", "-o", "json")
				k.equal(t, "get", strings.Join(batch, ","), "-A", "-o", "wide")
			}
			for _, line := range []string{
				"get pods -A -l app=cart --show-labels",
				"get pods -A --field-selector=status.phase=Running",
				"get pods -A --field-selector=spec.host=,status.phase!=Running",
				"get nodes --field-selector=spec.unschedulable=false",
				"get pods -A --chunk-size=5",
				"get pods -A --chunk-size=5 -o json",
				"get all -n shop",
				"get mq -A --sort-by=.metadata.name",
				"get pod redis-0 -n shop -o yaml",
				"get deploy cart -n shop -o jsonpath={.spec}",
				"get pod no-such-pod -n shop",
				"get pods -n no-such-namespace",
				"get events -n shop -o json",
				"describe pod redis-0 -n shop",
				"describe deployment cart -n shop",
				"describe node",
				"describe queues.messaging.example.com -A",
				"explain pod.spec.containers",
				"explain queues.messaging.example.com --recursive",
				"explain deployment.spec.strategy",
				"explain pods.spec.nonsense",
				"explain nonsense",
				"explain cronjobs --output=plaintext-openapiv2",
				"describe service cart -n shop",
				"describe namespace shop",
				"describe configmaps -n shop",
				"get pods,services,mq -n shop",
				"get pods -A -o custom-columns=N:.metadata.name,I:.spec.containers[*].image",
				"get pods -A --sort-by=.spec.nodeName -o name",
				"get pods -n shop --selector app=nothing",
				"get pods -A -l app=(",
				"get pods -A --field-selector=a",
				"get nonsense",
				"get endpoints -n shop",
				"events -n shop",
				"rollout history deployment/cart -n shop",
				"wait --for=condition=Ready pod/redis-0 -n shop",
				"wait --for=condition=Available deployment/cart -n shop",
				"wait --for=condition=Available=false deployment/cart -n shop --timeout=1s",
				"wait --for=jsonpath={.status.phase}=Running pod/redis-0 -n shop",
				"wait --for=jsonpath={.spec.replicas} deployment/cart -n shop",
				"wait --for=condition=Ready node --all",
				"wait --for=delete pod/no-such-pod -n shop",
				"wait --for=condition=Ready pod/no-such-pod -n shop",
				"wait --for=create pod/redis-0 -n shop",
				"get --raw /version",
				"get --raw /openapi/v3",
				"get --raw /api/v1/namespaces/shop/pods/redis-0",
				"rollout status deployment/cart -n shop",
			} {
				k.equal(t, strings.Fields(line)...)
			}
			if out := k.run(false, "delete", "pod", "redis-0", "-n", "shop", "--wait=false"); !strings.Contains(out, "read replica") {
				t.Errorf("delete was not refused: %s", out)
			}
			// Beside what is held there are the five access reviews, which are created.
			if out := k.run(false, "api-resources", "--no-headers"); strings.Count(out, "\n") != len(all)+5 {
				t.Errorf("api-resources has not %d lines:\n%s", len(all)+5, out)
			}
			if out := k.run(false, "api-resources", "--verbs", "list", "--no-headers"); strings.Count(out, "\n") != len(all) {
				t.Errorf("api-resources has not %d lines:\n%s", len(all), out)
			}
			before, err := watchers(k.informerd, "configmaps")
			if err != nil {
				t.Fatal(err)
			}
			checkWatch(t, c, k, before)
			checkWait(t, c, k, before)
		})
	}
}

// checkWatch: get -w prints a change as the API server does. Before it so many follow
// configmaps.
func checkWatch(t *testing.T, c *harness.Cluster, k *kubectl, before int) {
	maps := c.Client.CoreV1().ConfigMaps("default")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name := "watched-" + strings.Trim(k.name, "'s")
	cmd := k.command(ctx, false, "get", "configmaps", "-n", "default", "--watch-only", "--output-watch-events", "--field-selector", "metadata.name="+name)
	var out bytes.Buffer
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for strings.Count(out.String(), "\n") < 4 {
			n, err := pipe.Read(buf)
			out.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	waitWatchers(t, k.informerd, "configmaps", before+1)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "1"}}
	if cm, err = maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cm.Data["b"] = "2"
	if _, err = maps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-read:
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill()
	<-read
	_ = cmd.Wait()
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := regexp.MustCompile(`^EVENT NAME DATA AGE;ADDED NAME 1 [0-9]+s;MODIFIED NAME 2 [0-9]+s;DELETED NAME [02] [0-9]+s$`)
	if text := strings.ReplaceAll(strings.Join(got, ";"), name, "NAME"); !want.MatchString(text) {
		t.Errorf("get -w printed %s", text)
	}
}

// checkWait: wait ends when what it waits for happens. Before it so many follow configmaps.
func checkWait(t *testing.T, c *harness.Cluster, k *kubectl, before int) {
	maps := c.Client.CoreV1().ConfigMaps("default")
	name := "awaited-" + strings.Trim(k.name, "'s")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "1"}}
	cm, err := maps.Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what   string
		change func() error
	}{
		{"jsonpath={.data.a}=2", func() error {
			cm.Data["a"] = "2"
			_, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{})
			return err
		}},
		{"delete", func() error { return maps.Delete(t.Context(), name, metav1.DeleteOptions{}) }},
	} {
		waitWatchers(t, k.informerd, "configmaps", before)
		said := make(chan string, 1)
		go func() { said <- k.run(false, "wait", "--for="+step.what, "configmap/"+name, "-n", "default") }()
		waitWatchers(t, k.informerd, "configmaps", before+1)
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got := <-said; got != "configmap/"+name+" condition met\n" {
			t.Errorf("wait --for=%s printed %s", step.what, got)
		}
	}
}

// watchers is how many follow a resource: clients, and what informerd keeps up to date
// itself, such as the health of everything.
func watchers(i *harness.Informerd, resource string) (int, error) {
	var r struct{ Counts struct{ Subscribers int } }
	err := i.Read("/v1/resources/"+resource, &r)
	return r.Counts.Subscribers, err
}

// waitWatchers waits until so many follow a resource.
func waitWatchers(t *testing.T, i *harness.Informerd, resource string, n int) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, fmt.Sprintf("%d watchers of %s", n, resource), func() error {
		now, err := watchers(i, resource)
		if err == nil && now != n {
			err = fmt.Errorf("%d watch", now)
		}
		return err
	})
}
