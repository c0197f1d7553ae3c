package cache

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache/rawjson"
)

// TestIdentity: what is known of an object without its JSON is, byte for byte, what is
// read of its JSON, however few of it are asked for.
func TestIdentity(t *testing.T) {
	pods := Spec{Resource: Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}, Kind: "Pod"}
	certificates := Spec{Resource: Resource{GVR: schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}}, Kind: "Certificate", CRDUID: "u"}
	for name, c := range map[string]struct {
		spec Spec
		raw  string
	}{
		"built-in":       {pods, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","generateName":"web-","namespace":"shop","uid":"u1","resourceVersion":"7","labels":{"a":"b"}},"spec":{"kind":"x"}}`},
		"cluster scope":  {pods, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","uid":"u1","resourceVersion":"7"}}`},
		"custom":         {certificates, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"generation":1,"name":"tls","namespace":"shop","resourceVersion":"8","uid":"u2"},"spec":{}}`},
		"odd characters": {pods, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a:\"é\\","uid":"u1","resourceVersion":"7"}}`},
	} {
		s, err := NewStore(c.spec, StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		o, err := s.Decode([]byte(c.raw), c.spec.GVR.GroupVersion().String(), c.spec.Kind)
		if err != nil {
			t.Fatal(err)
		}
		known, ok := c.spec.AppendIdentity(nil, o, WholeIdentity)
		if !ok {
			t.Fatalf("%s: it is not known", name)
		}
		for some := range 1 << len(identityPaths) {
			var names []string
			for i, p := range identityPaths {
				if some>>i&1 == 1 {
					names = append(names, p)
				}
			}
			if names == nil {
				continue
			}
			paths, err := rawjson.ParsePaths(strings.Join(names, ","))
			if err != nil || IdentityOf(paths) == 0 {
				t.Fatalf("%s: %v", names, err)
			}
			p, err := rawjson.CompileProjection(paths)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := o.JSON()
			if err != nil {
				t.Fatal(err)
			}
			want, err := p.Append(nil, whole)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.Append(nil, known); err != nil || string(got) != string(want) {
				t.Errorf("%s, %s: %s, %v; want %s", name, names, got, err, want)
			}
			if got, ok := c.spec.AppendIdentity(nil, o, IdentityOf(paths)); !ok || string(got) != string(want) {
				t.Errorf("%s, %s at once: %s; want %s", name, names, got, want)
			}
		}
	}
}

func TestNotOfIdentity(t *testing.T) {
	for _, text := range []string{"metadata", "spec.nodeName", "metadata.name,metadata.labels", "metadata.name,status", "name"} {
		paths, err := rawjson.ParsePaths(text)
		if err != nil {
			t.Fatal(err)
		}
		if IdentityOf(paths) != 0 {
			t.Errorf("%s is known without JSON", text)
		}
	}
	if IdentityOf(nil) != 0 {
		t.Error("whole objects are known without JSON")
	}
	if _, ok := (&Spec{Aggregated: true}).AppendIdentity(nil, &Object{}, WholeIdentity); ok {
		t.Error("how an aggregated API server writes objects is known")
	}
}
