package health

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wellPod is a pod that nothing is wrong with, as an API server writes it.
const wellPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"fieldsV1":{"f:status":{"f:phase":{}}}}]},` +
	`"spec":{"nodeName":"n1"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],` +
	`"containerStatuses":[{"name":"web","ready":true,"restartCount":0,"state":{"running":{}},"lastState":{}}]}}`

// observedPod is one that says which generation its status is about, as since Kubernetes 1.34.
var observedPod = strings.NewReplacer(`"creationTimestamp"`, `"generation":3,"creationTimestamp"`, `"phase":"Running"`, `"observedGeneration":3,"phase":"Running"`).Replace(wellPod)

// checkSound compares what is known at a glance with what the rule says.
func checkSound(t *testing.T, pod string) (ok bool) {
	t.Helper()
	if SoundOf(schema.GroupKind{Kind: "Pod"})([]byte(pod)) {
		for _, at := range []time.Time{{}, noon.AddDate(-20, 0, 0), noon, noon.AddDate(20, 0, 0)} {
			if h := JudgeOf(schema.GroupKind{Kind: "Pod"}).Judge([]byte(pod), at); h.Status != Good || !h.Until.IsZero() {
				t.Errorf("%s\nis sound at all times, and %+v at %v", pod, h, at)
			}
		}
	}
	var o object
	o.empty(noon)
	got, ok := soundPod([]byte(pod), &o)
	if !ok {
		return false
	}
	if want := JudgeOf(schema.GroupKind{Kind: "Pod"}).Judge([]byte(pod), noon); got != want {
		t.Errorf("%s\nis %+v at a glance, want %+v", pod, got, want)
	}
	return true
}

// TestSound: what is plainly well is judged as the rule does, and nothing else passes for it.
func TestSound(t *testing.T) {
	if !checkSound(t, wellPod) || !checkSound(t, observedPod) {
		t.Error("the pod is not plainly well")
	}
	status := wellPod[strings.LastIndex(wellPod, `{"phase"`) : len(wellPod)-1]
	for what, pod := range map[string]string{
		"about an older generation": strings.Replace(observedPod, `"generation":3`, `"generation":4`, 1),
		"about none of its own":     strings.Replace(observedPod, `"generation":3,`, ``, 1),
		"being deleted":             strings.Replace(wellPod, `"name":"a"`, `"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"`, 1),
		"about an older one":        strings.Replace(wellPod, `"phase":`, `"observedGeneration":1,"phase":`, 1),
		"not ready":                 strings.Replace(wellPod, `"True"`, `"False"`, 1),
		"waiting":                   strings.Replace(wellPod, `{"running":{}}`, `{"waiting":{"reason":"CrashLoopBackOff"}}`, 1),
		"flapping":                  strings.Replace(wellPod, `"lastState":{}`, `"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-01-02T11:59:00Z"}},"restartCount":5`, 1),
		"succeeded":                 strings.Replace(wellPod, `"Running"`, `"Succeeded"`, 1),
		"a status of a member":      `{"kind":"Pod","metadata":{},"spec":{"a":1,"status":` + status + `}}`,
		"a status in an array":      `{"kind":"Pod","metadata":{},"spec":[{"a":1,"status":` + status + `}]}`,
		"a status in a text":        `{"kind":"Pod","metadata":{"a":",\"status\":{"},"spec":{}}`,
		"more after it":             wellPod[:len(wellPod)-1] + `,"more":{}}`,
		"a space after it":          wellPod[:len(wellPod)-1] + ` }`,
		"two of them":               wellPod[:len(wellPod)-1] + `,"status":{"phase":"Failed"}}`,
		"none":                      `{"kind":"Pod","metadata":{},"spec":{}}`,
	} {
		if checkSound(t, pod) {
			t.Errorf("%s: passes for plainly well", what)
		}
	}
}

// TestSoundAtAllTimes: what is well now and may have been otherwise is not sound at all times,
// what is well is, and nothing is said of other kinds.
func TestSoundAtAllTimes(t *testing.T) {
	pods := SoundOf(schema.GroupKind{Kind: "Pod"})
	if !pods([]byte(wellPod)) || !pods([]byte(observedPod)) {
		t.Error("the pod is not sound")
	}
	flapped := strings.Replace(wellPod, `"restartCount":0,"state":{"running":{}},"lastState":{}`, `"restartCount":5,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"2025-01-02T11:59:00Z"}}`, 1)
	if !checkSound(t, flapped) || pods([]byte(flapped)) {
		t.Error("a pod that has failed a year ago is not well now, or sound at all times")
	}
	for _, kind := range []schema.GroupKind{{Kind: "Node"}, {Group: "metrics.k8s.io", Kind: "Pod"}} {
		if SoundOf(kind) != nil {
			t.Errorf("%v is judged at a glance", kind)
		}
	}
}

// TestSoundEqualsRule compares random pods.
func TestSoundEqualsRule(t *testing.T) {
	r := random{rand.New(rand.NewPCG(5, 6)), noon}
	well := 0
	for range 100_000 {
		o := r.object()
		if o["kind"] != "Pod" {
			continue
		}
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if checkSound(t, string(raw)) {
			well++
		}
	}
	if well < 200 {
		t.Errorf("%d pods are plainly well", well)
	}
}

// FuzzSound: whatever the document, what passes for plainly well is what the rule calls good.
func FuzzSound(f *testing.F) {
	f.Add(wellPod)
	f.Add(observedPod)
	f.Add(`{"a":{"b":1,"status":{"phase":"Running"}}}`)
	f.Add(`{"a":"x,","status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	f.Fuzz(func(t *testing.T, pod string) {
		if json.Valid([]byte(pod)) {
			checkSound(t, pod)
		}
	})
}
