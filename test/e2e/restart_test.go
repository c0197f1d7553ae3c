package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestKill: killed in the middle of churn and started again, informerd answers
// from its snapshot at once, resumes every watch without listing anything, and
// equals the API server again.
func TestKill(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	d := harness.CRD{Group: "kill.example.com", Plural: "cars", Kind: "Car", Selectable: []string{".spec.color"}}
	c.CreateCRD(t, d)
	churn := newChurner(t, c, append(builtinKinds(), customKind(d)), "kill-a", "kill-b")
	churn.pause = 10 * time.Millisecond
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime, d.Name())
	follower := harness.Follow(t, i, "/v1/resources/configmaps/objects?namespace=kill-a")
	follower.Wait(t)

	for round := range 3 {
		stop := churn.start(t.Context(), 4)
		waitChanges(t, churn, 150)
		waitSaved(t, i)
		i.Kill()
		mark := c.AuditMark(t)
		waitChanges(t, churn, 100)
		began := time.Now()
		i.Start()
		// The snapshot is loaded beside everything else. Nothing is listed, as
		// the audit log shows, so what is there early is from the snapshot.
		var states map[string]int
		harness.Eventually(t, 30*time.Second, "answers from the snapshot", func() (err error) {
			states, err = i.States()
			if err == nil && (states["syncing"] > 0 || states["warm"]+states["live"] == 0) {
				err = fmt.Errorf("states are %v", states)
			}
			return err
		})
		answered := time.Since(began)
		stop()
		i.WaitLive(t, syncTime, d.Name())
		live := time.Since(began)
		harness.CheckEqual(t, c, i, harness.Check{})
		checkNoLists(t, c, mark)
		t.Logf("round %d: answered after %.2f s as %v, live after %.1f s", round, answered.Seconds(), states, live.Seconds())
	}
	churn.check(t)
	follower.CheckEqual(t, selected(t, c, configMaps, func(o harness.Object) bool { return o.Namespace() == "kill-a" }))
	// A client may have seen less than was saved when the process was killed;
	// then it is told to begin again.
	t.Logf("the follower was sent the present objects %d times", follower.Initials())
}

// waitChanges waits for so many more changes.
func waitChanges(t *testing.T, churn *churner, n int64) {
	t.Helper()
	before := churn.done.Load()
	harness.Eventually(t, time.Minute, "changes", func() error {
		if made := churn.done.Load() - before; made < n {
			return fmt.Errorf("%d of %d", made, n)
		}
		return nil
	})
}

// waitSaved waits until every resource has a snapshot: a process killed before
// that has nothing to resume from.
func waitSaved(t testing.TB, i *harness.Informerd) {
	t.Helper()
	harness.Eventually(t, time.Minute, "snapshots of all resources", func() error {
		var list struct {
			Items []struct {
				Name     string
				State    string
				Snapshot *struct{ Time time.Time }
			}
		}
		if err := i.Read("/v1/resources", &list); err != nil {
			return err
		}
		for _, r := range list.Items {
			if r.State != "unwatched" && (r.Snapshot == nil || r.Snapshot.Time.IsZero()) {
				return fmt.Errorf("%s was not saved", r.Name)
			}
		}
		return nil
	})
}

// checkNoLists fails the test if informerd made the API server send all objects
// of any resource since mark.
func checkNoLists(t *testing.T, c *harness.Cluster, mark harness.Mark) {
	t.Helper()
	if len(c.Audit(t, mark, harness.Agent)) == 0 {
		t.Errorf("the audit log has no request of informerd")
	}
	checkLists(t, c, mark, 1, 0)
}

// TestRestart: over a restart as operators do it, a client that follows an event
// stream gets every change once, none twice, and never the present objects
// again; nothing is listed.
func TestRestart(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	churn := newChurner(t, c, builtinKinds()[:1], "restart-a")
	churn.pause = 5 * time.Millisecond
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime)
	follower := harness.Follow(t, i, "/v1/resources/configmaps/objects?namespace=restart-a")
	follower.Wait(t)
	recorder := c.Record(t, configMaps, "restart-a")

	stop := churn.start(t.Context(), 3)
	waitChanges(t, churn, 100)
	for range 2 {
		i.Stop()
		mark := c.AuditMark(t)
		waitChanges(t, churn, 50)
		i.Start()
		waitChanges(t, churn, 100)
		i.WaitLive(t, syncTime)
		checkNoLists(t, c, mark)
	}
	stop()
	churn.check(t)
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
	follower.CheckEqual(t, selected(t, c, configMaps, func(o harness.Object) bool { return o.Namespace() == "restart-a" }))
	if n := follower.Connections(); n < 3 {
		t.Errorf("%d connections, want one for each run", n)
	}
	if n := follower.Initials(); n != 1 {
		t.Errorf("the present objects were sent %d times, want once; ends: %v", n, follower.Ends())
		return
	}
	ignore := cmpopts.IgnoreFields(harness.Change{}, "ID")
	if diff := cmp.Diff(recorder.Stop(t), follower.Changes(), ignore); diff != "" {
		t.Errorf("changes differ, -API server +informerd:\n%s", diff)
	}
}
