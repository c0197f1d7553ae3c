package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/informerd/informerd/test/e2e/harness"
)

// columnList is what informerd says of columns.
type columnList struct {
	Items []struct {
		Paths          []string
		Pinned, Kept   bool
		Objects, Asked int
	}
}

// TestPinnedColumns: what the configuration pins is filled before anybody asks, the first
// question reads it, it follows changes, it is there again after a restart, and it goes when
// the configuration says so. The answers are those of the API server.
func TestPinnedColumns(t *testing.T) {
	inTurn(t, &spareLane)
	c := spareCluster(t)
	ns := "columns"
	createNamespace(t, c, ns)
	const objects = 300
	for n := range objects {
		createConfigMap(t, c, ns, fmt.Sprintf("c-%03d", n), nil, map[string]any{"n": fmt.Sprint(n % 7)})
	}
	rules := func(columns string) string {
		return "- {match: [configmaps], columns: " + columns + "}\n"
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: t.TempDir() + "/informerd.db", Rules: rules("[[data.n]]")})
	i.WaitLive(t, syncTime)
	filled := func(asked int) {
		t.Helper()
		harness.Eventually(t, syncTime, "the column to have all objects", func() error {
			var all columnList
			if err := i.Read("/v1/resources/configmaps/columns", &all); err != nil {
				return err
			}
			for _, c := range all.Items {
				if slices.Equal(c.Paths, []string{"data.n"}) && c.Pinned && c.Kept && c.Objects >= objects && c.Asked == asked {
					return nil
				}
			}
			return fmt.Errorf("there are %+v", all.Items)
		})
	}
	question := "/v1/resources/configmaps/objects?filter=" + url.QueryEscape(`object.?data.n.orValue("") == "3"`)
	asked, reads := 0, true
	ask := func() {
		t.Helper()
		truth, err := selected(t, c, configMaps, func(o harness.Object) bool {
			data, _ := o["data"].(map[string]any)
			return data["n"] == "3"
		})()
		if err != nil {
			t.Fatal(err)
		}
		var all harness.ObjectList
		if err := i.Read(question, &all); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, o := range all.Items {
			got[o.Key()] = true
		}
		if len(got) != len(truth) || len(got) < objects/7 {
			t.Errorf("%d objects, the API server has %d", len(got), len(truth))
		}
		for key := range truth {
			if !got[key] {
				t.Errorf("%s is missing", key)
			}
		}
		asked++
		var plan struct {
			Items []struct{ Scanned, Excerpts int }
		}
		if err := i.Read(question+"&explain=true", &plan); err != nil || len(plan.Items) != 1 {
			t.Fatalf("%+v, %v", plan, err)
		}
		asked++
		if p := plan.Items[0]; p.Scanned < objects || (p.Excerpts == p.Scanned) != reads {
			t.Errorf("%d of %d objects have excerpts; the column is to be read: %v", p.Excerpts, p.Scanned, reads)
		}
	}
	filled(asked)
	ask()
	changed := patchConfigMap(t, c, ns, "c-000", `{"data":{"n":"3"}}`)
	harness.Eventually(t, syncTime, "the change", func() error {
		var o harness.Object
		if err := i.Read("/api/v1/namespaces/columns/configmaps/c-000", &o); err != nil || o.ResourceVersion() != changed.GetResourceVersion() {
			return fmt.Errorf("it is at %s: %v", o.ResourceVersion(), err)
		}
		return nil
	})
	filled(asked)
	ask()
	i.Kill()
	i.Start()
	i.WaitLive(t, syncTime)
	asked = 0
	filled(asked)
	ask()
	i.WriteRules(rules("none"))
	harness.Eventually(t, syncTime, "no columns", func() error {
		var all columnList
		if err := i.Read("/v1/resources/configmaps/columns", &all); err != nil || len(all.Items) > 0 {
			return fmt.Errorf("%+v, %v", all.Items, err)
		}
		return nil
	})
	reads = false
	ask()
}
