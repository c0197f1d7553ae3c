package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

const (
	podsEach = 20 // of one Deployment
)

// benchPods are few where it is only tried that the benchmarks run.
func benchPods() int {
	if testing.Short() {
		return 2000
	}
	return 20_000
}

// fleet is a cluster of benchPods pods under Deployments.
func fleet(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb, Options{})
	lists := map[string][]*cache.Object{}
	add := func(name, id, body string) { lists[name] = append(lists[name], w.Decode(name, id, body)) }
	r := rand.New(rand.NewPCG(1, 2))
	for app := range benchPods() / podsEach {
		name := fmt.Sprintf("%s-%s-%04d", []string{"checkout", "frontend", "ledger", "search", "mail"}[app%5], []string{"api", "worker", "web"}[app%3], app)
		id := fmt.Sprintf("team-%02d/%s", app%50, name)
		for _, kind := range []string{"deployments.apps", "services", "configmaps", "secrets"} {
			add(kind, id, fmt.Sprintf(`{"metadata":{"labels":{"app":%q,"team":"team-%02d"},"annotations":{"meta.helm.sh/release-name":%q}}}`, name, app%50, name))
		}
		for range podsEach {
			add("pods", fmt.Sprintf("%s-%08x-%05x", id, app*7919, r.Uint32N(1<<20)), fmt.Sprintf(`{"metadata":{"labels":{"app":%q,"app.kubernetes.io/instance":%q,"app.kubernetes.io/managed-by":"Helm","pod-template-hash":"%08x","team":"team-%02d","tier":"tier-%d"},
				"annotations":{"checksum/config":"%016x%016x","prometheus.io/scrape":"true","cni.example.com/podIP":"10.%d.%d.%d/32","cni.example.com/containerID":"%032x%032x"}},
				"spec":{"containers":[{"image":"registry.example.com/team-%02d/%s:1.%d.%d","args":[%q]},{"image":"registry.example.com/sidecar:2.1"}]},"status":{"message":%q}}`,
				name, name, app*7919, app%50, app%5, app*31, app*37, r.IntN(200), r.IntN(256), r.IntN(256), r.Uint64(), r.Uint64(), app%50, name, app%3, app%10,
				strings.Repeat("--flag=value ", 150), strings.Repeat("ready since long ago; ", 150)))
		}
	}
	for name, objects := range lists {
		w.Resource(name).Store().Replace("", objects, "1000000")
	}
	return w
}

// BenchmarkFirst is the first question, which reads every object.
func BenchmarkFirst(b *testing.B) {
	w := fleet(b)
	for b.Loop() {
		w.search.Close()
		before := followtest.Heap()
		b.StartTimer()
		w.find("checkout")
		b.StopTimer()
		b.ReportMetric(float64(followtest.Heap()-before)/float64(benchPods()), "heap-bytes/pod")
		b.StartTimer()
	}
}

// BenchmarkSeen asks what many objects answer in 5,000 namespaces, as who may see
// everything, and as who may see 1,000 of them.
func BenchmarkSeen(b *testing.B) {
	w := newWorld(b, Options{})
	var pods []*cache.Object
	var fifth []string
	for ns := range 5_000 {
		name := fmt.Sprintf("team-%04d", ns)
		if ns%5 == 0 {
			fifth = append(fifth, name)
		}
		for i := range max(1, benchPods()/5_000) {
			pods = append(pods, w.Decode("pods", fmt.Sprintf("%s/checkout-%d", name, i), fmt.Sprintf(`{"metadata":{"labels":{"app":"checkout","team":%q}}}`, name)))
		}
	}
	w.Resource("pods").Store().Replace("", pods, "1000000")
	w.find("checkout")
	for name, scope := range map[string]cache.Scope{"all": cache.WholeScope(), "a fifth": cache.NewScope(fifth, nil)} {
		sight := cache.NewSight(map[schema.GroupResource]cache.Scope{{Resource: "pods"}: scope})
		for _, question := range []string{"checkout", "team-0005"} {
			b.Run(question+" in "+name, func(b *testing.B) {
				for b.Loop() {
					if _, a := w.findAs(sight, question, func(q *Query) { q.Limit, q.Highlights = 20, false }); a.Total == 0 {
						b.Fatal("found nothing")
					}
				}
			})
		}
	}
}

// BenchmarkTyping asks after every letter of some questions, each time after a
// pod has changed.
func BenchmarkTyping(b *testing.B) {
	w := fleet(b)
	w.find("checkout")
	pods := w.Resource("pods").Store()
	var keystrokes []string
	for _, q := range []string{"checkout-web-0005", "ledger kind:pod", "team-07 api", "image:registry.example.com/team-1", "ns:team-03 label:app=mail", "helm prom", "10.1", "a b c", "0 1 2"} {
		for i := range q {
			if _, err := Parse(q[:i+1]); err == nil {
				keystrokes = append(keystrokes, q[:i+1])
			}
		}
	}
	var times []time.Duration
	slowest, at := time.Duration(0), ""
	i := 0
	for b.Loop() {
		b.StopTimer()
		pods.Apply("", cache.Modified, w.Decode("pods", fmt.Sprintf("team-07/new-%d", i%100), fmt.Sprintf(`{"metadata":{"labels":{"app":"new-%d"}}}`, i)))
		terms, err := Parse(keystrokes[i%len(keystrokes)])
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		start := time.Now()
		_, err = w.search.Find(b.Context(), Query{Terms: terms, Highlights: true, Sight: cache.WholeSight()})
		took := time.Since(start)
		if _, invalid := err.(*cache.InvalidError); err != nil && !invalid { // a kind is not typed in full
			b.Fatal(err)
		}
		if times = append(times, took); took > slowest {
			slowest, at = took, keystrokes[i%len(keystrokes)]
		}
		i++
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.Logf("slowest: %v for %q", slowest, at)
}
