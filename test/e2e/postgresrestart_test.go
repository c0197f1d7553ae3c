package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/postgres"
)

// restartPods is how many pods the database has in BenchmarkPostgresRestart.
const restartPods = 20_000

// BenchmarkPostgresRestart is a start elsewhere, of an informerd that has nothing but a
// database of 20,000 pods of a real API server: until its first answer of an index, which must
// be right, until the copy is proven current, and how much is listed meanwhile: nothing may be.
func BenchmarkPostgresRestart(b *testing.B) {
	c, err := harness.StartCluster(b.TempDir(), "--components", "etcd,kube-apiserver", "--start-timeout", "10m", "--pods", fmt.Sprint(restartPods))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Stop(); err != nil {
			b.Error(err)
		}
	})
	db := postgres.Start(b)
	opts := harness.Options{Kubeconfig: c.Kubeconfig("admin"), Postgres: db.URL(), Plain: true}
	i := harness.StartInformerd(b, opts)
	i.WaitLive(b, syncTime)
	waitSaved(b, i)
	node, on := someNode(b, c)
	var answered, live time.Duration
	lists, n := 0, 0
	for b.Loop() {
		i.Stop()
		mark := c.AuditMark(b)
		began := time.Now()
		i = harness.StartInformerd(b, opts)
		waitAnswer(b, i, node, on)
		answered += time.Since(began)
		i.WaitLive(b, syncTime)
		live += time.Since(began)
		for resource, all := range harness.Lists(c.Audit(b, mark, harness.Agent)) {
			lists += max(0, len(all)-discoveryStreams[resource])
		}
		n++
	}
	b.ReportMetric(float64(answered.Milliseconds())/float64(n), "ms/answer")
	b.ReportMetric(float64(live.Milliseconds())/float64(n), "ms/live")
	b.ReportMetric(float64(lists), "LISTs")
	if lists > 0 {
		b.Errorf("%d lists", lists)
	}
}

// someNode is a node, and how many pods the API server has on it.
func someNode(b *testing.B, c *harness.Cluster) (name string, pods int) {
	b.Helper()
	first, err := c.Client.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(first.Items) == 0 {
		b.Fatalf("there is no pod: %v", err)
	}
	name = first.Items[0].Spec.NodeName
	on, err := c.Client.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil || name == "" || len(on.Items) == 0 {
		b.Fatalf("there is no pod on %q: %v", name, err)
	}
	return name, len(on.Items)
}

// waitAnswer asks for the pods of a node until they are all there.
func waitAnswer(b *testing.B, i *harness.Informerd, node string, pods int) {
	b.Helper()
	for deadline := time.Now().Add(syncTime); ; time.Sleep(2 * time.Millisecond) {
		var all harness.ObjectList
		err := i.Read("/v1/resources/pods/indexes/node/"+node+"?fields=metadata.name", &all)
		if err == nil && len(all.Items) == pods {
			return
		}
		if time.Now().After(deadline) {
			b.Fatal(errors.Join(err, fmt.Errorf("%d pods on %s, want %d", len(all.Items), node, pods)))
		}
	}
}
