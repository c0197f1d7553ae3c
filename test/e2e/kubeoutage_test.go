package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/informerd/informerd/test/e2e/harness"
)

const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// printed is what of a table does not change from moment to moment.
type printed struct {
	ColumnDefinitions []metav1.TableColumnDefinition
	Rows              []struct{ Cells []any }
}

func printedIn(t *testing.T, body []byte) (p printed) {
	t.Helper()
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	return p
}

// TestKubeOutage: while the API server is away, and after a restart meanwhile,
// the tables of custom resources are whole, and OpenAPI is what it was.
func TestKubeOutage(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	column := func(name, typ, path string, priority int32) apiextensionsv1.CustomResourceColumnDefinition {
		return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: typ, JSONPath: path, Priority: priority}
	}
	d := harness.CRD{Group: "printed.example.com", Plural: "trees", Kind: "Tree", Printed: []apiextensionsv1.CustomResourceColumnDefinition{
		column("Color", "string", ".spec.color", 0), column("Tags", "string", ".spec.tags", 1), column("First", "string", ".spec.tags[0]", 0),
		column("Size", "integer", ".spec.size", 0), column("Load", "number", ".spec.load", 0), column("Ready", "boolean", ".spec.ready", 0),
		column("Planted", "date", ".spec.planted", 0), column("Felled", "date", ".spec.felled", 0),
	}}
	c.CreateCRD(t, d)
	for name, spec := range map[string]map[string]any{
		"whole": {"color": "red & green", "tags": []any{"a", "b"}, "size": int64(123456789), "load": 0.25, "ready": true, "planted": "2001-02-03T04:05:06Z"},
		"odd":   {"tags": "none", "load": int64(2), "planted": "once", "felled": "2001-02-03T04:05:06Z"},
		"empty": {},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": d.Group + "/v1", "kind": d.Kind, "metadata": map[string]any{"name": name}, "spec": spec,
		}}
		if _, err := c.Dynamic.Resource(d.GVR()).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster, Snapshot: filepath.Join(t.TempDir(), "informerd.db")})
	i.WaitLive(t, syncTime, d.Name())

	trees := "/apis/" + d.Group + "/v1/namespaces/default/trees"
	read := func(uri, accept string) []byte {
		t.Helper()
		a := i.MustGet(t, uri, "Accept", accept)
		if a.Status != 200 {
			t.Errorf("%s is %d %.300s", uri, a.Status, a.Body)
		}
		return a.Body
	}
	table := func() printed { return printedIn(t, read(trees, acceptTable)) }
	theirs, err := c.Raw(t.Context(), "GET", trees, acceptTable)
	if err != nil {
		t.Fatal(err)
	}
	want := printedIn(t, theirs.Body)
	if got := table(); !reflect.DeepEqual(got, want) || len(want.Rows) != 3 {
		t.Errorf("table:\n%+v\nthe API server's:\n%+v", got, want)
	}
	cluster := kubectls(t, c, i)[0]
	explain := func(cache string) string {
		cluster.cache = cache // kubectl keeps discovery there
		return cluster.run(false, "explain", "trees.spec", "--recursive")
	}
	var explained string
	// The API server describes a new definition a little later than it serves it.
	harness.Eventually(t, syncTime, "an explanation of trees", func() error {
		if explained = explain(t.TempDir()); !strings.Contains(explained, "color\t<string>") {
			return fmt.Errorf("explain says\n%s", explained)
		}
		return nil
	})
	documents := map[string][]byte{}
	for _, uri := range []string{"/version", "/openapi/v2", "/openapi/v3"} {
		documents[uri] = read(uri, "application/json")
	}

	c.Ctl(t, "stop", apiServer)
	t.Cleanup(func() { c.Up(t, apiServer) })
	i.Stop()
	i.Start()
	// Resources are loaded side by side: trees may be there before their
	// definition, and have the columns of any resource so long.
	harness.Eventually(t, syncTime, "the table of trees from the snapshot", func() error {
		a, err := i.Get(trees, "Accept", acceptTable)
		if err != nil {
			return err
		}
		if a.Status != 200 {
			return fmt.Errorf("%d %.300s", a.Status, a.Body)
		}
		if got := printedIn(t, a.Body); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%+v\nbefore:\n%+v", got, want)
		}
		return nil
	})
	for uri, before := range documents {
		if got := read(uri, "application/json"); string(got) != string(before) {
			t.Errorf("%s during the outage: %.300s\nbefore: %.300s", uri, got, before)
		}
	}
	if got := explain(t.TempDir()); got != explained {
		t.Errorf("explain during the outage:\n%s\nbefore:\n%s", got, explained)
	}
}
