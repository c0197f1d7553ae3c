package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/soak/history"
	"github.com/informerd/informerd/test/soak/traffic"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Definition makes the definition of a custom resource.
func Definition(r history.Resource, change func(spec map[string]any)) *unstructured.Unstructured {
	scope := "Cluster"
	if r.Namespaced {
		scope = "Namespaced"
	}
	spec := map[string]any{
		"group": r.GVR.Group, "scope": scope,
		"names":    map[string]any{"plural": r.GVR.Resource, "kind": r.Kind},
		"versions": []any{version(r.GVR.Version, true, nil)},
	}
	if change != nil {
		change(spec)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": r.Name()}, "spec": spec,
	}}
}

func version(name string, stored bool, more map[string]any) map[string]any {
	properties := map[string]any{"text": map[string]any{"type": "string"}, "size": map[string]any{"type": "integer"}}
	for k, v := range more {
		properties[k] = v
	}
	return map[string]any{
		"name": name, "served": true, "storage": stored,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type":       "object",
			"properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
		}},
	}
}

// Define creates a definition and waits until its objects can be listed.
func Define(ctx context.Context, client dynamic.Interface, r history.Resource, d *unstructured.Unstructured) error {
	err := harness.Poll(patience, func() error {
		_, err := client.Resource(definitions).Create(ctx, d, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			have, gerr := client.Resource(definitions).Get(ctx, d.GetName(), metav1.GetOptions{})
			if gerr == nil && have.GetDeletionTimestamp() == nil {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create definition %s: %w", d.GetName(), err)
	}
	return harness.Poll(patience, func() error {
		_, err := client.Resource(r.GVR).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// patience is how long an API server under other faults may take to do what it is told.
const patience = 2 * time.Minute

// undefine deletes a definition and waits until it is gone.
func (e *Env) undefine(ctx context.Context) error {
	return harness.Poll(patience, func() error {
		err := e.Client.Resource(definitions).Delete(ctx, e.Brittle.Name(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

// edit changes the definition that is there.
func (e *Env) edit(ctx context.Context, change func(spec map[string]any)) error {
	return harness.Poll(20*time.Second, func() error {
		d, err := e.Client.Resource(definitions).Get(ctx, e.Brittle.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		spec, ok := d.Object["spec"].(map[string]any)
		if !ok {
			return errors.New("a definition without a spec")
		}
		change(spec)
		_, err = e.Client.Resource(definitions).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
}

// Fill makes some objects of the brittle kind, of whatever scope it is.
func (e *Env) Fill(ctx context.Context, namespaced bool) error {
	var c dynamic.ResourceInterface = e.Client.Resource(e.Brittle.GVR)
	if namespaced {
		c = e.Client.Resource(e.Brittle.GVR).Namespace("default")
	}
	for n := range 5 {
		o := traffic.Object(e.Brittle, fmt.Sprintf("brittle-%d", n), "red", "text", int64(n))
		err := harness.Poll(10*time.Second, func() error {
			_, err := c.Create(ctx, o, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("create a brittle object: %w", err)
		}
	}
	return nil
}

// again puts the definition back to what it was at the beginning.
func (e *Env) again(ctx context.Context) error {
	err := e.undefine(ctx)
	if err == nil {
		err = Define(ctx, e.Client, e.Brittle, Definition(e.Brittle, nil))
	}
	return errors.Join(err, e.Fill(ctx, e.Brittle.Namespaced))
}

// redefined replaces the definition by another.
func redefined(change func(spec map[string]any), namespaced bool) begin {
	return func(ctx context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		err := e.undefine(ctx)
		if err == nil {
			err = Define(ctx, e.Client, e.Brittle, Definition(e.Brittle, change))
		}
		if err == nil {
			err = e.Fill(ctx, namespaced)
		}
		return e.again, err
	}
}

func edited(change, back func(spec map[string]any)) begin {
	return func(ctx context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			if err := e.edit(ctx, back); err != nil {
				return err
			}
			return e.again(ctx)
		}, e.edit(ctx, change)
	}
}

func versions(all ...any) func(map[string]any) {
	return func(spec map[string]any) { spec["versions"] = all }
}

// brokenWebhook stores another version than there are objects of, which only a
// webhook could convert; nobody listens there.
func brokenWebhook(spec map[string]any) {
	spec["versions"] = []any{version("v1", false, nil), version("v2", true, nil)}
	spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"url": "https://127.0.0.1:1/convert"},
	}}
}

func mendedWebhook(spec map[string]any) { spec["conversion"] = map[string]any{"strategy": "None"} }

func definitionKinds() []Kind {
	const s = time.Second
	parts, own := []string{definition, objects, servers}, []string{"brittles.soak.example.com", definitions.GroupResource().String()}
	kind := func(name, does string, b begin) Kind {
		return Kind{Name: name, Does: does, Parts: parts, Least: 2 * s, Most: 20 * s, Lists: true, Own: own, Begin: b}
	}
	nothing := func(map[string]any) {}
	return []Kind{
		kind("definition-deleted", "a definition is deleted, and created again", func(ctx context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
			return e.again, e.undefine(ctx)
		}),
		kind("definition-scope", "a definition is created anew with another scope", redefined(func(spec map[string]any) { spec["scope"] = "Cluster" }, false)),
		kind("definition-schema", "a definition is created anew with another schema",
			redefined(versions(version("v1", true, map[string]any{"color": map[string]any{"type": "string", "default": "red"}})), true)),
		kind("definition-default", "a definition gets a default, which changes all objects without a new version",
			edited(versions(version("v1", true, map[string]any{"color": map[string]any{"type": "string", "default": "red"}})), nothing)),
		kind("definition-version", "a definition gets a version that is preferred", edited(versions(version("v1", true, nil), version("v2", false, nil)), nothing)),
		kind("definition-webhook", "the conversion webhook of a definition does not answer", edited(brokenWebhook, mendedWebhook)),
	}
}
