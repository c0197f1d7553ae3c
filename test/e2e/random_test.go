package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/test/e2e/harness"
)

const (
	// perKind is how many objects of a kind are wanted.
	perKind = 3
	// mostTries is how often an object is mended.
	mostTries = 25
	// leastKinds must have objects in the end. Most runs have ten more.
	leastKinds = 26
)

// limiting are kinds that would change what the server accepts of others, here
// and in other tests.
var limiting = []string{
	"namespaces", "apiservices.apiregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
	"flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
	"limitranges", "resourcequotas", "servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io",
	"priorityclasses.scheduling.k8s.io",
}

// twofaced is the resource of which the API server's own LIST and WATCH differ:
// reading completes and cleans Services of type ExternalName (clusterIPs,
// internalTrafficPolicy) that their events show as they are stored. No informer
// could be right. Services as people write them are compared elsewhere.
const twofaced = "services"

// randomSeed is always the same, so that a test that fails does so again;
// INFORMERD_E2E_SEED is another one, to look for more.
func randomSeed(t *testing.T) uint64 {
	seed := uint64(20)
	if text := os.Getenv("INFORMERD_E2E_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	return seed
}

// TestRandomObjects: objects of all kinds, made at random from what the server
// says of their shape, are shown as the server shows them, through creation,
// change and deletion.
func TestRandomObjects(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	w := newRandomWriter(t, c, i)
	t.Cleanup(func() { w.remove(t, 1) })

	w.create(t)
	harness.CheckEqual(t, c, i, harness.Check{Resources: w.names()})
	w.change(t)
	w.remove(t, 3)
	harness.CheckEqual(t, c, i, harness.Check{Resources: w.names()})
}

// TestRandomDocuments: custom resources that may hold anything hold it, a mebibyte
// of text too, and their indexes find it.
func TestRandomDocuments(t *testing.T) {
	inTurn(t, &smallLane)
	const documents = 40
	c := smallCluster(t)
	d := harness.CRD{Group: fmt.Sprintf("random%d.example.com", fresh()), Plural: "documents", Kind: "Document"}
	c.CreateCRD(t, d)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: fmt.Sprintf(`
- match: [%s]
  indexes: {one: spec.one, each: "spec.list[*]", deep: "spec.one.a['b.c/d'][*]"}
  drop: [metadata.managedFields]
- match: ["*"]
  watch: false
`, d.Name())})
	i.WaitLive(t, syncTime, d.Name())

	r := harness.NewRandom(c, randomSeed(t))
	client := c.Dynamic.Resource(d.GVR()).Namespace("default")
	document := func(n int) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"one": r.JSON(3), "list": []any{r.JSON(0), r.JSON(0), r.JSON(1)}, r.Text(): r.JSON(6)},
			"more": r.Nested(10 * (n % 20)), r.Text(): r.JSON(2),
		}}
		o.SetAPIVersion(d.GVR().GroupVersion().String())
		o.SetKind(d.Kind)
		o.SetName(fmt.Sprintf("d-%02d", n))
		if n == 0 {
			o.Object["large"] = r.Incompressible(1 << 20)
		}
		return o
	}
	for n := range documents {
		if _, err := client.Create(t.Context(), document(n), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	check := harness.Check{Resources: []string{d.Name()}}
	harness.CheckEqual(t, c, i, check)
	for n := range documents / 2 {
		have, err := client.Get(t.Context(), fmt.Sprintf("d-%02d", n), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o := document(n)
		o.SetResourceVersion(have.GetResourceVersion())
		if _, err := client.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	harness.CheckEqual(t, c, i, check)
}

// randomWriter writes random objects of all kinds.
type randomWriter struct {
	cluster   *harness.Cluster
	random    *harness.Random
	namespace string
	kinds     []*randomKind
}

// randomKind is one of them and what became of its objects.
type randomKind struct {
	name     string // of the resource
	maker    *harness.RandomKind
	client   dynamic.ResourceInterface
	there    []string // names of objects
	requests int
	last     error // why the last object that was given up was refused
}

func newRandomWriter(t *testing.T, c *harness.Cluster, i *harness.Informerd) *randomWriter {
	t.Helper()
	w := &randomWriter{cluster: c, random: harness.NewRandom(c, randomSeed(t)), namespace: fmt.Sprintf("random-%d", fresh())}
	createNamespace(t, c, w.namespace)
	// No pod is admitted without it, and no controller makes it here.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := c.Client.CoreV1().ServiceAccounts(w.namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	quiet := rest.CopyConfig(c.Config)
	quiet.WarningHandler = rest.NoWarnings{} // of nonsense there is much to warn of
	client, err := dynamic.NewForConfig(quiet)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		r := resources[name]
		if r.State == "unwatched" || slices.Contains(limiting, name) || name == twofaced || !builtIn(r.Group) {
			continue
		}
		gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
		maker, err := w.random.Kind(gvr.GroupVersion().WithKind(r.Kind))
		if err != nil {
			t.Fatal(err)
		}
		k := &randomKind{name: name, maker: maker, client: client.Resource(gvr)}
		if r.Namespaced {
			k.client = client.Resource(gvr).Namespace(w.namespace)
		}
		w.kinds = append(w.kinds, k)
	}
	return w
}

// builtIn leaves out what other tests define, and admission, which would refuse
// their objects.
func builtIn(group string) bool {
	return group != "admissionregistration.k8s.io" && (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"))
}

// names are the resources of all kinds that have or had objects.
func (w *randomWriter) names() []string {
	var names []string
	for _, k := range w.kinds {
		if len(k.there) > 0 {
			names = append(names, k.name)
		}
	}
	return names
}

// create makes some objects of every kind.
func (w *randomWriter) create(t *testing.T) {
	accepted, requests := 0, 0
	var refused []string
	for _, k := range w.kinds {
		for n := range perKind {
			k.create(t.Context(), fmt.Sprintf("%s-%d", w.namespace, n))
		}
		requests += k.requests
		if len(k.there) > 0 {
			accepted++
		} else {
			refused = append(refused, fmt.Sprintf("%s: %.300v", k.name, k.last))
		}
	}
	t.Logf("%d of %d kinds accepted, with %d requests; refused:\n%s", accepted, len(w.kinds), requests, strings.Join(refused, "\n"))
	if accepted < leastKinds {
		t.Errorf("objects of %d kinds were accepted, want %d", accepted, leastKinds)
	}
}

// create makes one object and mends it until the server accepts it.
func (k *randomKind) create(ctx context.Context, name string) {
	o := k.maker.Object("", name)
	failed := map[string]int{}
	for range mostTries {
		k.requests++
		_, err := k.client.Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
		if err == nil {
			k.there = append(k.there, name)
			return
		}
		k.last = err
		if !k.mend(o, err, failed) {
			o = k.maker.Object("", name)
		}
	}
}

// mend changes an object as the server said; it reports whether it could.
func (k *randomKind) mend(o map[string]any, err error, failed map[string]int) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	return k.maker.Mend(o, status.Status().Details.Causes, failed)
}

// change replaces most of every object, as far as the server lets it, and its
// metadata in any case.
func (w *randomWriter) change(t *testing.T) {
	replaced, changed := 0, 0
	for _, k := range w.kinds {
		for _, name := range k.there {
			if k.replace(t.Context(), name) {
				replaced++
			}
			patch, err := json.Marshal(map[string]any{"metadata": w.random.Metadata()})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := k.client.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
				changed++
			}
		}
	}
	t.Logf("%d objects replaced, metadata of %d changed", replaced, changed)
	if changed == 0 {
		t.Error("no object was changed")
	}
}

// replace updates an object with another one of its kind.
func (k *randomKind) replace(ctx context.Context, name string) bool {
	have, err := k.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	o := k.maker.Object("", name)
	o["metadata"] = have.Object["metadata"]
	failed := map[string]int{}
	for range mostTries / 2 {
		_, err = k.client.Update(ctx, &unstructured.Unstructured{Object: o}, metav1.UpdateOptions{})
		if err == nil || !k.mend(o, err, failed) {
			break
		}
	}
	return err == nil
}

// remove deletes one object in n of each kind; the others stay.
func (w *randomWriter) remove(t *testing.T, n int) {
	t.Helper()
	for _, k := range w.kinds {
		for at, name := range k.there {
			if at%n == 0 {
				if err := k.remove(context.Background(), name); err != nil {
					t.Errorf("delete %s %s: %v", k.name, name, err)
				}
			}
		}
	}
}

// remove deletes an object at once; nobody is there to act on its finalizers.
func (k *randomKind) remove(ctx context.Context, name string) error {
	now := int64(0)
	err := k.client.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err == nil {
		_, err = k.client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
