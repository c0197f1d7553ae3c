package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestApplyDefinitionAndObject: with everything passed on, kubectl applies a
// definition and then an object of it, although it and informerd have just asked
// which kinds there are.
func TestApplyDefinitionAndObject(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := passing(t, c, "all")
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, dir := kubeconfigFor(t, i, tokenOf(t, c, "applies", "cluster-admin")), t.TempDir()
	run := func(args ...string) error {
		args = append([]string{"kubectl", "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(dir, "cache")}, args...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "devcluster"), args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("kubectl %v: %w: %s", args[4:], err, out)
		}
		return err
	}
	write := func(name string, object any) string {
		text, err := yaml.Marshal(object)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	d := harness.CRD{Group: fmt.Sprintf("applied-%d.example.com", fresh()), Plural: "ships", Kind: "Ship"}
	crd := d.Definition()
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	definition := write("definition.yaml", crd)
	object := write("object.yaml", map[string]any{
		"apiVersion": d.GVR().GroupVersion().String(), "kind": d.Kind,
		"metadata": map[string]any{"name": "one", "namespace": "default"}, "spec": map[string]any{"color": "red"},
	})
	t.Cleanup(func() { _ = c.DeleteCRD(context.Background(), d) })
	for _, args := range [][]string{{"api-resources"}, {"apply", "-f", definition}, {"wait", "--for=condition=Established", "crd/" + d.Name()}} {
		if err := run(args...); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	harness.Eventually(t, 15*time.Second, "object applied", func() error { return run("apply", "-f", object) })
	t.Logf("its object was applied %v after the definition", time.Since(began).Round(time.Millisecond))
}

// sameNames wants of both sides the same objects, and these, if there are any.
func sameNames(t *testing.T, c *harness.Cluster, i *harness.Informerd, uri string, want ...string) {
	t.Helper()
	names := func(a *harness.Answer, err error) ([]string, error) {
		if err != nil {
			return nil, err
		}
		var list struct {
			Message string
			Items   []struct{ Metadata metav1.ObjectMeta }
		}
		if err := json.Unmarshal(a.Body, &list); err != nil || a.Status != http.StatusOK {
			return nil, fmt.Errorf("%d %s %w", a.Status, list.Message, err)
		}
		names := []string{}
		for _, o := range list.Items {
			names = append(names, o.Metadata.Namespace+"/"+o.Metadata.Name)
		}
		return names, nil
	}
	err := harness.Poll(20*time.Second, func() error {
		got, err := names(i.Get(uri))
		theirs, terr := names(c.Raw(t.Context(), http.MethodGet, uri, "application/json"))
		if err := errors.Join(err, terr); err != nil {
			return err
		}
		if diff := cmp.Diff(theirs, got); diff != "" {
			return fmt.Errorf("-API server +informerd:\n%s", diff)
		}
		if len(want) > 0 && !slices.Equal(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
	if err != nil {
		t.Errorf("GET %s: %v", uri, err)
	}
}

// TestFieldLabels: what the API server selects by a field, informerd does.
func TestFieldLabels(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster})
	i.WaitLive(t, syncTime)
	ns := fmt.Sprintf("reported-%d", fresh())
	createNamespace(t, c, ns)
	for name, e := range map[string]corev1.Event{
		"both":      {Source: corev1.EventSource{Component: "x"}, ReportingController: "y", ReportingInstance: "y"},
		"neither":   {},
		"reporting": {ReportingController: "x", ReportingInstance: "x"},
		"source":    {Source: corev1.EventSource{Component: "x"}},
	} {
		e.Name, e.InvolvedObject = name, corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "one"}
		if _, err := c.Client.CoreV1().Events(ns).Create(t.Context(), &e, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for selector, names := range map[string]string{
		"source=x": "both reporting source", "source!=x": "neither", "source=": "neither", "source!=": "both reporting source", "source=y": "",
		"source=x,reportingComponent=": "source", "reportingComponent=y": "both", "involvedObject.name=one,source=x,metadata.name!=both": "reporting source",
	} {
		want := strings.Fields(names)
		for n := range want {
			want[n] = ns + "/" + want[n]
		}
		sameNames(t, c, i, "/api/v1/namespaces/"+ns+"/events?fieldSelector="+url.QueryEscape(selector), want...)
	}
	for path, labels := range map[string]map[string][]string{
		"/api/v1/pods": {
			"metadata.name": {"redis-0"}, "metadata.namespace": {"shop"}, "spec.nodeName": {"x"}, "spec.host": {"x"}, "spec.restartPolicy": {"Always", "Never"},
			"spec.schedulerName": {"default-scheduler"}, "spec.serviceAccountName": {"default", "x"}, "spec.hostNetwork": {"true", "false", "0"},
			"status.phase": {"Running", "Pending"}, "status.podIP": {"10.244.1.5"}, "status.podIPs": {"10.244.1.5"}, "status.nominatedNodeName": {"x"},
		},
		"/api/v1/nodes":                  {"metadata.name": {"x"}, "spec.unschedulable": {"true", "false", "x"}},
		"/api/v1/namespaces":             {"metadata.name": {"shop"}, "status.phase": {"Active", "Terminating"}},
		"/api/v1/secrets":                {"type": {"Opaque", "kubernetes.io/tls"}, "metadata.namespace": {"shop"}},
		"/api/v1/services":               {"spec.type": {"ClusterIP", "LoadBalancer"}, "spec.clusterIP": {"None"}},
		"/api/v1/replicationcontrollers": {"status.replicas": {"0", "1"}},
		"/apis/batch/v1/jobs":            {"status.successful": {"0", "1"}},
		"/apis/certificates.k8s.io/v1/certificatesigningrequests": {"spec.signerName": {"x"}},
		"/apis/resource.k8s.io/v1/resourceslices":                 {"spec.nodeName": {"x"}, "spec.driver": {"x"}},
		"/api/v1/configmaps":                                      {"metadata.name": {"kube-root-ca.crt"}, "metadata.namespace": {"shop"}},
		"/api/v1/persistentvolumes":                               {"metadata.namespace": {"x"}},
	} {
		for label, values := range labels {
			for _, value := range append(values, "") {
				for _, op := range []string{"=", "!="} {
					sameNames(t, c, i, path+"?fieldSelector="+url.QueryEscape(label+op+value))
				}
			}
		}
	}
}

// TestListItems: see sameItems; of definitions and API services, too, whose Go types
// are not client-go's.
func TestListItems(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster})
	i.WaitLive(t, syncTime)
	for _, path := range []string{
		"/api/v1/nodes", "/api/v1/namespaces/shop/configmaps", "/apis/apps/v1/namespaces/shop/deployments", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/messaging.example.com/v1/queues",
	} {
		sameItems(t, c, i, path)
	}
}

// TestTableBookmarks: the bookmark after the initial objects is, in a stream of
// tables, the API server's, with its row and its columns.
func TestTableBookmarks(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster})
	i.WaitLive(t, syncTime)
	first := func(t *testing.T, a *harness.Answer, err error) map[string]any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := bytes.Cut(a.Body, []byte("\n"))
		var event map[string]any
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%d %v: %.500s", a.Status, err, a.Body)
		}
		// Versions are not the same, and bookmarks of whole objects have
		// empty parts at the API server.
		forget(event, "resourceVersion", "spec", "status", "involvedObject", "source", "eventTime", "firstTimestamp", "lastTimestamp",
			"reportingComponent", "reportingInstance")
		return event
	}
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/nodes", "/api/v1/configmaps", "/api/v1/events", "/apis/apps/v1/deployments", "/apis/batch/v1/cronjobs",
		"/apis/messaging.example.com/v1/queues", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	} {
		for _, include := range []string{"None", "Metadata", "Object", ""} {
			uri := path + "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Dnothing&timeoutSeconds=1&includeObject=" + include
			t.Run(path+" "+include, func(t *testing.T) {
				t.Parallel() // each takes its second
				a, err := i.Do(http.MethodGet, uri, "Accept", acceptTable)
				got := first(t, a, err)
				a, err = c.Raw(t.Context(), http.MethodGet, uri, acceptTable)
				if diff := cmp.Diff(first(t, a, err), got); diff != "" {
					t.Errorf("%s, -API server +informerd:\n%s", uri, diff)
				}
			})
		}
	}
}

// sameItems wants the items of a list to say of themselves what they say at the API
// server: those of built-in kinds have neither apiVersion nor kind.
func sameItems(t *testing.T, c *harness.Cluster, i *harness.Informerd, path string) {
	t.Helper()
	read := func(a *harness.Answer, err error) map[string][]string {
		var list struct{ Items []map[string]any }
		if err == nil {
			err = json.Unmarshal(a.Body, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string][]string{}
		for _, item := range list.Items {
			metadata := item["metadata"].(map[string]any)
			fields[fmt.Sprint(metadata["namespace"], "/", metadata["name"])] = slices.Sorted(maps.Keys(item))
		}
		return fields
	}
	got := read(i.Get(path))
	want := read(c.Raw(t.Context(), http.MethodGet, path, "application/json"))
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("the fields of the items of %s, -API server +informerd:\n%s", path, diff)
	}
}

// forget takes fields of these names out of a value, wherever they are.
func forget(value any, names ...string) {
	switch v := value.(type) {
	case map[string]any:
		for key, part := range v {
			if slices.Contains(names, key) {
				delete(v, key)
			}
			forget(part, names...)
		}
	case []any:
		for _, part := range v {
			forget(part, names...)
		}
	}
}

// TestLegacyDiscovery: the documents of the older discovery are the API server's
// where everything is passed on, and say the same of how resources are stored
// where it is not.
func TestLegacyDiscovery(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := passing(t, c, "all")
	alone := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster})
	alone.WaitLive(t, syncTime)
	paths := []string{"/api/v1"}
	var groups metav1.APIGroupList
	if err := i.Read("/apis", &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			paths = append(paths, "/apis/"+v.GroupVersion)
		}
	}
	read := func(a *harness.Answer, err error) map[string]metav1.APIResource {
		t.Helper()
		var list metav1.APIResourceList
		if err == nil {
			err = json.Unmarshal(a.Body, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]metav1.APIResource{}
		for _, r := range list.APIResources {
			byName[r.Name] = r
		}
		return byName
	}
	stored := 0
	for _, path := range paths {
		want := read(c.Raw(t.Context(), http.MethodGet, path, "application/json"))
		if diff := cmp.Diff(want, read(i.Get(path))); diff != "" {
			t.Errorf("%s, -API server +informerd:\n%s", path, diff)
		}
		for name, r := range read(alone.Get(path)) {
			if r.StorageVersionHash != want[name].StorageVersionHash {
				t.Errorf("%s of %s without passthrough is stored as %q, want %q", name, path, r.StorageVersionHash, want[name].StorageVersionHash)
			}
			if r.StorageVersionHash != "" {
				stored++
			}
		}
	}
	if stored < 20 {
		t.Errorf("only %d resources have a storageVersionHash", stored)
	}
}
