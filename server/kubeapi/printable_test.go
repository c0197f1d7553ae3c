package kubeapi

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// TestTableHides: a value that the configuration takes out is in no table, also
// where the API server would print it and its definition is not there.
func TestTableHides(t *testing.T) {
	w := newWorld(t)
	w.queues.spec.Redact = []string{"spec.token"}
	w.queues.replace(t, "101", `{"metadata":{"namespace":"a","name":"q","uid":"uid-q","resourceVersion":"7"},"spec":{"token":""}}`)
	w.upstream.set(func(*http.Request) *http.Response {
		return jsonResponse(200, `{"kind":"Table","columnDefinitions":[{"name":"Name"},{"name":"Token"}],"rows":[`+
			`{"cells":["q","s3cret"],"object":{"metadata":{"namespace":"a","name":"q","uid":"uid-q","resourceVersion":"7"}}}]}`)
	})
	const queues = "/apis/messaging.example.com/v1/queues"
	for _, target := range []string{queues, "/apis/messaging.example.com/v1/namespaces/a/queues/q"} {
		rec := w.get(target, "Accept", acceptTable)
		body := rec.Body.String()
		if rec.Code != 200 || strings.Contains(body, "s3cret") || !strings.Contains(body, `{"cells":["q","`) {
			t.Errorf("GET %s = %d %s", target, rec.Code, body)
		}
	}
	if e := w.watch(queues+"?watch=1", "Accept", acceptTable).next(); len(e.Object.Rows) != 1 || len(e.Object.Rows[0].Cells) != 2 || e.Object.Rows[0].Cells[1] == "s3cret" {
		t.Errorf("an event is %+v", e)
	}
	printed, err := w.Print(t.Context(), w.queues.View(), w.queues.objects(t))
	if err != nil || len(printed.Columns) != 2 || len(printed.Rows) != 1 || printed.Columns[1].Name != "Age" {
		t.Fatalf("Print() = %+v, %v", printed, err)
	}
	if cells, err := printed.Rows[0].Append(nil); err != nil || !strings.HasPrefix(string(cells), `"q","`) {
		t.Errorf("the cells are %s, %v", cells, err)
	}
	if asked := w.upstream.requests(); len(asked) != 0 {
		t.Errorf("the API server was asked %v", asked)
	}
	w.defines(`,"additionalPrinterColumns":[{"name":"Token","type":"string","jsonPath":".spec.token"}]`)
	var got table
	if w.into(&got, queues, "Accept", acceptTable); len(got.ColumnDefinitions) != 2 || got.Rows[0].Cells[1] != "" {
		t.Errorf("with its definition: %+v", got)
	}
}

func (r *resource) objects(t testing.TB) []*cache.Object {
	t.Helper()
	found, err := r.store.Select(t.Context(), cache.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Objects
}

func TestMayPrint(t *testing.T) {
	const managed, applied = "metadata.managedFields", "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']"
	resource := func(group, name string) cache.Spec {
		return cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}}}
	}
	queues, pods, secrets, classes := resource("example.com", "queues"), resource("", "pods"), resource("", "secrets"), resource("storage.k8s.io", "storageclasses")
	aggregated, defined := pods, pods
	aggregated.Aggregated, defined.CRDUID = true, "crd"
	for _, c := range []struct {
		spec         cache.Spec
		drop, redact string // separated by commas
		want         bool
	}{
		{queues, "", "", true},
		{queues, managed, "", true},
		{queues, managed + "," + applied, "", false},
		{queues, managed, "spec.token", false},
		{queues, "spec.containers[*].env", "", false},
		{queues, "metadata", "", false},
		{pods, managed + "," + applied, "", true},
		{pods, "metadata.annotations,status.images", "", true},
		{pods, "", "spec.containers[*].env[*].value", true},
		{pods, "", "spec.template.spec.initContainers[0].args", true},
		{pods, "", "spec.containers[*]", false},
		{pods, "", "spec.containers[*].image", false},
		{pods, "", "spec.nodeName", false},
		{pods, "status", "", false},
		{pods, "spec..", "", false},
		{aggregated, "status.images", "", false},
		{defined, "status.images", "", false},
		{secrets, managed + "," + applied, "data,stringData", true},
		{secrets, "", "data.token,type", false},
		{secrets, "data", "", false},
		{classes, applied, "", true},
		{classes, "metadata.annotations", "", false},
	} {
		split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
		c.spec.Drop, c.spec.Redact = split(c.drop), split(c.redact)
		if got := mayPrint(c.spec); got != c.want {
			t.Errorf("mayPrint(%s, drop %q, redact %q) = %v", c.spec.Name(), c.drop, c.redact, got)
		}
	}
}
