package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestStorm: after hundreds of random creates, updates, status patches, deletes,
// recreates and finalizers over built-in kinds and custom resources at once,
// every object equals the API server's own, every index follows from the
// objects, and so do the copies that clients made from event streams.
func TestStorm(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	widgets := harness.CRD{Group: "storm.example.com", Plural: "widgets", Kind: "Widget", Selectable: []string{".spec.color", ".spec.size"}}
	gadgets := harness.CRD{Group: "storm.example.com", Plural: "gadgets", Kind: "Gadget", Cluster: true}
	c.CreateCRD(t, widgets)
	c.CreateCRD(t, gadgets)
	kinds := append(builtinKinds(), customKind(widgets), customKind(gadgets))
	storm := newChurner(t, c, kinds, "storm-a", "storm-b", "storm-c")

	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime, widgets.Name(), gadgets.Name())

	type following struct {
		*harness.Follower
		gvr  schema.GroupVersionResource
		keep func(harness.Object) bool
	}
	follow := func(resource, query string, gvr schema.GroupVersionResource, keep func(harness.Object) bool) following {
		f := harness.Follow(t, i, "/v1/resources/"+resource+"/objects"+query)
		return following{f, gvr, keep}
	}
	field := func(o harness.Object, name string) string {
		spec, _ := o["spec"].(map[string]any)
		s, _ := spec[name].(string)
		return s
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	followers := []following{
		follow("configmaps", "", configMaps, nil),
		follow("configmaps", "?labelSelector=app+in+(app-1,app-2),example.com/empty", configMaps, func(o harness.Object) bool {
			_, has := o.Labels()["example.com/empty"]
			return has && (o.Labels()["app"] == "app-1" || o.Labels()["app"] == "app-2")
		}),
		follow("configmaps", "?index=label:tier%3Dred&namespace=storm-[ab]", configMaps, func(o harness.Object) bool {
			return o.Labels()["tier"] == "red" && (o.Namespace() == "storm-a" || o.Namespace() == "storm-b")
		}),
		follow("secrets", "", kinds[1].gvr, nil),
		follow("deployments", "", kinds[3].gvr, nil),
		follow("pods", "?namespace=storm-*", pods, func(o harness.Object) bool { return strings.HasPrefix(o.Namespace(), "storm-") }),
		follow(widgets.Name(), "", widgets.GVR(), nil),
		follow(widgets.Name(), "?fieldSelector=spec.color%3Dblue", widgets.GVR(), func(o harness.Object) bool { return field(o, "color") == "blue" }),
		follow(widgets.Name(), "?fieldSelector=spec.color!%3Dblue&labelSelector=tier%3Dgreen", widgets.GVR(), func(o harness.Object) bool {
			return field(o, "color") != "blue" && o.Labels()["tier"] == "green"
		}),
		follow(gadgets.Name(), "", gadgets.GVR(), nil),
	}
	for _, f := range followers {
		f.Wait(t)
	}

	big := strings.Repeat("x", 1000) + "ß\"\\\n"
	createConfigMap(t, c, "storm-a", "big", nil, map[string]any{"big": strings.Repeat(big, 1<<20/len(big)-8)})
	began := time.Now()
	storm.run(t.Context(), 6, 1200)
	t.Logf("storm took %.1f s", time.Since(began).Seconds())
	storm.check(t)

	harness.CheckEqual(t, c, i, harness.Check{})
	for _, f := range followers {
		f.CheckEqual(t, selected(t, c, f.gvr, f.keep))
		f.CheckUndisturbed(t)
	}
	indexes, err := i.Indexes(widgets.Name())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, index := range indexes {
		names[index.Name] = true
	}
	for _, name := range []string{"namespace", "label", "owner", "spec.color", "spec.size"} {
		if !names[name] {
			t.Errorf("widgets have no index %s, only %v", name, indexes)
		}
	}
	if r := i.Resource(t, widgets.Name()); r.Counts.Relists != 1 || r.Counts.Undecoded != 0 {
		t.Errorf("widgets: %+v, want one sync and nothing refused", r.Counts)
	}
}
