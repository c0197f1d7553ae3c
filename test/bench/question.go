package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/test/standin"
)

// answer is what a question comes to: numbers by what they are of. Both sides
// give it in this form, so that it can be compared.
type answer map[string]float64

// question is one that reads all pods: what informerd is asked, and what a
// program does that has nothing but a list.
type question struct {
	name  string            // of an order, one word
	about string            // the value that it looks for, if it is one
	query map[string]string // parameters of informerd's list of pods
	// read takes the answer out of informerd's.
	read func(body []byte) (answer, error)
	// add adds what one pod contributes.
	add func(a answer, pod *corev1.Pod)
	// end makes the answer of what was added; nil where it is that.
	end func(a answer) answer
	// picks says whether pod i of a stand-in is in the answer, where that is a list of pods; nil
	// where it is not.
	picks func(pods *standin.Pods, i int) bool
	// each says that pods of a set add different things.
	each bool
}

// of is what some pods come to.
func (q *question) of(pods iter.Seq[*corev1.Pod]) answer {
	a := answer{}
	for pod := range pods {
		q.add(a, pod)
	}
	if q.end != nil {
		return q.end(a)
	}
	return a
}

const gibibyte = 1 << 30

// questions no index helps with.
var questions = []question{{
	name:  "filter",
	query: map[string]string{"filter": `object.status.podIP.endsWith(".77")`},
	read:  readObjects,
	add: func(a answer, pod *corev1.Pod) {
		if strings.HasSuffix(pod.Status.PodIP, ".77") {
			a[pod.Namespace+"/"+pod.Name] = 1
		}
	},
	picks: func(pods *standin.Pods, i int) bool { return strings.HasSuffix(pods.IP(i), ".77") },
}, {
	name: "quantities",
	query: map[string]string{
		"filter": `object.spec.containers.map(c, quantity(c.?resources.?limits.?memory.orValue("0")).asApproximateFloat()).sum() > quantity("0.7Gi").asApproximateFloat()`,
		"agg":    "count()",
	},
	read: readGroups,
	add: func(a answer, pod *corev1.Pod) {
		if sumOf(pod, corev1.ResourceMemory, limits).AsApproximateFloat64() > 0.7*gibibyte {
			a["count()"]++
		}
	},
}, {
	name: "group-by",
	query: map[string]string{
		"groupBy": "metadata.namespace,spec.containers[*].image",
		"agg":     "count(),sum(spec.containers[*].resources.requests.cpu)",
	},
	read: readGroups,
	add: func(a answer, pod *corev1.Pod) {
		cpu := sumOf(pod, corev1.ResourceCPU, requests)
		for _, image := range images(pod) { // a pod is once in a group
			group := pod.Namespace + " " + image + " "
			a[group+"count()"]++
			a[group+"sum(spec.containers[*].resources.requests.cpu)"] += float64(cpu.MilliValue())
		}
	},
}, {
	name:  "aggregate",
	query: map[string]string{"agg": "sum(spec.containers[*].resources.requests.memory)"},
	read:  readGroups,
	add: func(a answer, pod *corev1.Pod) {
		a["sum(spec.containers[*].resources.requests.memory)"] += float64(sumOf(pod, corev1.ResourceMemory, requests).MilliValue())
	},
}, {
	name:  "sort",
	query: map[string]string{"sort": "spec.containers[*].resources.requests.cpu", "limit": strconv.Itoa(firstPods)},
	read:  readOrder,
	add: func(a answer, pod *corev1.Pod) {
		a[sortKey(leastCPU(pod), pod)] = 1
		if len(a) > 100*firstPods {
			keepFirst(a)
		}
	},
	end: func(a answer) answer {
		places := answer{}
		for i, key := range keepFirst(a) {
			_, name, _ := strings.Cut(key, "\x00")
			places[strings.ReplaceAll(name, "\x00", "/")] = float64(i + 1)
		}
		return places
	},
	each: true,
}, {
	name:  "facets",
	query: map[string]string{"facets": "spec.schedulerName,status.qosClass", "limit": "1"},
	read:  readFacets,
	add: func(a answer, pod *corev1.Pod) {
		a["spec.schedulerName "+pod.Spec.SchedulerName]++
		a["status.qosClass "+string(pod.Status.QOSClass)]++
	},
}}

// firstPods is how many pods a list has that is in an order.
const firstPods = 50

// sortKey orders pods by a number, and by namespace and name where that is the same.
func sortKey(number int64, pod *corev1.Pod) string {
	return fmt.Sprintf("%020d\x00%s\x00%s", number, pod.Namespace, pod.Name)
}

// leastCPU is the least that a container of a pod requests, in thousandths; one that requests
// none does not count, and a pod of such comes last.
func leastCPU(pod *corev1.Pod) int64 {
	least := int64(math.MaxInt64)
	for _, c := range pod.Spec.Containers {
		if cpu, ok := c.Resources.Requests[corev1.ResourceCPU]; ok {
			least = min(least, cpu.MilliValue())
		}
	}
	return least
}

// keepFirst leaves what comes first, and returns it in order.
func keepFirst(a answer) []string {
	keys := slices.Sorted(maps.Keys(a))
	first := keys[:min(firstPods, len(keys))]
	for _, key := range keys[len(first):] {
		delete(a, key)
	}
	return first
}

// images are those of a pod, each once.
func images(pod *corev1.Pod) (images []string) {
	for _, c := range pod.Spec.Containers {
		if !slices.Contains(images, c.Image) {
			images = append(images, c.Image)
		}
	}
	return images
}

func findQuestion(name string) (question, error) {
	for _, q := range questions {
		if q.name == name {
			return q, nil
		}
	}
	return question{}, fmt.Errorf("there is no question %q", name)
}

func requests(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }
func limits(c *corev1.Container) corev1.ResourceList   { return c.Resources.Limits }

// sumOf adds up one resource over the containers of a pod.
func sumOf(pod *corev1.Pod, name corev1.ResourceName, of func(*corev1.Container) corev1.ResourceList) *resource.Quantity {
	sum := &resource.Quantity{}
	for i := range pod.Spec.Containers {
		sum.Add(of(&pod.Spec.Containers[i])[name])
	}
	return sum
}

// readObjects counts the objects of a list by name.
func readObjects(body []byte) (answer, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
			Spec     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	a := answer{}
	for _, item := range list.Items {
		if len(item.Spec) == 0 {
			return nil, fmt.Errorf("pod %s is only there in parts", item.Metadata.Name)
		}
		a[item.Metadata.Namespace+"/"+item.Metadata.Name]++
	}
	return a, nil
}

// readOrder reads the place of each object of a list, from 1 on.
func readOrder(body []byte) (answer, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	a := answer{}
	for i, item := range list.Items {
		a[item.Metadata.Namespace+"/"+item.Metadata.Name] = float64(i + 1)
	}
	return a, nil
}

// readGroups reads the aggregates of all groups: counts as they are, quantities
// in thousandths.
func readGroups(body []byte) (answer, error) {
	var list struct {
		Items []struct {
			Group  map[string]string
			Values map[string]any
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	a := answer{}
	for _, item := range list.Items {
		group := ""
		for _, path := range []string{"metadata.namespace", "spec.containers[*].image"} {
			if value, ok := item.Group[path]; ok {
				group += value + " "
			}
		}
		for column, value := range item.Values {
			switch value := value.(type) {
			case float64:
				a[group+column] = value
			case string:
				q, err := resource.ParseQuantity(value)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", column, group, err)
				}
				a[group+column] = float64(q.MilliValue())
			}
		}
	}
	return a, nil
}

// readFacets reads how many objects have each value.
func readFacets(body []byte) (answer, error) {
	var list struct {
		Facets []struct {
			Path      string
			Truncated bool
			Values    []struct {
				Value   string
				Objects float64
			}
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	a := answer{}
	for _, facet := range list.Facets {
		if facet.Truncated {
			return nil, fmt.Errorf("the facet of %s has more values than it shows", facet.Path)
		}
		for _, v := range facet.Values {
			a[facet.Path+" "+v.Value] = v.Objects
		}
	}
	return a, nil
}
