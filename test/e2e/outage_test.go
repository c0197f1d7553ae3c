package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

const apiServer = "kube-apiserver"

// waitServing waits until the API server answers again.
func waitServing(t *testing.T, c *harness.Cluster) {
	t.Helper()
	harness.Eventually(t, time.Minute, "API server answers", func() error {
		_, err := c.List(t.Context(), configMaps, "default")
		return err
	})
}

// TestServerDownAtStart: with a snapshot, informerd answers while the API server
// is down, and says what the answers are worth; without one it says that it has
// no data, never that there are no objects. When the server is back, both equal
// it.
func TestServerDownAtStart(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	createNamespace(t, c, "down")
	for n := range 20 {
		createConfigMap(t, c, "down", fmt.Sprintf("down-%d-%d", fresh(), n), map[string]string{"app": fmt.Sprintf("a%d", n%3)}, map[string]any{"n": fmt.Sprint(n)})
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
	truth := selected(t, c, configMaps, nil)
	want, err := truth()
	if err != nil {
		t.Fatal(err)
	}
	i.Stop()

	c.Ctl(t, "stop", apiServer)
	t.Cleanup(func() { c.Up(t, apiServer) })
	i.Start()
	harness.Eventually(t, 30*time.Second, "answers from the snapshot", func() error {
		_, err := i.List("configmaps", "")
		return err
	})
	a := i.MustGet(t, "/v1/resources/configmaps/objects")
	if state := a.Header.Get("Informerd-State"); a.Status != http.StatusOK || state != "warm" {
		t.Errorf("status %d, state %q, want 200 and warm", a.Status, state)
	}
	if w := a.Header.Get("Warning"); !strings.HasPrefix(w, "110 informerd ") || a.Header.Get("Age") == "" || a.Header.Get("Informerd-Age") == "" {
		t.Errorf("headers of a warm answer: %v", a.Header)
	}
	list, err := i.List("configmaps", "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]harness.Object{}
	for _, o := range list.Items {
		got[o.Key()] = o
	}
	if err := harness.EqualObjects(got, want, len(list.Items)); err != nil {
		t.Errorf("objects from the snapshot: %v", err)
	}
	counted := map[string]int{}
	for _, o := range want {
		if app := o.Labels()["app"]; app != "" {
			counted["app="+app]++
		}
	}
	values, err := i.IndexValues("configmaps", "label")
	if err != nil {
		t.Fatal(err)
	}
	for value, n := range counted {
		if values[value] != n {
			t.Errorf("index label has %d objects under %s, want %d", values[value], value, n)
		}
	}
	// It serves before its first request has been refused: what readyz says of
	// the server may take a moment.
	harness.Eventually(t, syncTime, "a readyz that is ready and names the server unreachable", func() error {
		return readyzSays(t, i, http.StatusOK, "unreachable", "warm")
	})

	cold := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	for _, path := range []string{"/v1/resources/configmaps/objects", "/v1/resources/pods/indexes/label", "/v1/resources/pods/objects/default/x"} {
		a := cold.MustGet(t, path)
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s without any data: %d %v %.300s, want 503 and Retry-After", path, a.Status, a.Header, a.Body)
		}
	}
	harness.Eventually(t, syncTime, "a readyz that is not ready and names the server unreachable", func() error {
		return readyzSays(t, cold, http.StatusServiceUnavailable, "unreachable")
	})
	if a := cold.MustGet(t, "/livez"); a.Status != http.StatusOK {
		t.Errorf("livez is %d", a.Status)
	}

	mark := c.AuditMark(t)
	c.Ctl(t, "start", apiServer)
	waitServing(t, c)
	i.WaitLive(t, syncTime)
	cold.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
	harness.CheckEqual(t, c, cold, harness.Check{})
	// Its watch cache is new: what was saved is older, so both may list once.
	checkLists(t, c, mark, 2, 1)
}

// readyzSays returns an error unless readyz answers with status and every one
// of words.
func readyzSays(t *testing.T, i *harness.Informerd, status int, words ...string) error {
	t.Helper()
	a := i.MustGet(t, "/readyz?verbose")
	if a.Status != status {
		return fmt.Errorf("readyz is %d, want %d, and says:\n%.600s", a.Status, status, a.Body)
	}
	for _, word := range words {
		if !strings.Contains(string(a.Body), word) {
			return fmt.Errorf("readyz is %d and does not say %q:\n%.600s", a.Status, word, a.Body)
		}
	}
	return nil
}

// TestServerSlowAtStart: a server that is there and does not answer for a while
// is no reason to list either.
func TestServerSlowAtStart(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	createNamespace(t, c, "slow")
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime)
	waitSaved(t, i)
	i.Stop()
	createConfigMap(t, c, "slow", fmt.Sprintf("missed-%d", fresh()), nil, nil)
	mark := c.AuditMark(t)

	c.Ctl(t, "pause", apiServer)
	resume := func() { c.Ctl(t, "resume", apiServer) }
	t.Cleanup(resume)
	i.Start()
	harness.Eventually(t, 30*time.Second, "answers from the snapshot", func() error {
		a, err := i.Get("/v1/resources/configmaps/objects")
		if err == nil && (a.Status != http.StatusOK || a.Header.Get("Informerd-State") != "warm") {
			err = fmt.Errorf("%d, %s", a.Status, a.Header.Get("Informerd-State"))
		}
		return err
	})
	resume()
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
	checkNoLists(t, c, mark)
}

// TestServerRestart: the API server is restarted, and killed, under a running
// informerd. Every watch expires: each resource is listed once at most, clients
// of event streams keep their connection and see real changes only, and
// everything is equal again.
func TestServerRestart(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	d := harness.CRD{Group: "outage.example.com", Plural: "trees", Kind: "Tree", Selectable: []string{".spec.color"}}
	c.CreateCRD(t, d)
	churn := newChurner(t, c, append(builtinKinds(), customKind(d)), "outage-a", "outage-b")
	churn.pause = 20 * time.Millisecond
	createNamespace(t, c, "still")
	for n := range 10 {
		createConfigMap(t, c, "still", fmt.Sprintf("still-%d-%d", fresh(), n), map[string]string{"app": "still"}, nil)
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime, d.Name())
	// One that may do less than an admin: RBAC is not at work at once after a
	// start of the API server.
	restricted := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("nosecrets")})
	harness.Eventually(t, syncTime, "live as far as allowed", func() error { return liveBut(restricted, "secrets") })

	followers := map[string]*harness.Follower{
		"all":   harness.Follow(t, i, "/v1/resources/configmaps/objects"),
		"still": harness.Follow(t, i, "/v1/resources/configmaps/objects?namespace=still"),
		"trees": harness.Follow(t, i, "/v1/resources/"+d.Name()+"/objects"),

		"all as nosecrets":   harness.Follow(t, restricted, "/v1/resources/configmaps/objects"),
		"trees as nosecrets": harness.Follow(t, restricted, "/v1/resources/"+d.Name()+"/objects"),
	}
	for _, f := range followers {
		f.Wait(t)
	}
	for _, how := range []string{"restart", "kill"} {
		stop := churn.start(t.Context(), 3)
		waitChanges(t, churn, 60)
		mark := c.AuditMark(t)
		if how == "restart" {
			c.Ctl(t, "restart", apiServer)
		} else {
			c.Ctl(t, "kill", apiServer)
			harness.Eventually(t, 30*time.Second, "outage seen", func() error {
				all, err := i.Resources()
				if err == nil && all["configmaps"].State != "stale" {
					err = fmt.Errorf("configmaps is %s", all["configmaps"].State)
				}
				return err
			})
			a := i.MustGet(t, "/v1/resources/configmaps/objects?limit=1")
			if a.Status != http.StatusOK || a.Header.Get("Informerd-State") != "stale" || !strings.HasPrefix(a.Header.Get("Warning"), "110 ") {
				t.Errorf("answer during the outage: %d %v", a.Status, a.Header)
			}
			c.Ctl(t, "start", apiServer)
		}
		waitServing(t, c)
		waitChanges(t, churn, 60)
		i.WaitLive(t, syncTime, d.Name())
		stop()
		harness.CheckEqual(t, c, i, harness.Check{})
		checkLists(t, c, mark, 1, 1)
		harness.Eventually(t, syncTime, "restricted user live again", func() error { return liveBut(restricted, "secrets") })
		harness.CheckEqual(t, c, restricted, harness.Check{Resources: []string{"configmaps", d.Name()}})
	}
	churn.check(t)
	followers["all"].CheckEqual(t, selected(t, c, configMaps, nil))
	followers["all as nosecrets"].CheckEqual(t, selected(t, c, configMaps, nil))
	followers["trees"].CheckEqual(t, selected(t, c, d.GVR(), nil))
	followers["trees as nosecrets"].CheckEqual(t, selected(t, c, d.GVR(), nil))
	for name, f := range followers {
		f.CheckUndisturbed(t)
		harness.Eventually(t, 30*time.Second, "stream of "+name+" told of the outage and its end", func() error {
			if states := f.States(); !slices.Contains(states, "stale") || states[len(states)-1] != "live" {
				return fmt.Errorf("states %v", states)
			}
			return nil
		})
	}
	for _, change := range followers["still"].Changes() {
		if strings.HasPrefix(change.Key, "still/still-") {
			t.Errorf("an object that nobody touched: %s", change)
		}
	}
}

// liveBut wants all watched resources live but for one, which is forbidden.
func liveBut(i *harness.Informerd, forbidden string) error {
	all, err := i.Resources()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("nothing discovered")
	}
	for name, r := range all {
		want := "live"
		if name == forbidden {
			want = "forbidden"
		}
		if r.State != want && r.State != "unwatched" {
			return fmt.Errorf("%s is %s, want %s: %s", name, r.State, want, r.Reason)
		}
	}
	return nil
}

// checkLists fails the test if informerds running as admin made the API server
// send all objects of any resource more than most times each since mark. What
// was refused or failed does not count.
func checkLists(t *testing.T, c *harness.Cluster, mark harness.Mark, informerds, most int) {
	t.Helper()
	for resource, lists := range harness.Lists(c.Audit(t, mark, harness.Agent)) {
		served := slices.DeleteFunc(lists, func(r harness.Request) bool { return r.User != "admin" || r.Code != http.StatusOK })
		if len(served) > informerds*(most+discoveryStreams[resource]) {
			t.Errorf("%s was listed %d times, want at most %d each: %v", resource, len(served), most, served)
		}
	}
}

// TestStoreDown: etcd goes away for a while and the API server stays.
func TestStoreDown(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	churn := newChurner(t, c, builtinKinds(), "store-a")
	churn.pause = 20 * time.Millisecond
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	follower := harness.Follow(t, i, "/v1/resources/configmaps/objects")
	follower.Wait(t)
	stop := churn.start(t.Context(), 2)
	waitChanges(t, churn, 40)

	mark := c.AuditMark(t)
	c.Ctl(t, "stop", "etcd")
	t.Cleanup(func() { c.Up(t, "etcd") })
	harness.Eventually(t, time.Minute, "writes fail", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := c.List(ctx, configMaps, "default"); err == nil {
			return fmt.Errorf("lists are served")
		}
		return nil
	})
	if a := i.MustGet(t, "/v1/resources/configmaps/objects?limit=1"); a.Status != http.StatusOK {
		t.Errorf("answer while etcd is down: %d %.300s", a.Status, a.Body)
	}
	c.Ctl(t, "start", "etcd")
	waitServing(t, c)
	waitChanges(t, churn, 40)
	stop()
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
	checkLists(t, c, mark, 1, 1)
	follower.CheckEqual(t, selected(t, c, configMaps, nil))
	follower.CheckUndisturbed(t)
}

// TestRollback: etcd is restored from an older copy, while informerd runs and
// while it does not. What informerd holds is from a future that never came to
// be: it must notice, throw it away and show what the API server has now.
func TestRollback(t *testing.T) {
	t.Parallel()
	c, err := harness.StartCluster(filepath.Join(t.TempDir(), "cluster"), harness.Small...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	createNamespace(t, c, "history")
	createConfigMap(t, c, "history", "kept", nil, map[string]any{"v": "1"})
	etcd, backup := filepath.Join(c.Dir, "etcd"), filepath.Join(t.TempDir(), "etcd")
	c.Ctl(t, "stop", apiServer, "etcd")
	if err := os.CopyFS(backup, os.DirFS(etcd)); err != nil {
		t.Fatal(err)
	}
	c.Ctl(t, "start", "etcd", apiServer)
	waitServing(t, c)

	churn := newChurner(t, c, builtinKinds(), "future")
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime)
	rollBack := func() {
		c.Ctl(t, "stop", apiServer, "etcd")
		if err := os.RemoveAll(etcd); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(etcd, os.DirFS(backup)); err != nil {
			t.Fatal(err)
		}
		c.Ctl(t, "start", "etcd", apiServer)
		waitServing(t, c)
	}
	advance := func() {
		churn.run(t.Context(), 4, 200)
		patchConfigMap(t, c, "history", "kept", fmt.Sprintf(`{"data":{"v":%q}}`, time.Now()))
		harness.CheckEqual(t, c, i, harness.Check{})
	}

	advance()
	waitSaved(t, i)
	i.Stop()
	rollBack()
	i.Start()
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
	if r := i.Resource(t, "configmaps"); r.Snapshot.Drops == 0 || r.Snapshot.DropReason == "" {
		t.Errorf("snapshot of configmaps was not dropped: %+v", r.Snapshot)
	}
	if list, err := i.List("configmaps", "namespace=future"); err != nil || len(list.Items) > 0 {
		t.Errorf("objects of the future: %v, %v", list.Items, err)
	}

	createNamespace(t, c, "future")
	advance()
	follower := harness.Follow(t, i, "/v1/resources/configmaps/objects")
	follower.Wait(t)
	rollBack()
	harness.Eventually(t, syncTime, "rollback noticed", func() error {
		list, err := i.List("configmaps", "namespace=future")
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d objects of the future", len(list.Items))
		}
		return err
	})
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
	follower.CheckEqual(t, selected(t, c, configMaps, nil))

	// Rolled back, and then grown past what informerd had seen before it looks.
	createNamespace(t, c, "future")
	advance()
	waitSaved(t, i)
	i.Kill()
	rollBack()
	createNamespace(t, c, "future")
	churn.run(t.Context(), 4, 600)
	i.Start()
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
}
