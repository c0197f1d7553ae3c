package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/postgres"
)

// startWithPostgres starts an informerd that has nothing but a database.
func startWithPostgres(t *testing.T, c *harness.Cluster, db *postgres.Server) *harness.Informerd {
	t.Helper()
	return harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Postgres: db.URL()})
}

// TestPostgres: an informerd that is killed goes on elsewhere, with another folder and
// without a disk of its own, from what the database has of it: nothing is listed again.
func TestPostgres(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	db := postgres.Start(t)
	churn := newChurner(t, c, builtinKinds()[:1], "postgres-a")
	i := startWithPostgres(t, c, db)
	i.WaitLive(t, syncTime)
	for range 3 {
		stop := churn.start(t.Context(), 3)
		waitChanges(t, churn, 100)
		waitSaved(t, i)
		i.Kill()
		mark := c.AuditMark(t)
		waitChanges(t, churn, 50)
		next := startWithPostgres(t, c, db)
		waitChanges(t, churn, 50)
		stop()
		next.WaitLive(t, syncTime)
		harness.CheckEqual(t, c, next, harness.Check{})
		checkNoLists(t, c, mark)
		i = next
	}
	churn.check(t)
}

// TestPostgresOutage: while the database is away informerd serves on and says so; what
// changed is saved when it is back, and goes on from there after a restart.
func TestPostgresOutage(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	db := postgres.Start(t)
	churn := newChurner(t, c, builtinKinds()[:1], "postgres-b")
	i := startWithPostgres(t, c, db)
	i.WaitLive(t, syncTime)
	waitSaved(t, i)
	stop := churn.start(t.Context(), 3)
	waitChanges(t, churn, 50)
	db.Kill()
	waitChanges(t, churn, 100)
	failing := func(want bool) func() error {
		return func() error {
			a, err := i.Get("/readyz?verbose")
			if err == nil && strings.Contains(string(a.Body), "snapshot failing") != want {
				err = fmt.Errorf("readyz is %d: %s", a.Status, a.Body)
			}
			return err
		}
	}
	harness.Eventually(t, time.Minute, "it is said", failing(true))
	if a := i.MustGet(t, "/readyz"); a.Status != 200 {
		t.Errorf("readyz is %d: %s", a.Status, a.Body)
	}
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"namespaces"}})
	db.Up()
	harness.Eventually(t, time.Minute, "it is saved again", failing(false))
	waitChanges(t, churn, 50)
	stop()
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
	time.Sleep(time.Second) // a save or two
	i.Stop()
	mark := c.AuditMark(t)
	i.Start()
	i.WaitLive(t, syncTime)
	harness.CheckEqual(t, c, i, harness.Check{})
	checkNoLists(t, c, mark)

	// Another one with the same tables takes them over, and the first serves on.
	second := startWithPostgres(t, c, db)
	second.WaitLive(t, syncTime)
	i.WaitLive(t, syncTime)
	harness.Eventually(t, time.Minute, "the first says that it was taken over", func() error {
		a, err := i.Get("/readyz?verbose")
		if err == nil && !strings.Contains(string(a.Body), "another informerd has taken over the database") {
			err = fmt.Errorf("readyz is %d: %s", a.Status, a.Body)
		}
		return err
	})
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
	churn.check(t)
}
