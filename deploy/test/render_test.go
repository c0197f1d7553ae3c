package test

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const chartFolder = root + "/deploy/helm/informerd"

// install is what a chart is installed as.
type install struct {
	name, namespace string
	clients         engine.ClientProvider // nil: there is no cluster, as for helm template
}

var installed = install{name: "informerd", namespace: "informerd"}

// render renders the chart with values, which are YAML, by the name of the template.
// Values that no template knows, and templates that name values that are not there, are
// errors.
func (r install) render(values string) (map[string]string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	options := chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(chart, given, options, chartutil.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	if r.clients != nil {
		return engine.RenderWithClientProvider(chart, all, r.clients)
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// objects are what is rendered, each decoded strictly into its type.
type objects map[string]runtime.Object

func (r install) objects(t *testing.T, values string) objects {
	t.Helper()
	rendered, err := r.render(values)
	if err != nil {
		t.Fatalf("render with %s: %v", values, err)
	}
	all := objects{}
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		for _, doc := range documents(rendered[file]) {
			obj, err := decode([]byte(doc))
			if err != nil {
				t.Fatalf("%s with %s: %v\n%s", file, values, err, doc)
			}
			key := keyOf(t, obj)
			if all[key] != nil {
				t.Errorf("%s: %s is there twice", file, key)
			}
			all[key] = obj
		}
	}
	return all
}

// documents are those of a YAML stream that have something in them.
func documents(text string) (out []string) {
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		if len(bytes.TrimSpace(withoutComments(doc))) > 0 {
			out = append(out, strings.TrimSpace(doc)+"\n")
		}
	}
	return out
}

func withoutComments(text string) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.Bytes()
}

var decoder = json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Yaml: true, Strict: true})

// types are Kubernetes' and those of operators that the chart makes objects for.
var types = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, addOperators} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

func decode(doc []byte) (runtime.Object, error) {
	obj, _, err := decoder.Decode(doc, nil, nil)
	return obj, err
}

// keyOf is Kind/namespace/name, or Kind/name.
func keyOf(t *testing.T, obj runtime.Object) string {
	t.Helper()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{obj.GetObjectKind().GroupVersionKind().Kind, m.GetNamespace(), m.GetName()}
	if m.GetName() == "" {
		t.Errorf("a %s without a name", parts[0])
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "/")
}

// get is an object that has to be there.
func get[T runtime.Object](t *testing.T, all objects, key string) (obj T) {
	t.Helper()
	obj, ok := all[key].(T)
	if !ok {
		t.Fatalf("there is no %s, but %v", key, slices.Sorted(maps.Keys(all)))
	}
	return obj
}

// of are all objects of a type, by key.
func of[T runtime.Object](all objects) map[string]T {
	out := map[string]T{}
	for key, obj := range all {
		if one, ok := obj.(T); ok {
			out[key] = one
		}
	}
	return out
}

func addOperators(s *runtime.Scheme) error {
	monitoring := schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	s.AddKnownTypeWithName(monitoring.WithKind("ServiceMonitor"), &serviceMonitor{})
	s.AddKnownTypeWithName(monitoring.WithKind("PrometheusRule"), &prometheusRule{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, &certificate{})
	return nil
}
