package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/persist"
	"github.com/informerd/informerd/test/e2e/harness"
)

// oldVariable names a devcluster of an older Kubernetes, as cmd/devcluster/build.sh
// makes it.
const oldVariable = "INFORMERD_E2E_OLD_DEVCLUSTER"

// TestRollingUpgrade: two API servers become of another version one after the other,
// with informerd running, restarted while versions are mixed, and stopped during the
// last step. In the end every object is, byte for byte, what the new servers make of
// it, also those that did not change; no resource goes meanwhile.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	old := os.Getenv(oldVariable)
	if old == "" {
		t.Skipf("%s names no devcluster of an older Kubernetes", oldVariable)
	}
	c, err := harness.StartCluster(filepath.Join(t.TempDir(), "cluster"), append([]string{"--apiservers", "2",
		"--apiserver-program", apiServer + "=" + old, "--apiserver-program", apiServer2 + "=" + old}, harness.Small...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	opts := func() harness.Options {
		return harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")}
	}
	running, stopped := harness.StartInformerd(t, opts()), harness.StartInformerd(t, opts())
	running.WaitLive(t, syncTime)
	stopped.WaitLive(t, syncTime)
	w := newRandomWriter(t, c, running)
	w.create(t)
	harness.CheckEqual(t, c, running, harness.Check{})
	f := harness.Follow(t, running, "/v1/resources/configmaps/objects")
	f.Wait(t)
	waitSaved(t, stopped)
	stopped.Stop()
	before, served := rendered(t, c, running, "apiserver-1"), watched(t, running)

	upgrade := func(component string) {
		c.Program(t, component, "-")
		c.Ctl(t, "restart", component)
	}
	upgrade(apiServer)
	waitServing(t, c)
	mixed := rendered(t, c, running, "apiserver-1")
	differ := 0
	for key, object := range before {
		if now, ok := mixed[key]; ok && now != object {
			differ++
			t.Logf("rendered otherwise: %s", key)
		}
	}
	t.Logf("%d of %d objects are rendered otherwise by the new server", differ, len(before))
	w.change(t)
	running.WaitLive(t, syncTime)
	// What did not change is older than the new server's watch cache: 410, once.
	meetBoth(t, c, running, 1)
	harness.Eventually(t, time.Minute, "resources of the new server", func() error {
		if len(without(watched(t, running), served)) == 0 {
			return errors.New("none")
		}
		return nil
	})
	both := watched(t, running)
	t.Logf("only the new server has: %s", strings.Join(without(both, served), " "))
	// What is saved now is of both versions.
	waitSaved(t, running)
	running.Kill()
	running.Start()
	running.WaitLive(t, syncTime)
	meetBoth(t, c, running, 0)

	mark := c.AuditMark(t)
	upgrade(apiServer2)
	waitServing(t, c)
	// It answers lists when its watch caches are there. What is listed from here on is
	// no older than these, so that nothing of it is 410 later.
	rendered(t, c, running, "apiserver-2")
	stopped.Start()
	for _, i := range []*harness.Informerd{running, stopped} {
		i.WaitLive(t, syncTime)
		harness.CheckEqual(t, c, i, harness.Check{Timeout: syncTime})
	}
	logLists(t, c, mark)
	if gone := running.LogLines("informer stopped", "gone=true"); len(gone) > len(without(both, watched(t, running))) {
		t.Errorf("resources went that both or one of the servers had:\n%s", strings.Join(gone, ""))
	}
	f.CheckEqual(t, selected(t, c, configMaps, nil))
	f.CheckFaults(t)
	// What was listed while the last answers of the old server were under way is not
	// known to be of the new one, and is listed again. A snapshot of which all is known
	// to be of it is resumed from.
	harness.Eventually(t, 2*time.Minute, "a snapshot of the new servers", func() error {
		stopped.WaitLive(t, syncTime)
		stopped.Stop()
		if older := savedOf(t, stopped, "v1.36."); len(older) > 0 {
			stopped.Start()
			return fmt.Errorf("not known to be of the new servers: %v", older)
		}
		return nil
	})
	mark = c.AuditMark(t)
	stopped.Start()
	stopped.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, stopped, harness.Check{})
	checkNoLists(t, c, mark)
}

// savedOf are the resources that the snapshot of a stopped informerd holds as of
// other API servers than those of a version.
func savedOf(t *testing.T, i *harness.Informerd, version string) (others []string) {
	t.Helper()
	info, err := persist.Info(i.Snapshot(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range info.Resources {
		if !strings.HasPrefix(r.ServerVersion, version) {
			others = append(others, fmt.Sprintf("%s.%s: %q", r.Resource, r.Group, r.ServerVersion))
		}
	}
	return others
}

// meetBoth cuts all connections several times, while servers are of two versions: the
// new ones are to both of them by turns. What only one of them serves stays, and is
// live again. No resource is listed more than lists times.
func meetBoth(t *testing.T, c *harness.Cluster, i *harness.Informerd, lists int) {
	t.Helper()
	all, mark := watched(t, i), c.AuditMark(t)
	for range 5 {
		c.Balancer(t, "cut")
		i.WaitLive(t, syncTime, all...)
		if gone := without(all, watched(t, i)); len(gone) > 0 {
			t.Errorf("not watched any more while versions are mixed: %v", gone)
		}
	}
	checkLists(t, c, mark, 1, lists)
}

func watched(t *testing.T, i *harness.Informerd) (all []string) {
	t.Helper()
	for name, r := range mustResources(t, i) {
		if r.State != "unwatched" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// without are those of all that are not among others.
func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(others, name) })
}

// logLists says what was listed since mark.
func logLists(t *testing.T, c *harness.Cluster, mark harness.Mark) {
	t.Helper()
	lists := harness.Lists(c.Audit(t, mark, harness.Agent))
	most := 0
	for _, of := range lists {
		most = max(most, len(of))
	}
	t.Logf("%d resources were listed during the last step, %d times at most, by two informerds", len(lists), most)
}

// rendered are the objects of all resources that informerd watches, as one API server
// writes them.
func rendered(t *testing.T, c *harness.Cluster, i *harness.Informerd, server string) map[string]string {
	t.Helper()
	there, all := c.Through(t, server), map[string]string{}
	for name, r := range mustResources(t, i) {
		if r.State == "unwatched" {
			continue
		}
		list, err := there.List(t.Context(), r.GVR(), "")
		if err != nil {
			t.Logf("%s: %v", name, err) // only one version may have it
			continue
		}
		for _, o := range list.Items {
			all[fmt.Sprintf("%s %s %s", name, o.Key(), o.ResourceVersion())] = harness.Kept(o).Canonical()
		}
	}
	return all
}
