package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/informerd/informerd/test/e2e/harness"
)

// What is made in the cluster, all of it in Namespace.
const (
	Namespace = "default"
	App       = "innocent" // the label of the user's ConfigMaps
	Maps      = 20         // how many there are
	Beat      = "attack-beat"
	Noise     = "attack-noise" // changes all the time
	Deep      = "attack-deep-0"
	Wide      = "attack-wide-0"

	group  = "attack.example.com"
	plural = "blobs"

	// Resource, as /v1 names it, and Path, as the Kubernetes API does, of deep and wide
	// objects.
	Resource = plural + "." + group
	Path     = "/apis/" + group + "/v1/namespaces/" + Namespace + "/" + plural
)

const (
	depth     = 4_500 // each of two levels; JSON's readers take 10,000
	keys      = 30_000
	noiseSize = 64 << 10
	deepOnes  = 15
	wideOnes  = 3
)

// Map is the name of one of the user's ConfigMaps.
func Map(n int) string { return fmt.Sprintf("attack-innocent-%d", n) }

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	blobs       = schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
)

// Prepare makes all that attacks and the user ask for. undo takes it away again.
func Prepare(ctx context.Context, c *harness.Cluster) (undo func(), err error) {
	undo = func() { remove(context.WithoutCancel(ctx), c) }
	undo() // what an earlier attack has left
	if err := define(ctx, c); err != nil {
		return undo, err
	}
	for n := range Maps {
		err = errors.Join(err, create(ctx, c, configMaps, configMap(Map(n), App, map[string]string{"name": Map(n)})))
	}
	for n := range 5 {
		// All that a terminal obeys, and what YAML has no place for.
		text := "\u007f\u0080\u0085\u009b31m\u2028\ufeff\x1b[31m=cmd|'/c calc'!A1\t\r\n"
		err = errors.Join(err, create(ctx, c, configMaps, configMap(fmt.Sprintf("attack-control-%d", n), "control", map[string]string{"text": text})))
	}
	err = errors.Join(err,
		create(ctx, c, configMaps, configMap(Beat, "beat", map[string]string{"beat": "0"})),
		create(ctx, c, configMaps, configMap(Noise, "noise", map[string]string{"noise": strings.Repeat("n", noiseSize)})))
	for n := range deepOnes {
		err = errors.Join(err, createBlob(ctx, c, fmt.Sprintf("attack-deep-%d", n), `{"deep":`+strings.Repeat(`{"a":[`, depth)+"1"+strings.Repeat("]}", depth)+"}"))
	}
	for n := range wideOnes {
		err = errors.Join(err, createBlob(ctx, c, fmt.Sprintf("attack-wide-%d", n), wideSpec()))
	}
	return undo, err
}

func configMap(name, label string, data map[string]string) *unstructured.Unstructured {
	values := map[string]any{}
	for k, v := range data {
		values[k] = v
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": values}}
	o.SetName(name)
	o.SetLabels(map[string]string{"app": label, "attack": label})
	return o
}

func wideSpec() string {
	var b strings.Builder
	b.WriteString(`{"keys":{`)
	for n := range keys {
		fmt.Fprintf(&b, `"key-%d":"value-%d",`, n, n)
	}
	b.WriteString(`"last":"x"}}`)
	return b.String()
}

func create(ctx context.Context, c *harness.Cluster, r schema.GroupVersionResource, o *unstructured.Unstructured) error {
	_, err := c.Dynamic.Resource(r).Namespace(Namespace).Create(ctx, o, metav1.CreateOptions{})
	return err
}

// createBlob passes JSON on as it is, without a client that would have to understand it.
func createBlob(ctx context.Context, c *harness.Cluster, name, spec string) error {
	body := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Blob","metadata":{"name":%q},"spec":%s}`, group, name, spec)
	err := c.Client.CoreV1().RESTClient().Post().AbsPath(Path).SetHeader("Content-Type", "application/json").
		SetHeader("Accept", "application/json").Body([]byte(body)).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	return nil
}

// define makes the resource of deep and wide objects, and waits until it is served.
func define(ctx context.Context, c *harness.Cluster) error {
	text := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},
"spec":{"group":%q,"scope":"Namespaced","names":{"plural":%q,"singular":"blob","kind":"Blob","listKind":"BlobList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		Resource, group, plural)
	definition := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &definition.Object); err != nil {
		return err
	}
	err := harness.Poll(30*time.Second, func() error { // while an earlier one is being deleted
		_, err := c.Dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return harness.Poll(30*time.Second, func() error {
		_, err := c.Dynamic.Resource(blobs).Namespace(Namespace).List(ctx, metav1.ListOptions{})
		return err
	})
}

func remove(ctx context.Context, c *harness.Cluster) {
	_ = c.Dynamic.Resource(definitions).Delete(ctx, Resource, metav1.DeleteOptions{})
	_ = c.Dynamic.Resource(configMaps).Namespace(Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "attack"})
}

// MakeNoise changes an object again and again until ctx ends.
func MakeNoise(ctx context.Context, c *harness.Cluster) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"attack/noise":"%d"}}}`, n)
		// One that fails, since the API server has much to do, too, is followed by another.
		_, _ = c.Dynamic.Resource(configMaps).Namespace(Namespace).Patch(ctx, Noise, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}
