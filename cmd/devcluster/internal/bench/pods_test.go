package bench

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDistribution(t *testing.T) {
	const n = 20000
	names, ips := map[string]bool{}, map[string]bool{}
	perApp, perNode, perNamespace := map[string]int{}, map[string]int{}, map[string]int{}
	perReplicaSet := map[int]int{}
	for i := range n {
		pod := newPod(i, "uid")
		names[pod.Namespace+"/"+pod.Name] = true
		ips[podIP(i)] = true
		perApp[pod.Labels["app"]]++
		perNode[pod.Spec.NodeName]++
		perNamespace[pod.Namespace]++
		perReplicaSet[id(i).app]++
		if pod.OwnerReferences[0].Name != newReplicaSet(id(i).app, n).Name || pod.Namespace != namespaceName(id(i).app) {
			t.Fatalf("pod %d and its owner do not belong together", i)
		}
	}
	if len(names) != n || len(ips) != n {
		t.Errorf("%d names and %d IPs for %d pods", len(names), len(ips), n)
	}
	check := func(what string, counts map[string]int, groups, least, most int) {
		t.Helper()
		if len(counts) != groups {
			t.Errorf("%d %s, want %d", len(counts), what, groups)
		}
		for name, count := range counts {
			if count < least || count > most {
				t.Errorf("%d pods of %s %s, want %d to %d", count, what, name, least, most)
			}
		}
	}
	check("apps", perApp, apps, 66, 67)
	check("nodes", perNode, nodes, 38, 42)
	check("namespaces", perNamespace, namespaces, 1000, 1005)
	// A ReplicaSet that wanted another number would create or delete pods.
	for _, total := range []int{n, 1, 299, 300, 301, 12345} {
		sum := 0
		for app := range apps {
			want := replicas(app, total)
			if total == n && want != perReplicaSet[app] {
				t.Errorf("ReplicaSet %d wants %d pods and has %d", app, want, perReplicaSet[app])
			}
			sum += want
		}
		if sum != total {
			t.Errorf("the ReplicaSets want %d of %d pods", sum, total)
		}
	}
}

func TestNamesAtLargeNumbers(t *testing.T) {
	const n = 300_000
	names := make(map[string]bool, n)
	for i := range n {
		names[namespaceName(id(i).app)+"/"+podName(i)] = true
	}
	if len(names) != n {
		t.Errorf("%d names for %d pods", len(names), n)
	}
}

// TestSize checks the part of a pod that this package writes. The server adds
// about 4.3 KB: managed fields, defaults, the service account's volume. The
// integration test checks the sum.
func TestSize(t *testing.T) {
	for _, i := range []int{0, 1, 299, 7777, 19999} {
		pod := newPod(i, "18923bb4-049a-4113-a78a-b25812be0c66")
		pod.Status = podStatus(i, metav1.Now())
		data, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) < 2900 || len(data) > 3300 {
			t.Errorf("pod %d has %d bytes, want 2900 to 3300", i, len(data))
		}
	}
}

func TestScatterDiffers(t *testing.T) {
	seen := map[string]bool{}
	for x := range 100_000 {
		seen[suffix(scatter(x, 5), 5)] = true
	}
	if len(seen) != 100_000 {
		t.Errorf("%d different suffixes of 100000", len(seen))
	}
}
