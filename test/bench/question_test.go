package main

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func questionPod() *corev1.Pod {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"},
		Spec: corev1.PodSpec{SchedulerName: "s", Containers: []corev1.Container{
			{Image: "x", Resources: corev1.ResourceRequirements{Requests: list("100m", "1Ki"), Limits: list("1", "512Mi")}},
			{Image: "x", Resources: corev1.ResourceRequirements{Requests: list("1", "1Ki"), Limits: list("1", "512Mi")}},
		}},
		Status: corev1.PodStatus{PodIP: "10.0.0.77", QOSClass: corev1.PodQOSBurstable},
	}
}

// The same pod twice, once as a client adds it up and once as informerd answers.
func TestQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		want answer
		body string
	}{
		"filter":     {answer{"a/b": 1}, `{"items":[{"metadata":{"namespace":"a","name":"b"},"spec":{}}]}`},
		"quantities": {answer{"count()": 1}, `{"items":[{"group":{},"values":{"count()":1}}]}`},
		"group-by": {answer{"a x count()": 1, "a x sum(spec.containers[*].resources.requests.cpu)": 1100},
			`{"items":[{"group":{"metadata.namespace":"a","spec.containers[*].image":"x"},"values":{"count()":1,"sum(spec.containers[*].resources.requests.cpu)":"1100m"}}]}`},
		"aggregate": {answer{"sum(spec.containers[*].resources.requests.memory)": 2048e3},
			`{"items":[{"group":{},"values":{"sum(spec.containers[*].resources.requests.memory)":"2Ki"}}]}`},
		"sort": {answer{"a/b": 1}, `{"items":[{"metadata":{"namespace":"a","name":"b"},"spec":{}}]}`},
		"facets": {answer{"spec.schedulerName s": 1, "status.qosClass Burstable": 1},
			`{"facets":[{"path":"spec.schedulerName","values":[{"value":"s","objects":1}]},{"path":"status.qosClass","values":[{"value":"Burstable","objects":1}]}],"items":[]}`},
	} {
		q, err := findQuestion(name)
		if err != nil {
			t.Fatal(err)
		}
		got := q.of(slices.Values([]*corev1.Pod{questionPod()}))
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: pods come to %v, want %v", name, got, c.want)
		}
		if got, err := q.read([]byte(c.body)); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %s reads %v, %v, want %v", name, c.body, got, err, c.want)
		}
	}
	if _, err := readObjects([]byte(`{"items":[{"metadata":{"name":"b"}}]}`)); err == nil {
		t.Error("part of a pod is taken for all of it")
	}
	if _, err := readFacets([]byte(`{"facets":[{"path":"a","truncated":true}]}`)); err == nil {
		t.Error("part of a facet is taken for all of it")
	}
	if _, err := findQuestion("why"); err == nil {
		t.Error("an unknown question is known")
	}
}

// TestFirstPods: of many pods those are left that come first, by the least request and then by
// namespace and name, each with its place.
func TestFirstPods(t *testing.T) {
	q, err := findQuestion("sort")
	if err != nil {
		t.Fatal(err)
	}
	const count = 300 * firstPods // more than are kept at a time
	got := q.of(func(yield func(*corev1.Pod) bool) {
		for i := range count {
			pod := questionPod()
			pod.Name = fmt.Sprintf("pod-%06d", count-i)
			pod.Spec.Containers[i%2].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprintf("%dm", 50+i%2))}
			if !yield(pod) {
				return
			}
		}
	})
	want := answer{}
	for n := range firstPods {
		want[fmt.Sprintf("a/pod-%06d", 2*(n+1))] = float64(n + 1)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v come first, want %v", got, want)
	}
}
