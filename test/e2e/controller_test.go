package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/informerd/informerd/test/e2e/harness"
)

// serviceKind is of Services whose ports change.
func serviceKind() kind {
	return kind{
		gvr: schema.GroupVersionResource{Version: "v1", Resource: "services"}, apiVersion: "v1", name: "Service", namespaced: true,
		body: func(r *rand.Rand) map[string]any {
			var ports []any
			for n := range 1 + r.IntN(3) {
				ports = append(ports, map[string]any{"name": fmt.Sprint("p", n), "port": int64(1 + r.IntN(1000))})
			}
			return map[string]any{"spec": map[string]any{"clusterIP": "None", "ports": ports}}
		},
	}
}

// TestDocumentedController: the controller of docs/handlers.md, as it stands there, has a
// ConfigMap beside every Service of a label, and no other, after churn in which both it and
// informerd were stopped and killed.
func TestDocumentedController(t *testing.T) {
	seed := number(t, "INFORMERD_SEED", int(rand.Uint32()))
	inTurn(t, &smallLane)
	c := smallCluster(t)
	t.Logf("seed %d", seed)
	const ns = "documented-controller"
	churn := newChurner(t, c, []kind{serviceKind()}, ns)
	churn.pause, churn.seed = 20*time.Millisecond, uint64(seed)
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db"), Rules: "\n- match: [services]\n",
		Handlers: "- {name: services, resources: [services], namespaces: [" + ns + "], labelSelector: tier=red, as: informerd, from: beginning, retry: {base: 100ms, max: 1s}}\n",
	})
	controller := newShownProgram(t, []string{"python3", "controller.py"}, append(asAdmin(t, c), "INFORMERD="+i.URL, "LEASE=2s")...)
	began := c.AuditMark(t)
	controller.start()

	services := c.Dynamic.Resource(serviceKind().gvr).Namespace(ns)
	for _, name := range []string{"deleted", "relabelled"} { // in the end
		createService(t, services, name)
	}
	stop := churn.start(t.Context(), 3)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	for _, restart := range []func(){
		func() { controller.kill(); controller.start() },
		func() { i.Kill(); i.Start() },
		func() { controller.stop(); i.Stop(); i.Start(); controller.start() },
		func() { i.Kill(); controller.kill(); controller.start(); i.Start() },
		func() { controller.stop(); controller.start() },
	} {
		time.Sleep(time.Duration(400+r.IntN(600)) * time.Millisecond)
		restart()
	}
	stop()
	churn.check(t)
	wanted := selected(t, c, serviceKind().gvr, func(o harness.Object) bool { return o.Namespace() == ns && o.Labels()["tier"] == "red" })
	made := selected(t, c, configMaps, func(o harness.Object) bool { return o.Labels()["made-by"] == "service-ports" })
	check := func(when string) {
		t.Helper()
		harness.Eventually(t, syncTime, when+": a ConfigMap beside each Service", func() error {
			services, err := wanted()
			maps, merr := made()
			if err = errors.Join(err, merr); err != nil {
				return err
			}
			return besides(services, maps)
		})
	}
	check("after churn")

	controller.kill()
	i.Kill()
	err := services.Delete(t.Context(), "deleted", metav1.DeleteOptions{})
	_, perr := services.Patch(t.Context(), "relabelled", types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"blue"}}}`), metav1.PatchOptions{})
	if err = errors.Join(err, perr); err != nil {
		t.Fatal(err)
	}
	i.Start()
	controller.start()
	check("after changes while both were down")
	verbs := map[string]int{}
	for _, request := range c.Audit(t, began, "Python-urllib") {
		if request.Resource == "configmaps" && request.Namespace == ns && request.Code < 300 {
			verbs[request.Verb]++
		}
	}
	t.Logf("the controller made these requests: %v", verbs)
	if verbs["delete"] < 2 || verbs["patch"] < 2 {
		t.Error("it made fewer than there were to make")
	}
}

// createService makes one that is selected.
func createService(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: serviceKind().body(rand.New(rand.NewPCG(1, 1)))}
	o.SetAPIVersion("v1")
	o.SetKind("Service")
	o.SetName(name)
	o.SetLabels(map[string]string{"tier": "red"})
	t.Cleanup(func() { _ = client.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	if _, err := client.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// asAdmin has the controller write as the admin of a cluster.
func asAdmin(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	env, dir := []string{"KUBERNETES=" + c.Server()}, t.TempDir()
	for name, data := range map[string][]byte{"CA": c.Config.CAData, "CERT": c.Config.CertData, "KEY": c.Config.KeyData} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		env = append(env, "KUBERNETES_"+name+"="+path)
	}
	return env
}

// besides compares ConfigMaps with the ports of Services.
func besides(services, configMaps map[string]harness.Object) error {
	want, got := map[string]string{}, map[string]string{}
	for _, s := range services {
		ports := map[string]string{}
		for _, p := range s["spec"].(map[string]any)["ports"].([]any) {
			port := p.(map[string]any)
			ports[port["name"].(string)] = fmt.Sprint(port["port"])
		}
		want[s.Key()+"-ports"] = fmt.Sprint(ports)
	}
	for _, m := range configMaps {
		ports := map[string]string{}
		data, _ := m["data"].(map[string]any)
		for name, port := range data {
			ports[name] = fmt.Sprint(port)
		}
		got[m.Key()] = fmt.Sprint(ports)
	}
	if maps.Equal(got, want) {
		return nil
	}
	var wrong []string
	for name, ports := range want {
		if got[name] != ports {
			wrong = append(wrong, fmt.Sprintf("%s is %q, the Service has %q", name, got[name], ports))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			wrong = append(wrong, strconv.Quote(name)+" has no Service")
		}
	}
	slices.Sort(wrong)
	return fmt.Errorf("%d of %d are wrong: %q", len(wrong), len(want), wrong)
}
