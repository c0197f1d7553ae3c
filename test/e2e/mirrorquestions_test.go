package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/postgres"
)

// mirrorTruth is what the API server had at the versions that the mirror names.
type mirrorTruth struct {
	pods        []corev1.Pod
	nodes       []corev1.Node
	services    []corev1.Service
	claims      []corev1.PersistentVolumeClaim
	configMaps  []corev1.ConfigMap
	deployments []appsv1.Deployment
	slices      []discoveryv1.EndpointSlice
}

// row is a row of an answer.
type row = map[string]any

// count are the rows of counts by a key, the highest first.
func count(column string, counts map[string]int) (all []row) {
	for key, n := range counts {
		all = append(all, row{"namespace": key, column: n})
	}
	slices.SortFunc(all, func(a, b row) int {
		return cmp.Or(cmp.Compare(b[column].(int), a[column].(int)), cmp.Compare(a["namespace"].(string), b["namespace"].(string)))
	})
	return all
}

// byColumns sorts rows by columns of text.
func byColumns(all []row, columns ...string) []row {
	slices.SortStableFunc(all, func(a, b row) int {
		for _, c := range columns {
			if d := cmp.Compare(a[c].(string), b[c].(string)); d != 0 {
				return d
			}
		}
		return 0
	})
	return all
}

func isReady(conditions []corev1.PodCondition) bool {
	return slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// amount is a quantity as the views have it.
func amount(q resource.Quantity) float64 { return q.AsApproximateFloat64() }

// answers are what the API server's objects say to the questions of docs/postgresql.md.
var answers = map[string]func(*mirrorTruth) []row{
	"1": func(w *mirrorTruth) []row {
		counts := map[string]int{}
		for _, p := range w.pods {
			if !isReady(p.Status.Conditions) && p.Status.Phase != corev1.PodSucceeded {
				counts[p.Namespace]++
			}
		}
		return count("pods", counts)
	},
	"2": func(w *mirrorTruth) (all []row) {
		containers, spaces := map[string]int{}, map[string]map[string]bool{}
		for _, p := range w.pods {
			for _, c := range append(slices.Clone(p.Spec.Containers), p.Spec.InitContainers...) {
				containers[c.Image]++
				if spaces[c.Image] == nil {
					spaces[c.Image] = map[string]bool{}
				}
				spaces[c.Image][p.Namespace] = true
			}
		}
		for image, n := range containers {
			all = append(all, row{"image": image, "containers": n, "namespaces": len(spaces[image])})
		}
		slices.SortFunc(all, func(a, b row) int {
			return cmp.Or(cmp.Compare(b["containers"].(int), a["containers"].(int)), cmp.Compare(a["image"].(string), b["image"].(string)))
		})
		return all
	},
	"3": func(w *mirrorTruth) (all []row) {
		for _, n := range w.nodes {
			var cpu, memory float64
			for _, p := range w.pods {
				if p.Spec.NodeName != n.Name || p.Status.Phase != corev1.PodPending && p.Status.Phase != corev1.PodRunning {
					continue
				}
				for _, c := range p.Spec.Containers {
					cpu += amount(*c.Resources.Requests.Cpu())
					memory += amount(*c.Resources.Requests.Memory())
				}
			}
			all = append(all, row{
				"node": n.Name, "cpu_requested": cpu, "memory_requested": memory,
				"cpu_allocatable": allocatable(n, corev1.ResourceCPU), "memory_allocatable": allocatable(n, corev1.ResourceMemory),
			})
		}
		return byColumns(all, "node")
	},
	"4": func(w *mirrorTruth) (all []row) {
		for _, p := range w.pods {
			for _, c := range p.Spec.Containers {
				if _, ok := c.Resources.Limits[corev1.ResourceMemory]; !ok {
					all = append(all, row{"namespace": p.Namespace, "pod": p.Name, "container": c.Name})
				}
			}
		}
		return byColumns(all, "namespace", "pod", "container")
	},
	"5": func(w *mirrorTruth) (all []row) {
		for _, d := range w.deployments {
			if d.Status.AvailableReplicas < *d.Spec.Replicas {
				all = append(all, row{"namespace": d.Namespace, "name": d.Name, "replicas": *d.Spec.Replicas, "available": d.Status.AvailableReplicas})
			}
		}
		short := func(r row) int32 { return r["replicas"].(int32) - r["available"].(int32) }
		all = byColumns(all, "namespace", "name")
		slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(short(b), short(a)) })
		return all
	},
	"6": func(w *mirrorTruth) (all []row) {
		for _, s := range w.services {
			ready := slices.ContainsFunc(w.slices, func(e discoveryv1.EndpointSlice) bool {
				return e.Namespace == s.Namespace && e.Labels[discoveryv1.LabelServiceName] == s.Name &&
					slices.ContainsFunc(e.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
			})
			if s.Spec.Selector != nil && !ready {
				all = append(all, row{"namespace": s.Namespace, "name": s.Name})
			}
		}
		return byColumns(all, "namespace", "name")
	},
	"7": func(w *mirrorTruth) (all []row) {
		for _, p := range w.claims {
			if p.Status.Phase != corev1.ClaimBound {
				all = append(all, row{"namespace": p.Namespace, "name": p.Name, "phase": string(p.Status.Phase), "storage_request": amount(*p.Spec.Resources.Requests.Storage())})
			}
		}
		return byColumns(all, "namespace", "name")
	},
	"8": func(w *mirrorTruth) (all []row) {
		named := map[string]bool{}
		for _, p := range w.pods {
			for _, name := range configMapsOf(&p.Spec) {
				named[p.Namespace+"/"+name] = true
			}
		}
		for _, m := range w.configMaps {
			if !named[m.Namespace+"/"+m.Name] {
				all = append(all, row{"namespace": m.Namespace, "name": m.Name})
			}
		}
		return byColumns(all, "namespace", "name")
	},
	"9": func(w *mirrorTruth) (all []row) {
		for _, p := range w.pods {
			all = append(all, row{"namespace": p.Namespace, "name": p.Name, "created": p.CreationTimestamp.UTC().Format(time.DateTime)})
		}
		return byColumns(all, "created", "namespace", "name")[:10]
	},
	"10": func(w *mirrorTruth) (all []row) {
		for _, p := range w.pods {
			for _, s := range append(slices.Clone(p.Status.ContainerStatuses), p.Status.InitContainerStatuses...) {
				if s.RestartCount > 0 {
					all = append(all, row{"namespace": p.Namespace, "pod": p.Name, "container": s.Name, "restarts": s.RestartCount, "reason": reasonOf(s.State)})
				}
			}
		}
		all = byColumns(all, "namespace", "pod", "container")
		slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(b["restarts"].(int32), a["restarts"].(int32)) })
		return all
	},
	"11": func(w *mirrorTruth) (all []row) {
		for _, n := range w.nodes {
			ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			if !ready || n.Spec.Unschedulable {
				all = append(all, row{"name": n.Name, "ready": ready, "unschedulable": n.Spec.Unschedulable})
			}
		}
		return byColumns(all, "name")
	},
	"12": func(w *mirrorTruth) []row {
		counts := map[string]int{}
		for _, d := range w.deployments {
			if _, ok := d.Labels["app.kubernetes.io/name"]; !ok {
				counts[d.Namespace]++
			}
		}
		return count("deployments", counts)
	},
}

// allocatable is of a node; nil if it says nothing.
func allocatable(n corev1.Node, name corev1.ResourceName) any {
	if q, ok := n.Status.Allocatable[name]; ok {
		return amount(q)
	}
	return nil
}

// reasonOf is why a container is not running; nil if it is.
func reasonOf(s corev1.ContainerState) any {
	switch {
	case s.Waiting != nil && s.Waiting.Reason != "":
		return s.Waiting.Reason
	case s.Terminated != nil && s.Terminated.Reason != "":
		return s.Terminated.Reason
	}
	return nil
}

// configMapsOf are the config maps that a pod names.
func configMapsOf(spec *corev1.PodSpec) (names []string) {
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil {
			names = append(names, v.ConfigMap.Name)
		}
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					names = append(names, s.ConfigMap.Name)
				}
			}
		}
	}
	for _, c := range append(slices.Clone(spec.Containers), spec.InitContainers...) {
		for _, e := range c.EnvFrom {
			if e.ConfigMapRef != nil {
				names = append(names, e.ConfigMapRef.Name)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
				names = append(names, e.ValueFrom.ConfigMapKeyRef.Name)
			}
		}
	}
	return names
}

// objectsAt are the objects of a resource at the version that the mirror names in tx.
func objectsAt[T any](ctx context.Context, tx pgx.Tx, c *harness.Cluster, gvr schema.GroupVersionResource) (all []T, err error) {
	version, objects, err := versionIn(ctx, tx, gvr)
	if err != nil {
		return nil, err
	}
	list, err := c.ListAt(ctx, gvr, version)
	if err != nil {
		return nil, err
	}
	if len(list.Items) != objects {
		return nil, fmt.Errorf("%s: %d objects at %s, the mirror says %d", gvr.Resource, len(list.Items), version, objects)
	}
	data, err := json.Marshal(list.Items)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(data, &all)
}

// load asks the API server for all that the questions are about.
func (w *mirrorTruth) load(ctx context.Context, tx pgx.Tx, c *harness.Cluster) (err error) {
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	load := func(load func() error) {
		if err == nil {
			err = load()
		}
	}
	load(func() error { w.pods, err = objectsAt[corev1.Pod](ctx, tx, c, core("pods")); return err })
	load(func() error { w.nodes, err = objectsAt[corev1.Node](ctx, tx, c, core("nodes")); return err })
	load(func() error { w.services, err = objectsAt[corev1.Service](ctx, tx, c, core("services")); return err })
	load(func() error {
		w.claims, err = objectsAt[corev1.PersistentVolumeClaim](ctx, tx, c, core("persistentvolumeclaims"))
		return err
	})
	load(func() error {
		w.configMaps, err = objectsAt[corev1.ConfigMap](ctx, tx, c, core("configmaps"))
		return err
	})
	load(func() error {
		w.deployments, err = objectsAt[appsv1.Deployment](ctx, tx, c, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
		return err
	})
	load(func() error {
		w.slices, err = objectsAt[discoveryv1.EndpointSlice](ctx, tx, c, schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"})
		return err
	})
	return err
}

// documentedQuestions are the questions of docs/postgresql.md by their numbers.
func documentedQuestions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/postgresql.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)\\*\\*([0-9]+)\\. [^\n]*\\*\\*\n\n```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = strings.TrimSuffix(strings.TrimSpace(m[2]), ";")
	}
	return all
}

// prepareQuestions makes objects that every question finds something of.
func prepareQuestions(t *testing.T, c *harness.Cluster) {
	t.Helper()
	const ns = "mirror-questions"
	createNamespace(t, c, ns)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "unbound"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: new(string), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1.5Gi")}},
	}}
	_, err := c.Client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), claim, metav1.CreateOptions{})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "nobody"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	_, serr := c.Client.CoreV1().Services(ns).Create(t.Context(), service, metav1.CreateOptions{})
	labels := map[string]string{"app": "short"}
	replicas := int32(3)
	short := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "short"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"no": "where"}, Containers: []corev1.Container{{Name: "c", Image: "registry.example/short:1"}},
		}},
	}}
	_, derr := c.Client.AppsV1().Deployments(ns).Create(t.Context(), short, metav1.CreateOptions{})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mirror-cordoned"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	_, nerr := c.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	t.Cleanup(func() {
		_ = c.Client.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{})
		_ = c.Client.AppsV1().Deployments(ns).Delete(context.Background(), short.Name, metav1.DeleteOptions{})
	})
	for _, err := range []error{err, serr, derr, nerr} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// TestMirrorQuestions: each question of docs/postgresql.md is answered as the API server's own
// objects answer it, at the versions that the mirror names, while the cluster lives on.
func TestMirrorQuestions(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	db := postgres.Start(t)
	prepareQuestions(t, c)
	questions := documentedQuestions(t)
	if len(questions) != 12 || len(answers) != 12 {
		t.Fatalf("there are %d questions and %d answers", len(questions), len(answers))
	}
	startMirror(t, c, db, mirrorRules)
	r := sqlReader{t, db}
	found := map[string]int{}
	ask := func() error {
		return r.read(func(ctx context.Context, tx pgx.Tx) error {
			w := &mirrorTruth{}
			if err := w.load(ctx, tx, c); err != nil {
				return err
			}
			for n, query := range questions {
				rows, err := tx.Query(ctx, `SELECT to_jsonb(q)::text FROM (`+query+`) q`)
				if err != nil {
					return err
				}
				texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil {
					t.Errorf("question %s: %v", n, err)
					continue
				}
				got := decoded(t, "["+strings.Join(texts, ",")+"]")
				truth, err := json.Marshal(answers[n](w))
				if err != nil {
					return err
				}
				want := decoded(t, string(truth))
				if d := gocmp.Diff(want, got, nearly); d != "" {
					t.Errorf("question %s (-want +got):\n%s", n, d)
				}
				found[n] = len(want)
			}
			return nil
		})
	}
	for range 3 {
		harness.Eventually(t, syncTime, "it is mirrored", ask)
	}
	t.Logf("rows by question: %v", found)
	for n := range questions {
		if found[n] == 0 {
			t.Errorf("question %s has no answer: the test proves nothing of it", n)
		}
	}
}

// nearly is for sums of fractions, which float64 has not exactly.
var nearly = gocmp.Comparer(func(a, b float64) bool { return a == b || max(a-b, b-a) < 1e-6*max(a, b, 1) })

func decoded(t *testing.T, text string) (all []row) {
	t.Helper()
	if text == "null" {
		return []row{}
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}
