package terminal

import (
	"fmt"
	"strings"
	"testing"
)

// largeWorld is newWorld with many pods more, each of some kilobytes, of 200 Deployments.
func largeWorld(tb testing.TB, pods int) *world {
	tb.Helper()
	filler := strings.Repeat("0123456789abcdef", 200)
	var replicaSets, objects []string
	for i := range 200 {
		replicaSets = append(replicaSets, fmt.Sprintf(`{"metadata":{"name":"app-%d","namespace":"ns-%d","uid":"rs-%d","resourceVersion":"%d"},"spec":{"replicas":100},"status":{"readyReplicas":100}}`, i, i%50, i, 1000+i))
	}
	for i := range pods {
		app := i % 200
		objects = append(objects, strings.Replace(
			pod(fmt.Sprintf("ns-%d", app%50), fmt.Sprintf("app-%d-%d", app, i), fmt.Sprintf("node-%d", i%500), "Running", 2000+i, ownedBy("ReplicaSet", fmt.Sprintf("app-%d", app), fmt.Sprintf("rs-%d", app))),
			`"labels":{"app":"web"}`, fmt.Sprintf(`"labels":{"app":"web","tier":"t%d"},"annotations":{"checksum":%q}`, i%7, filler[:200]), 1))
		objects[i] = strings.Replace(objects[i], `"volumes":[`, fmt.Sprintf(`"env":%q,"volumes":[`, filler[:2000+i%1000]), 1)
	}
	w := newShop(tb, objects, replicaSets)
	w.serve(tb)
	return w
}

// BenchmarkCommands: commands as they are, but for the start of the program, over 20,000
// pods of 3 KB. The first run of search, graph and health reads every object once and is
// not in it.
func BenchmarkCommands(b *testing.B) {
	w := largeWorld(b, 20000)
	for _, line := range []string{
		"get pods -n ns-7", "get pods app-7-7 -n ns-7", "get pods -A --limit 500", "get pods -A", "get pods -A -o name", "get pods -A -o json", "get pods -A -o custom-columns=N:.metadata.name,I:.spec.containers[*].image",
		"get pods -A --filter object.spec.nodeName=='node-7'", "get pods -A -l tier=t3 -o name",
		"count pods -A --by status.phase,spec.nodeName", "count pods -A --by metadata.namespace", "search app-7-7", "tree rs/app-7 -n ns-7",
		"used-by cm/ns-7/settings --depth 1", "dangling -n ns-7", "health", "top", "top namespaces", "wait pods -n ns-7 --for object.status.phase=='Running' --timeout 0", "wait pods -A --for object.metadata.name!='' --timeout 1s",
		"watch pods -n ns-7 --timeout 1ms", "diff pods/ns-7/app-7-7 pods/ns-7/app-7-207", "explain pods -A --field-selector spec.nodeName=node-7",
	} {
		b.Run(strings.ReplaceAll(line, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				if got := w.run(b, strings.Fields(line)...); got.code > ExitNo || got.out == "" && got.err == "" {
					b.Fatalf("%s: %d %s", line, got.code, got.err)
				}
			}
		})
	}
}
