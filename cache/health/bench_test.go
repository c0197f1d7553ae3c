package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

const (
	podsEach = 20 // of one Deployment
)

// podBody is that of a pod of 7.6 KB.
func podBody(tb testing.TB, app int, bad bool) string {
	o := fields{}
	if err := json.Unmarshal([]byte(podJSON), &o); err != nil {
		tb.Fatal(err)
	}
	o["metadata"] = fields{
		"labels":      fields{"app": fmt.Sprint("app-", app), "pod-template-hash": fmt.Sprintf("%08x", app)},
		"annotations": fields{"checksum/config": fmt.Sprintf("%064x", app)},
		"ownerReferences": []any{fields{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": fmt.Sprint("app-", app, "-1"), "controller": true,
			"uid": followtest.UID("replicasets.apps", fmt.Sprintf("team-%02d/app-%d-1", app%50, app))}},
	}
	spec := o["spec"].(fields)
	container := spec["containers"].([]any)[0].(fields)
	container["env"] = []any{fields{"name": "OPTIONS", "value": strings.Repeat("--flag=value ", 400)}}
	if bad {
		status := o["status"].(fields)
		status["conditions"] = []any{fields{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": "2026-01-01T00:00:00Z"}}
		status["containerStatuses"] = []any{fields{"name": "web", "restartCount": 7, "state": fields{"waiting": fields{"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
			"lastState": fields{"terminated": fields{"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}}}}
	}
	raw, err := json.Marshal(o)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

const podJSON = `{"spec":{"nodeName":"n1","containers":[{"name":"web","image":"registry.example.com/web:1","resources":{"limits":{"memory":"4Gi"},"requests":{"cpu":"500m"}},
	"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"token","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],
	"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]},
	"status":{"phase":"Running","conditions":[{"type":"PodReadyToStartContainers","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"},
	{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"},
	{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"}],
	"hostIP":"10.0.0.20","podIP":"10.244.9.2","startTime":"2026-01-01T00:00:00Z","containerStatuses":[{"name":"web","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}},"lastState":{},"ready":true,
	"restartCount":0,"image":"registry.example.com/web:1","imageID":"registry.example.com/web@sha256:6430e75e357c45dbf1d66511fed30bef6286042fe2017f2ac1ec87c654d6da25","containerID":"containerd://689e77958f8696c5535816c335d24ba58a09eb465df864c73ff367bbdd9fa649","started":true}],"qosClass":"Burstable"}}`

// benchPods are few where it is only tried that the benchmarks run.
func benchPods() int {
	if testing.Short() {
		return 2000
	}
	return 20_000
}

// fleet is a cluster of benchPods pods under Deployments, of which one in so many is bad.
func fleet(tb testing.TB, oneIn int) *world {
	tb.Helper()
	w := newWorld(tb)
	lists := map[string][]*cache.Object{}
	add := func(name, id, body string) { lists[name] = append(lists[name], w.Decode(name, id, body)) }
	const numbers = `"spec":{"replicas":20,"progressDeadlineSeconds":600},"status":{"replicas":20,"readyReplicas":20,"updatedReplicas":20,"availableReplicas":20,"fullyLabeledReplicas":20,
		"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`
	for app := range benchPods() / podsEach {
		name := fmt.Sprintf("team-%02d/app-%d", app%50, app)
		add("deployments.apps", name, "{"+numbers)
		add("replicasets.apps", name+"-1", "{"+ownedBy("deployments.apps", "apps/v1", "Deployment", name)+","+numbers)
		add("configmaps", name, `{"data":{"a":"b"}}`)
		for i := range podsEach {
			n := app*podsEach + i
			add("pods", fmt.Sprintf("%s-1-%05x", name, n), podBody(tb, app, n%oneIn == oneIn-1))
		}
	}
	for name, objects := range lists {
		w.Resource(name).Store().Replace("", objects, "1000000")
		w.Resource(name).Store().Repack(tb.Context())
	}
	return w
}

// BenchmarkFirst is the first question, which reads every object.
func BenchmarkFirst(b *testing.B) {
	for _, oneIn := range []int{1 << 30, 1000, 1} {
		b.Run(fmt.Sprint("one bad in ", oneIn), func(b *testing.B) {
			w := fleet(b, oneIn)
			for b.Loop() {
				b.StopTimer()
				w.index.Close()
				before := followtest.Heap()
				b.StartTimer()
				w.ask(func(q *Query) { q.Limit = 100 })
				b.StopTimer()
				b.ReportMetric(float64(int64(followtest.Heap()-before))/float64(benchPods()), "heap-bytes/pod")
				b.StartTimer()
			}
		})
	}
}

// BenchmarkNext asks again after a pod has changed.
func BenchmarkNext(b *testing.B) {
	for _, oneIn := range []int{1 << 30, 1000, 1} {
		b.Run(fmt.Sprint("one bad in ", oneIn), func(b *testing.B) {
			w := fleet(b, oneIn)
			w.ask()
			pods := w.Resource("pods").Store()
			bodies := []string{podBody(b, 1, false), podBody(b, 1, true)}
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				pods.Apply("", cache.Modified, w.Decode("pods", "team-01/app-1-1-00014", bodies[i%2]))
				b.StartTimer()
				w.ask(func(q *Query) { q.Limit = 100 })
			}
		})
	}
}

// BenchmarkPod judges one pod of 7.6 KB.
func BenchmarkPod(b *testing.B) {
	for name, bad := range map[string]bool{"good": false, "bad": true} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			o := w.Decode("pods", "a/b", podBody(b, 1, bad))
			raw, err := o.JSON()
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			now := time.Now()
			for b.Loop() {
				Of(raw, now)
			}
		})
	}
}
