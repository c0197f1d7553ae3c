package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

const (
	podsEach       = 20 // of one Deployment
	deploymentsOne = 20 // in one namespace
)

// benchPods are few where it is only tried that the benchmarks run.
func benchPods() int {
	if testing.Short() {
		return 2000
	}
	return 20_000
}

// fleet is a cluster of benchPods pods under Deployments, with what they use.
func fleet(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb)
	lists := map[string][]*cache.Object{}
	add := func(name, id, body string) { lists[name] = append(lists[name], w.Decode(name, id, body)) }
	for n := range 330 {
		add("nodes", fmt.Sprintf("node-%03d", n), "{}")
	}
	for app := range benchPods() / podsEach {
		ns := fmt.Sprintf("team-%02d", app/deploymentsOne)
		id := fmt.Sprintf("%s/app-%04d", ns, app)
		if app%deploymentsOne == 0 {
			add("namespaces", ns, "{}")
			add("serviceaccounts", ns+"/default", "{}")
			add("configmaps", ns+"/kube-root-ca.crt", "{}")
			add("secrets", ns+"/registry", "{}")
			add("networkpolicies.networking.k8s.io", ns+"/deny", `{"spec":{"podSelector":{}}}`)
		}
		for _, name := range []string{"configmaps", "secrets", "serviceaccounts"} {
			add(name, id, "{}")
		}
		add("deployments.apps", id, "{}")
		add("replicasets.apps", id+"-5d9f8b", owned("Deployment", fmt.Sprintf("app-%04d", app), followtest.UID("deployments.apps", id)))
		add("services", id, fmt.Sprintf(`{"spec":{"selector":{"app":"app-%04d"}}}`, app))
		add("poddisruptionbudgets.policy", id, fmt.Sprintf(`{"spec":{"selector":{"matchLabels":{"app":"app-%04d"}}}}`, app))
		for p := range podsEach {
			add("pods", fmt.Sprintf("%s-5d9f8b-%05d", id, p), benchPod(app, p, followtest.UID("replicasets.apps", id+"-5d9f8b")))
		}
	}
	for name, objects := range lists {
		w.Resource(name).Store().Replace("", objects, "1000000")
	}
	return w
}

func owned(kind, name, uid string) string {
	return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":%q,"controller":true}]}}`, kind, name, uid)
}

// benchPod is a pod of about 6 KB with two containers.
func benchPod(app, i int, owner string) string {
	container := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"image":"registry.example.com/app-%04d:1.2.3","env":[{"name":"A","value":"1"},{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"name":"app-%04d","key":"p"}}}],
			"envFrom":[{"configMapRef":{"name":"app-%04d"}}],"resources":{"limits":{"memory":"128Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"livenessProbe":{"httpGet":{"path":"/healthz","port":"http"}},
			"args":[%q]}`, name, app, app, app, strings.Repeat("--flag=value ", 60))
	}
	return fmt.Sprintf(`{"metadata":{"labels":{"app":"app-%04d","pod-template-hash":"5d9f8b","team":"team-%02d"},"annotations":{"checksum/config":"%032d","cni.example.com/podIP":"10.%d.%d.%d/32"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"app-%04d-5d9f8b","uid":%q,"controller":true}]},
		"spec":{"nodeName":"node-%03d","serviceAccountName":"app-%04d","imagePullSecrets":[{"name":"registry"}],"volumes":[{"name":"config","configMap":{"name":"app-%04d"}},
		{"name":"token","projected":{"sources":[{"serviceAccountToken":{"path":"token"}},{"configMap":{"name":"kube-root-ca.crt"}}]}}],"containers":[%s,%s]},
		"status":{"phase":"Running","message":%q}}`,
		app, app/deploymentsOne, app, i%200, app%256, i%256, app, owner, (app*podsEach+i)%330, app, app, container("main"), container("sidecar"), strings.Repeat("ready since long ago; ", 150))
}

// BenchmarkFirst is the first question, which reads every object.
func BenchmarkFirst(b *testing.B) {
	w := fleet(b)
	for b.Loop() {
		w.graph.Close()
		before := followtest.Heap()
		b.StartTimer()
		w.walk("deployments.apps", "team-02/app-0050", func(q *Query) { q.Depth = 3 })
		b.StopTimer()
		b.ReportMetric(float64(followtest.Heap()-before)/float64(benchPods()), "heap-bytes/pod")
		b.StartTimer()
	}
}

// BenchmarkWalk walks three edges around a Deployment, each time after a pod
// has changed.
func BenchmarkWalk(b *testing.B) {
	w := fleet(b)
	w.walk("deployments.apps", "team-02/app-0050", func(q *Query) { q.Depth = 3 })
	pods := w.Resource("pods").Store()
	var times []time.Duration
	nodes, i := 0, 0
	for b.Loop() {
		app := i * 7919 % (benchPods() / podsEach)
		id := fmt.Sprintf("team-%02d/app-%04d", app/deploymentsOne, app)
		b.StopTimer()
		pods.Apply("", cache.Modified, w.Decode("pods", id+"-5d9f8b-00003", benchPod(app, 3, followtest.UID("replicasets.apps", id+"-5d9f8b"))))
		b.StartTimer()
		start := time.Now()
		a := w.walk("deployments.apps", id, func(q *Query) { q.Depth = 3 })
		times = append(times, time.Since(start))
		nodes += len(a.Nodes)
		i++
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(nodes)/float64(i), "nodes")
}

// fifth sees a fifth of the namespaces of a fleet, of some of its resources.
func fifth() cache.Sight {
	var namespaces []string
	for n := 0; n < benchPods()/podsEach/deploymentsOne; n += 5 {
		namespaces = append(namespaces, fmt.Sprintf("team-%02d", n))
	}
	scopes := map[schema.GroupResource]cache.Scope{}
	for _, name := range []string{"pods", "deployments.apps", "replicasets.apps", "services", "configmaps", "serviceaccounts"} {
		scopes[schema.ParseGroupResource(name)] = cache.NewScope(namespaces, nil)
	}
	return cache.NewSight(scopes)
}

// BenchmarkWalkSeen walks as BenchmarkWalk does, without changes and with the eyes of
// who may not see all.
func BenchmarkWalkSeen(b *testing.B) {
	w := fleet(b)
	for name, sight := range map[string]cache.Sight{"all": everything, "a fifth": fifth()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w.walk("deployments.apps", "team-00/app-0007", as(sight), func(q *Query) { q.Depth = 3 })
			}
		})
	}
}

// BenchmarkDangling asks for all that dangles.
func BenchmarkDangling(b *testing.B) {
	w := fleet(b)
	for name, sight := range map[string]cache.Sight{"all": everything, "a fifth": fifth()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := w.graph.Dangling(b.Context(), DanglingQuery{Sight: sight}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
