package kubeapi

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/cache"
)

// TestItemsSayNoKind: items of a list say what they are where they do at the API server:
// those of custom resources, and of partial metadata. Single objects always do.
func TestItemsSayNoKind(t *testing.T) {
	w := newWorld(t)
	w.queues.replace(t, "100", `{"apiVersion":"messaging.example.com/v1","kind":"Queue","metadata":{"name":"q","namespace":"a","uid":"q","resourceVersion":"7"},"spec":{}}`)
	const partialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for _, test := range []struct {
		target, accept string
		want           []any // of each item, its kind
	}{
		{"/api/v1/pods", "", []any{nil, nil, nil}},
		{"/api/v1/pods?pretty=true", "", []any{nil, nil, nil}},
		{"/api/v1/pods?limit=2", "application/yaml", []any{nil, nil}},
		{"/api/v1/nodes", "", []any{nil}},
		{"/apis/messaging.example.com/v1/queues", "", []any{"Queue"}},
		{"/apis/messaging.example.com/v1/queues", "application/yaml", []any{"Queue"}},
		{"/api/v1/pods?limit=1", partialList, []any{"PartialObjectMetadata"}},
	} {
		body := w.get(test.target, "Accept", test.accept).Body.Bytes()
		var list struct{ Items []map[string]any }
		if err := yaml.Unmarshal(body, &list); err != nil {
			t.Fatalf("GET %s: %v: %s", test.target, err, body)
		}
		var got []any
		for _, item := range list.Items {
			if item["metadata"] == nil || (item["kind"] == nil) != (item["apiVersion"] == nil) {
				t.Errorf("GET %s as %s has an item %v", test.target, test.accept, item)
			}
			got = append(got, item["kind"])
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("GET %s as %s has items of the kinds %q, want %q", test.target, test.accept, got, test.want)
		}
	}
	var one map[string]any
	w.into(&one, "/api/v1/namespaces/a/pods/one")
	if one["kind"] != "Pod" || one["apiVersion"] != "v1" {
		t.Errorf("a pod says that it is %v of %v", one["kind"], one["apiVersion"])
	}
}

func TestCutStart(t *testing.T) {
	spec := cache.Spec{Kind: "Pod"}
	spec.GVR = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for object, want := range map[string]string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"kind"}}`: `{"metadata":{"name":"kind"}}`,
		`{"kind":"PodX","apiVersion":"v1","metadata":{}}`:             `{"kind":"PodX","apiVersion":"v1","metadata":{}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{}}`:              `{"metadata":{}}`,
		`{"kind":"Pod"}`: `{"kind":"Pod"}`,
		`{}`:             `{}`,
	} {
		got := cutStart([]byte("before,"+object), len("before,"), bareStarts(spec))
		if string(got) != "before,"+want || !json.Valid(got[len("before,"):]) {
			t.Errorf("%s becomes %s, want %s", object, got, want)
		}
	}
}
