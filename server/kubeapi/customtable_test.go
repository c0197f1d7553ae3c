package kubeapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cache"
)

// defines makes the queues of w custom resources, whose definition is there.
func (w *world) defines(columns string) {
	w.queues.spec.CRDUID = "uid-of-queues"
	crds := newResource(w.t, "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false)
	crds.state = cache.Live
	crds.replace(w.t, "100", fmt.Sprintf(`{"metadata":{"name":"queues.messaging.example.com","uid":"uid-of-queues","resourceVersion":"3"},`+
		`"spec":{"versions":[{"name":"v1beta1","additionalPrinterColumns":[{"name":"Old","type":"string","jsonPath":".spec"}]},{"name":"v1"%s}]}}`, columns))
	w.resources = append(w.resources, crds)
}

// TestCustomTable: custom resources are printed by their definition, without a
// question to the API server.
func TestCustomTable(t *testing.T) {
	hour := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	w := newWorld(t)
	w.upstream.set(func(r *http.Request) *http.Response {
		t.Errorf("the API server was asked for %s", r.URL)
		return jsonResponse(500, `{}`)
	})
	w.defines(`,"additionalPrinterColumns":[
		{"name":"Engine","type":"string","jsonPath":".spec.engine","description":"what it runs on"},
		{"name":"Tags","type":"string","jsonPath":".spec.tags","priority":1},
		{"name":"First","type":"string","jsonPath":".spec.tags[0]"},
		{"name":"Label","type":"string","jsonPath":".metadata.labels.example\\.com/team"},
		{"name":"Size","type":"integer","format":"int32","jsonPath":".spec.size"},
		{"name":"Load","type":"number","jsonPath":".status.load"},
		{"name":"Ready","type":"boolean","jsonPath":".status.ready"},
		{"name":"Since","type":"date","jsonPath":".status.since"},
		{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}]`)
	const object = `{"metadata":{"namespace":"a","name":%q,"uid":"u-%[1]s","resourceVersion":"7"%s}%s}`
	w.queues.replace(t, "100",
		fmt.Sprintf(object, "full", `,"creationTimestamp":"`+hour+`","labels":{"example.com/team":"red"}`,
			`,"spec":{"engine":"nats & co","tags":["x","y"],"size":12345678},"status":{"load":0.5,"ready":true,"since":"`+hour+`"}`),
		fmt.Sprintf(object, "empty", "", ""),
		fmt.Sprintf(object, "wrong", "", `,"spec":{"engine":7,"size":"big"},"status":{"load":3,"ready":"yes","since":"soon"}`))
	var got table
	w.into(&got, "/apis/messaging.example.com/v1/queues", "Accept", acceptTable)
	cells := map[any][]any{}
	for _, r := range got.Rows {
		cells[r.Cells[0]] = r.Cells[1:]
	}
	want := map[any][]any{
		"full":  {"nats & co", `["x","y"]`, "x", "red", 12345678., 0.5, true, "60m", "60m"},
		"empty": {nil, nil, nil, nil, nil, nil, nil, nil, nil},
		"wrong": {"7", nil, nil, nil, nil, 3., nil, "<invalid>", nil},
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	var columns []string
	for _, c := range got.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s %s %s %d %.22s", c.Name, c.Type, c.Format, c.Priority, c.Description))
	}
	wantColumns := []string{
		"Name string name 0 Name must be unique wi", "Engine string  0 what it runs on", "Tags string  1 Custom resource defini",
		"First string  0 Custom resource defini", "Label string  0 Custom resource defini", "Size integer int32 0 Custom resource defini",
		"Load number  0 Custom resource defini", "Ready boolean  0 Custom resource defini", "Since date  0 Custom resource defini",
		"Age date  0 Custom resource defini",
	}
	if diff := cmp.Diff(wantColumns, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// TestCustomTableDefaults: a definition without columns shows ages; after one
// that is no path come no more.
func TestCustomTableDefaults(t *testing.T) {
	for columns, want := range map[string]string{
		"": "Name Age",
		`,"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a"},{"name":"B","type":"string","jsonPath":".b["},{"name":"C","type":"string","jsonPath":".c"}]`: "Name A",
	} {
		w := newWorld(t)
		w.defines(columns)
		var got table
		w.into(&got, "/apis/messaging.example.com/v1/queues", "Accept", acceptTable)
		var names []string
		for _, c := range got.ColumnDefinitions {
			names = append(names, c.Name)
		}
		if strings.Join(names, " ") != want {
			t.Errorf("columns of %q are %q, want %s", columns, names, want)
		}
	}
}

// TestCustomTableAsks: without the definition that the objects are of, the API
// server is asked.
func TestCustomTableAsks(t *testing.T) {
	for name, change := range map[string]func(*world){
		"another definition": func(w *world) { w.queues.spec.CRDUID = "another" },
		"no such version":    func(w *world) { w.queues.spec.GVR.Version = "v2" },
		"not watched":        func(w *world) { w.resources = w.resources[:len(w.resources)-1] },
	} {
		w := newWorld(t)
		w.defines("")
		change(w)
		asked := false
		w.upstream.set(func(*http.Request) *http.Response {
			asked = true
			return jsonResponse(200, `{"kind":"Table","columnDefinitions":[{"name":"Theirs"}],"rows":[]}`)
		})
		var got table
		w.into(&got, "/apis/messaging.example.com/"+w.queues.spec.GVR.Version+"/queues", "Accept", acceptTable)
		if !asked || len(got.ColumnDefinitions) != 1 || got.ColumnDefinitions[0].Name != "Theirs" {
			t.Errorf("%s: asked %v, columns %v", name, asked, got.ColumnDefinitions)
		}
	}
}
