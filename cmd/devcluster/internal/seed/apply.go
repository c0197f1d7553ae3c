package seed

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

type object = *unstructured.Unstructured

// lastApplied is what `kubectl apply` leaves behind. A manifest with an empty
// one gets itself as the value.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// statusManagers are who writes the status of a kind. A manifest's status is
// applied in their name.
var statusManagers = map[string]string{
	"Ingress": "nginx-ingress-controller",
	"Service": "aws-load-balancer-controller",
	"Queue":   "queue-operator",
	"Tenant":  "tenant-operator",
}

// applier applies manifests server-side.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

func (a *applier) apply(ctx context.Context, o object, manager string) error {
	client, err := a.resource(ctx, o)
	if err != nil {
		return err
	}
	status, hasStatus := o.Object["status"]
	delete(o.Object, "status")
	if _, ok := o.GetAnnotations()[lastApplied]; ok {
		return createClientSide(ctx, client, o)
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	if _, err := client.Apply(ctx, o.GetName(), o, options); err != nil {
		return err
	}
	if !hasStatus {
		return nil
	}
	o = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.GetAPIVersion(),
		"kind":       o.GetKind(),
		"metadata":   map[string]any{"name": o.GetName()},
		"status":     status,
	}}
	options.FieldManager = statusManagers[o.GetKind()]
	_, err = client.ApplyStatus(ctx, o.GetName(), o, options)
	return err
}

// createClientSide does what `kubectl apply` does with a new object.
func createClientSide(ctx context.Context, client dynamic.ResourceInterface, o object) error {
	_, err := client.Create(ctx, o, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// resource finds where objects of this kind are served. A kind that a CRD has
// just defined takes a moment to appear.
func (a *applier) resource(ctx context.Context, o object) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	deadline := time.Now().Add(30 * time.Second)
	for {
		mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err == nil {
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				return a.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
			}
			return a.client.Resource(mapping.Resource), nil
		}
		if !meta.IsNoMatchError(err) || time.Now().After(deadline) || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond)
		a.mapper.Reset()
	}
}

// readManifest reads the objects of one file.
func readManifest(name string) ([]object, error) {
	data, err := manifests.ReadFile(name)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []object
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: object %d: %w", name, len(objects)+1, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		encodeStringData(o)
		if err := fillLastApplied(o); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}

// encodeStringData moves stringData to data, which is what an apply must own for
// a second one to change nothing.
func encodeStringData(o object) {
	values, ok, _ := unstructured.NestedStringMap(o.Object, "stringData")
	if !ok || o.GetKind() != "Secret" {
		return
	}
	data := map[string]any{}
	for k, v := range values {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	o.Object["data"] = data
	delete(o.Object, "stringData")
}

func fillLastApplied(o object) error {
	annotations := o.GetAnnotations()
	if value, ok := annotations[lastApplied]; !ok || value != "" {
		return nil
	}
	delete(annotations, lastApplied)
	o.SetAnnotations(annotations)
	data, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	annotations[lastApplied] = string(data) + "\n"
	o.SetAnnotations(annotations)
	return nil
}
