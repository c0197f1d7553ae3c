package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/test/e2e/harness"
)

// kubeconfigFolder is a folder of kubeconfigs that a test changes while informerd runs.
type kubeconfigFolder struct {
	*testing.T
	dir string
}

// put writes the kubeconfig of a cluster as those do who write a file in one go, and not in
// one step: there is a moment in which half of it is there.
func (f kubeconfigFolder) put(name string, c *harness.Cluster, contextNamespace string) {
	f.Helper()
	loaded, err := clientcmd.LoadFromFile(c.Kubeconfig("admin"))
	if err != nil {
		f.Fatal(err)
	}
	loaded.Contexts[loaded.CurrentContext].Namespace = contextNamespace
	text, err := clientcmd.Write(*loaded)
	if err != nil {
		f.Fatal(err)
	}
	f.write(name, text[:len(text)/2])
	time.Sleep(1500 * time.Millisecond) // longer than between two looks
	f.write(name, text)
}

func (f kubeconfigFolder) write(name string, text []byte) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), text, 0o600); err != nil {
		f.Fatal(err)
	}
}

func (f kubeconfigFolder) remove(name string) {
	f.Helper()
	if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
		f.Fatal(err)
	}
}

// waitCluster waits until informerd has the ConfigMaps of a cluster as its API server does.
func waitCluster(t *testing.T, i *harness.Informerd, name string, c *harness.Cluster) {
	t.Helper()
	want := selected(t, c, configMaps, nil)
	harness.Eventually(t, syncTime, "the ConfigMaps of "+name, func() error {
		theirs, err := want()
		if err != nil {
			return err
		}
		ours, err := i.List("configmaps", "cluster="+name)
		if err != nil {
			return err
		}
		got := map[string]harness.Object{}
		for _, o := range ours.Items {
			got[o.Key()] = o
		}
		if err := harness.EqualObjects(got, theirs, len(ours.Items)); err != nil {
			return err
		}
		a, err := i.Get("/clusters/" + name + "/api/v1/configmaps?resourceVersion=0")
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("the Kubernetes API of %s answers %d", name, a.Status)
		}
		return err
	})
}

// TestClustersComeAndGo: control planes are added, frozen, given other credentials and
// removed while informerd runs, as files of a folder; what it has of the others stays as
// their API servers have it, and is not listed again.
func TestClustersComeAndGo(t *testing.T) {
	inTurn(t, &demoLane, &smallLane, &doubleLane)
	demo, small, double := demoCluster(t), smallCluster(t), doubleCluster(t)
	folder := kubeconfigFolder{t, t.TempDir()}
	folder.put("small.yaml", small, "")
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: small.Kubeconfig("admin")})
	i.Stop()
	i.WriteConfig(fmt.Sprintf("listen: %s\nclusters:\n- folder: %q\nsnapshot: {path: %q, interval: 200ms}\nresources: [{match: [configmaps]}, {match: [namespaces]}]\n",
		strings.TrimPrefix(i.URL, "http://"), folder.dir, filepath.Join(t.TempDir(), "informerd.db")))
	i.Start()
	waitCluster(t, i, "small", small)
	churn := newChurner(t, small, builtinKinds()[:1], "fleet-a")
	stop := churn.start(t.Context(), 2)
	follower := harness.Follow(t, i, "/v1/resources/configmaps/objects?cluster=small&namespace=fleet-a")
	follower.Wait(t)
	mark := small.AuditMark(t)

	folder.put("demo.yaml", demo, "")
	folder.put("double", double, "")
	waitCluster(t, i, "demo", demo)
	waitCluster(t, i, "double", double)
	t.Run("one question to all", func(t *testing.T) {
		checkFleet(t, i, map[string]*harness.Cluster{"demo": demo, "double": double})
	})
	t.Run("one is frozen", func(t *testing.T) {
		double.Ctl(t, "pause", apiServer, apiServer2)
		defer double.Ctl(t, "resume", apiServer, apiServer2)
		waitCluster(t, i, "demo", demo)
		if a := i.MustGet(t, "/readyz"); a.Status != http.StatusOK {
			t.Errorf("readyz is %d: %s", a.Status, a.Body)
		}
	})
	// Another user's way to the same cluster, as far as anybody can tell.
	folder.put("small.yaml", small, "kube-system")
	harness.Eventually(t, syncTime, "the other credentials are taken over", func() error {
		if len(i.LogLines("kubeconfig changed, connecting again")) == 0 {
			return errors.New("the log does not say so")
		}
		return nil
	})
	folder.put("twin", small, "")
	waitCluster(t, i, "twin", small)
	harness.Eventually(t, syncTime, "twins are told", func() error {
		if len(i.LogLines("these are the same cluster")) == 0 {
			return errors.New("the log does not say so")
		}
		return nil
	})

	removed := harness.Follow(t, i, "/v1/resources/configmaps/objects?cluster=demo")
	removed.Wait(t)
	folder.remove("demo.yaml")
	folder.remove("twin")
	for _, name := range []string{"demo", "twin"} {
		harness.Eventually(t, syncTime, name+" is gone", func() error {
			a, err := i.Get("/clusters/" + name + "/api/v1/configmaps")
			if err == nil && a.Status != http.StatusNotFound {
				err = fmt.Errorf("it answers %d", a.Status)
			}
			return err
		})
	}
	for _, change := range removed.Changes() {
		if change.Type == "DELETED" {
			t.Fatalf("who follows a cluster that is removed is told of a deletion: %v", change)
		}
	}
	stop()
	churn.check(t)
	follower.CheckEqual(t, selected(t, small, configMaps, func(o harness.Object) bool { return o.Namespace() == "fleet-a" }))
	follower.CheckUndisturbed(t)

	// What was removed is not in the snapshot; what was not goes on from it.
	waitSaved(t, i)
	i.Stop()
	folder.remove("double")
	i.Start()
	waitCluster(t, i, "small", small)
	var resources struct {
		Items []struct{ Cluster string }
	}
	if err := i.Read("/v1/resources", &resources); err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.Items {
		if r.Cluster != "small" {
			t.Errorf("after the restart there is a resource of %s", r.Cluster)
		}
	}
	// The twin listed it, once; nobody else did.
	if n := len(harness.Lists(small.Audit(t, mark, harness.Agent))["configmaps"]); n != 1 {
		t.Errorf("the ConfigMaps of the cluster that stayed were listed %d times", n)
	}
}

// checkFleet asks clusters in which nothing changes one question together, and compares
// the answers with what their API servers say.
func checkFleet(t *testing.T, i *harness.Informerd, clusters map[string]*harness.Cluster) {
	t.Helper()
	want := map[string]int{}
	asked := ""
	for name, c := range clusters {
		all, err := selected(t, c, configMaps, func(o harness.Object) bool {
			return o.Name() == "kube-root-ca.crt" || strings.HasPrefix(o.Name(), "extension-")
		})()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 {
			want[name] = len(all)
		}
		asked += "&cluster=" + name
	}
	var groups struct {
		Items []struct {
			Group  struct{ Cluster string }
			Values map[string]int
		}
	}
	filter := url.QueryEscape(`object.metadata.name == "kube-root-ca.crt" || object.metadata.name.startsWith("extension-")`)
	if err := i.Read("/v1/resources/configmaps/objects?groupBy=cluster&filter="+filter+asked, &groups); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, g := range groups.Items {
		got[g.Group.Cluster] = g.Values["count()"]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("objects by cluster, -API servers +informerd:\n%s", diff)
	}
	var found struct {
		Facets struct {
			Cluster []struct {
				Value   string
				Objects int
			}
		}
	}
	if err := i.Read("/v1/search?q=name:extension-&limit=1"+asked, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Facets.Cluster) != len(clusters) {
		t.Errorf("the search found %+v, want something of each cluster", found.Facets)
	}
	var completion struct {
		Items []struct {
			Value   string
			Objects int
		}
	}
	if err := i.Read("/v1/complete?for=values&resource=configmaps&path=metadata.name&prefix=extension-"+asked, &completion); err != nil {
		t.Fatal(err)
	}
	if len(completion.Items) == 0 || completion.Items[0].Objects != len(clusters) {
		t.Errorf("proposals are %+v, want one with an object of each cluster", completion.Items)
	}
}
