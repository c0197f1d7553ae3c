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
	inTurn(t, &spareLane)
	c := spareCluster(t)
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
	inTurn(t, &spareLane)
	c := spareCluster(t)
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

// workAll claims and acknowledges all there is, and returns how much that was.
func workAll(t *testing.T, c *claimer) (n int) {
	t.Helper()
	for {
		var got struct{ Items []item }
		if err := c.post(t.Context(), "claim?max=50&lease=30s&wait=3s", nil, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Items) == 0 {
			return n
		}
		var tokens []string
		for _, it := range got.Items {
			tokens = append(tokens, it.Token)
		}
		if err := c.post(t.Context(), "ack", map[string]any{"tokens": tokens}, nil); err != nil {
			t.Fatal(err)
		}
		n += len(tokens)
	}
}

// TestPostgresAwayAtStart: a database from which nothing comes keeps nobody from starting. It
// is said, what was saved stays, and handlers wait for what they knew: when the database is
// back they go on there, and nothing that was delivered is delivered again.
func TestPostgresAwayAtStart(t *testing.T) {
	inTurn(t, &spareLane)
	c := spareCluster(t)
	db := postgres.Start(t)
	churn := newChurner(t, c, builtinKinds()[:1], "postgres-c")
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), Postgres: db.URL(),
		Handlers: "- {name: namespaces, resources: [namespaces], as: informerd, from: beginning}\n",
	})
	i.WaitLive(t, syncTime)
	handled := func(want string) func() error {
		return func() error {
			a, err := i.Get("/v1/handlers/namespaces")
			if err == nil && !strings.Contains(string(a.Body), want) {
				err = fmt.Errorf("%d: %s", a.Status, a.Body)
			}
			return err
		}
	}
	harness.Eventually(t, time.Minute, "the handler has begun", handled(`"state":"following"`))
	waitSaved(t, i)
	worker := &claimer{i: i, handler: "namespaces"}
	if n := workAll(t, worker); n == 0 {
		t.Fatal("no namespace is to be worked on: the test proves nothing")
	}
	time.Sleep(time.Second) // a save or two
	i.Kill()

	db.Freeze()
	began := time.Now()
	i.Start()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it started after %v", took)
	}
	stop := churn.start(t.Context(), 3)
	i.WaitLive(t, syncTime)
	waitChanges(t, churn, 50)
	stop()
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"namespaces", "configmaps"}})
	harness.Eventually(t, time.Minute, "it is said", func() error {
		a, err := i.Get("/readyz?verbose")
		if err == nil && (a.Status != 200 || !strings.Contains(string(a.Body), "snapshot failing")) {
			err = fmt.Errorf("readyz is %d: %s", a.Status, a.Body)
		}
		return err
	})
	harness.Eventually(t, time.Minute, "the handler waits", handled("what was known of it cannot be read"))

	db.Thaw()
	harness.Eventually(t, 2*time.Minute, "the handler goes on", handled(`"state":"following"`))
	if n := workAll(t, worker); n != 0 {
		t.Errorf("%d namespaces are worked on again", n)
	}
	waitSaved(t, i)
	i.Stop()
	mark := c.AuditMark(t)
	i.Start()
	i.WaitLive(t, syncTime)
	checkNoLists(t, c, mark)
	churn.check(t)
}
