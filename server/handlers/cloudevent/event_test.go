package cloudevent

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/server/handlers"
)

// TestStructured: a structured event is JSON through and through: its data is no base64 text
// that a receiver would have to decode first.
func TestStructured(t *testing.T) {
	d := &handlers.Delivery{
		Handler: "h", ID: "h/u/7", Transition: handlers.Changes, Cluster: "c", Kind: "Deployment",
		GVR:       schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7",
		Object: json.RawMessage(`{"spec":{"big":9007199254740993}}`), Attempt: 2, Sequence: 5,
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	got, err := Structured(d)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		SpecVersion, ID, Source, Type, Subject, Sequence, ResourceVersion, DataContentType string

		Data struct {
			Transition, Namespace, Name, ResourceVersion string

			Object json.RawMessage
		}
	}
	if err := json.Unmarshal(got, &e); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if e.SpecVersion != "1.0" || e.ID != d.ID || e.Source != "/clusters/c/handlers/h" || e.Type != "io.informerd.object.changes" ||
		e.Subject != "deployments.apps/shop/web" || e.Sequence != "00000000000000000005" || e.ResourceVersion != "7" ||
		e.DataContentType != "application/json" {
		t.Errorf("attributes are %s", got)
	}
	if e.Data.Name != "web" || e.Data.ResourceVersion != "7" || string(e.Data.Object) != string(d.Object) {
		t.Errorf("data is %s", got)
	}
	d.Object = nil
	if got, err = Structured(d); err != nil || !json.Valid(got) {
		t.Fatalf("%v: %s", err, got)
	}
}
