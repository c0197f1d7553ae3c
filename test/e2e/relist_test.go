package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestCheapRelist: when the API server has forgotten the version of a large
// resource, informerd lists its metadata once and gets what changed. It lists
// everything neither after a restart of its own nor while it runs.
func TestCheapRelist(t *testing.T) {
	inTurn(t, &smallLane)
	const space, objects = "relist", 2500
	c := smallCluster(t)
	createNamespace(t, c, space)
	maps := c.Client.CoreV1().ConfigMaps(space)
	t.Cleanup(func() {
		if err := maps.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	name := func(n int) string { return fmt.Sprintf("map-%04d", n) }
	var g errgroup.Group
	g.SetLimit(16)
	for n := range objects {
		g.Go(func() error {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(n), Labels: map[string]string{"app": fmt.Sprint(n % 7)}}, Data: map[string]string{"n": fmt.Sprint(n)}}
			_, err := maps.Create(t.Context(), m, metav1.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime)
	follower := harness.Follow(t, i, "/v1/resources/configmaps/objects?namespace="+space)
	follower.Wait(t)
	waitSaved(t, i)
	i.Stop()

	// What the server has seen when it starts is what it remembers from then on:
	// the saved version is older than these changes, and they are forgotten.
	for n := range 6 {
		patchConfigMap(t, c, space, name(n), `{"data":{"changed":"yes"}}`)
	}
	for n := 6; n < 10; n++ {
		deleteConfigMap(t, c, space, name(n))
	}
	createConfigMap(t, c, space, name(6), nil, map[string]any{"recreated": "yes"})
	c.Ctl(t, "restart", apiServer)
	waitServing(t, c)
	mark := c.AuditMark(t)
	i.Start()
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
	// Seven changed; before a watch or a comparison the newest one held is looked
	// at, as metadata.
	checkCompared(t, c, mark, objects, 7+4)
	if r := i.Resource(t, "configmaps"); r.Counts.Relists != 0 || r.Counts.Compared != 1 || r.Counts.Fetched != 7 {
		t.Errorf("after a restart: %+v, want one comparison and no relist", r.Counts)
	}

	mark = c.AuditMark(t)
	c.Ctl(t, "restart", apiServer)
	waitServing(t, c)
	patchConfigMap(t, c, space, name(20), `{"data":{"changed":"again"}}`)
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
	checkLists(t, c, mark, 1, 1)
	if r := i.Resource(t, "configmaps"); r.Counts.Relists != 0 {
		t.Errorf("after a restart of the API server: %+v, want no relist", r.Counts)
	}
	follower.CheckEqual(t, selected(t, c, configMaps, func(o harness.Object) bool { return o.Namespace() == space }))
}

// checkCompared fails the test if configmaps were listed since mark other than as
// metadata, or if more than most of them were got.
func checkCompared(t *testing.T, c *harness.Cluster, mark harness.Mark, objects, most int) {
	t.Helper()
	requests := slices.DeleteFunc(c.Audit(t, mark, harness.Agent), func(r harness.Request) bool { return r.Resource != "configmaps" })
	if lists := harness.Lists(requests)["configmaps"]; len(lists) > 0 {
		t.Errorf("configmaps were listed in full: %v", lists)
	}
	pages, gets := 0, 0
	for _, r := range requests {
		switch {
		case r.IsMetadataPage():
			pages++
		case r.Verb == "get":
			gets++
		}
	}
	// Other tests may have left some more.
	if least := (objects + 999) / 1000; pages < least || pages > 2*least {
		t.Errorf("%d pages of metadata, want about %d: %v", pages, least, requests)
	}
	if gets > most {
		t.Errorf("%d gets, want at most %d: %v", gets, most, requests)
	}
}
