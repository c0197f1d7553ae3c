package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/postgres"
)

// mirrorRules have everything mirrored that is watched.
const mirrorRules = `
- {match: [leases.coordination.k8s.io, events, events.events.k8s.io], watch: false}
- {match: [secrets], redact: [data, stringData], mirror: jsonb}
- {match: ["*"], mirror: jsonb}
`

// startMirror starts an informerd that mirrors by rules.
func startMirror(t *testing.T, c *harness.Cluster, db *postgres.Server, rules string) *harness.Informerd {
	t.Helper()
	return harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Postgres: db.URL(), Rules: rules})
}

// sqlReader is somebody who asks the mirror.
type sqlReader struct {
	t  *testing.T
	db *postgres.Server
}

// read runs fn in a transaction that sees one state of the mirror.
func (r sqlReader) read(fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.db.URL()+"&search_path=informerd")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { return fn(ctx, tx) })
}

// versionIn is the version of a resource that the mirror names, and its number of rows.
func versionIn(ctx context.Context, tx pgx.Tx, gvr schema.GroupVersionResource) (version string, objects int, err error) {
	err = tx.QueryRow(ctx, `SELECT resource_version, objects FROM mirror_resources WHERE cluster = 'default' AND "group" = $1 AND version = $2 AND resource = $3`,
		gvr.Group, gvr.Version, gvr.Resource).Scan(&version, &objects)
	if err != nil {
		err = fmt.Errorf("version of %s: %w", gvr.Resource, err)
	}
	return version, objects, err
}

// rows are the objects of a resource, and the version that they are of.
func (r sqlReader) rows(gvr schema.GroupVersionResource) (version string, all map[string]harness.Object, err error) {
	all = map[string]harness.Object{}
	err = r.read(func(ctx context.Context, tx pgx.Tx) error {
		var objects int
		if version, objects, err = versionIn(ctx, tx, gvr); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT object::text FROM mirror_objects WHERE cluster = 'default' AND "group" = $1 AND resource = $2`, gvr.Group, gvr.Resource)
		if err != nil {
			return err
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, text := range texts {
			o := harness.Object{}
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&o); err != nil {
				return err
			}
			all[o.Key()] = o
		}
		if len(texts) != len(all) || objects != len(all) {
			return fmt.Errorf("%s: %d rows of %d objects, and mirror_resources says %d", gvr.Resource, len(texts), len(all), objects)
		}
		return nil
	})
	return version, all, err
}

// mirroredValue is a value of JSON as SQL can hold it.
func mirroredValue(v any) any {
	text := func(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		for i := range v {
			v[i] = mirroredValue(v[i])
		}
	case map[string]any:
		next := make(map[string]any, len(v))
		for key, value := range v {
			next[text(key)] = mirroredValue(value)
		}
		return next
	}
	return v
}

// equal compares the rows of a resource with the objects that the API server had at the
// version that the mirror names; "": with those that it has now.
func (r sqlReader) equal(c *harness.Cluster, gvr schema.GroupVersionResource, now bool) error {
	version, got, err := r.rows(gvr)
	if err != nil {
		return err
	}
	if now {
		version = ""
	}
	list, err := c.ListAt(r.t.Context(), gvr, version)
	if err != nil {
		return err
	}
	if version != "" && list.Metadata.ResourceVersion != version {
		return fmt.Errorf("the list is of version %s, want %s", list.Metadata.ResourceVersion, version)
	}
	want := map[string]harness.Object{}
	for _, o := range list.Items {
		o = harness.Kept(o)
		want[o.Key()] = mirroredValue(map[string]any(o)).(map[string]any)
	}
	if err := harness.EqualObjects(got, want, len(got)); err != nil {
		return fmt.Errorf("%s at %s: %w", gvr.Resource, version, err)
	}
	return nil
}

// TestMirror: while objects change the rows of each resource are those of the API server at
// the version that the mirror names; so they are after the database was away, and informerd
// killed meanwhile, with what was deleted then.
func TestMirror(t *testing.T) {
	inTurn(t, &spareLane)
	c := spareCluster(t)
	db := postgres.Start(t)
	r := sqlReader{t, db}
	churn := newChurner(t, c, builtinKinds(), "mirror-a", "mirror-b")
	churn.pause = 2 * time.Millisecond
	var resources []schema.GroupVersionResource
	for _, k := range builtinKinds() {
		resources = append(resources, k.gvr)
	}
	check := func(now bool) {
		t.Helper()
		for _, gvr := range append(slices.Clone(resources), namespaces) {
			harness.Eventually(t, time.Minute, "rows of "+gvr.Resource, func() error { return r.equal(c, gvr, now) })
		}
	}
	i := startMirror(t, c, db, mirrorRules)
	stop := churn.start(t.Context(), 3)
	i.WaitLive(t, syncTime)
	waitChanges(t, churn, 50)
	harness.Eventually(t, time.Minute, "configmaps are mirrored", func() error { return r.equal(c, configMaps, false) })
	// From now on there is no moment at which it is not so.
	for range 10 {
		for _, gvr := range resources {
			if _, _, err := r.rows(gvr); err != nil {
				continue // not mirrored yet
			}
			if err := r.equal(c, gvr, false); err != nil {
				t.Error(err)
			}
		}
	}

	db.Kill()
	waitChanges(t, churn, 100)
	if os.Getenv(longVariable) != "" {
		time.Sleep(5 * time.Minute)
	}
	harness.Eventually(t, time.Minute, "it is said", func() error {
		a, err := i.Get("/readyz?verbose")
		if err == nil && (a.Status != 200 || !strings.Contains(string(a.Body), "[!]mirror failing: ")) {
			err = fmt.Errorf("readyz is %d: %s", a.Status, a.Body)
		}
		return err
	})
	i.Kill()
	waitChanges(t, churn, 50)
	i.Start()
	waitChanges(t, churn, 50)
	db.Up()
	waitChanges(t, churn, 50)
	i.WaitLive(t, syncTime)
	check(false)
	db.Kill() // once more, and informerd runs on
	waitChanges(t, churn, 50)
	db.Up()
	stop()
	check(true)
	check(false)
	harness.Eventually(t, time.Minute, "nothing is wrong", func() error {
		a, err := i.Get("/readyz?verbose")
		if err == nil && !strings.Contains(string(a.Body), "[+]mirror ok") {
			err = fmt.Errorf("readyz is %d: %s", a.Status, a.Body)
		}
		return err
	})
	metrics := i.MustGet(t, "/metrics")
	if !strings.Contains(string(metrics.Body), "\ninformerd_mirror_rows_deleted_total ") {
		t.Error("there are no metrics of the mirror")
	}

	// A reload decides what is mirrored, and nothing stays of what is not any more.
	i.WriteRules(`- {match: [configmaps], mirror: jsonb}` + "\n" + `- {match: ["*"]}` + "\n")
	harness.Eventually(t, time.Minute, "rows of others are deleted", func() error {
		return r.read(func(ctx context.Context, tx pgx.Tx) error {
			var all string
			err := tx.QueryRow(ctx, `SELECT (SELECT string_agg(DISTINCT resource, ' ') FROM mirror_objects) || '/' || (SELECT string_agg(resource, ' ') FROM mirror_resources)`).Scan(&all)
			if err == nil && all != "configmaps/configmaps" {
				err = fmt.Errorf("there are rows of %s", all)
			}
			return err
		})
	})
	harness.Eventually(t, time.Minute, "rows of configmaps", func() error { return r.equal(c, configMaps, true) })
	churn.check(t)
}
