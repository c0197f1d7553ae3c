package main

import (
	"encoding/json"
	"fmt"
	"slices"
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
	// picks says whether pod i of a stand-in is in the answer, where that is a list of pods; nil
	// where it is not.
	picks func(pods *standin.Pods, i int) bool
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
		var images []string
		for _, c := range pod.Spec.Containers {
			if slices.Contains(images, c.Image) {
				continue // a pod is once in a group
			}
			images = append(images, c.Image)
			group := pod.Namespace + " " + c.Image + " "
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
}}

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
