package history

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// stored is an object as the API server stores built-in ones.
func stored(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := (&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", UID: "u"}, Data: map[string]string{"a": "b"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(magic), body...)
}

func TestChange(t *testing.T) {
	var out bytes.Buffer
	tell := &teller{out: json.NewEncoder(&out), prefixes: []string{"/registry/configmaps/", "/registry/example.com/"}}
	for _, c := range []struct {
		kv      mvccpb.KeyValue
		deleted bool
	}{
		{kv: mvccpb.KeyValue{Key: []byte("/registry/configmaps/n/a"), ModRevision: 5, CreateRevision: 4, Value: stored(t, "a")}},
		{kv: mvccpb.KeyValue{Key: []byte("/registry/pods/n/a"), ModRevision: 6, Value: stored(t, "a")}},
		{kv: mvccpb.KeyValue{Key: []byte("/registry/example.com/widgets/n/w"), ModRevision: 7, CreateRevision: 7, Value: []byte(`{"kind":"Widget"}`)}},
		{kv: mvccpb.KeyValue{Key: []byte("/registry/configmaps/n/a"), ModRevision: 8}, deleted: true},
		{kv: mvccpb.KeyValue{Key: []byte("/registry/configmaps/n/b"), ModRevision: 9, CreateRevision: 9, Value: []byte("neither")}},
	} {
		if err := tell.change(&c.kv, c.deleted); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`{"key":"/registry/configmaps/n/a","revision":5,"created":4,"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u"},"data":{"a":"b"}}}`,
		`{"key":"/registry/example.com/widgets/n/w","revision":7,"created":7,"object":{"kind":"Widget"}}`,
		`{"key":"/registry/configmaps/n/a","revision":8,"deleted":true}`,
		`{"key":"/registry/configmaps/n/b","revision":9,"created":9}`,
	}
	if got := strings.TrimSpace(out.String()); got != strings.Join(want, "\n") {
		t.Errorf("told:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}
