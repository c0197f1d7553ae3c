package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// coreEvent has a source, a reporting component, or both.
func coreEvent(name, source, reporting string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"a","uid":%q,"resourceVersion":"5"},"source":{"component":%q},"reportingComponent":%q}`,
		name, name, source, reporting)
}

// TestEventSource: who reported an event is told by one of two fields.
func TestEventSource(t *testing.T) {
	w := newWorld(t)
	events := newResource(t, "", "v1", "events", "Event", true)
	w.resources = append(w.resources, events)
	events.replace(t, "100",
		coreEvent("both", "x", "y"), coreEvent("neither", "", ""), coreEvent("reporting", "", "x"), coreEvent("source", "x", ""),
		`{"metadata":{"name":"void","namespace":"a","uid":"void","resourceVersion":"5"},"reportingComponent":"x","source":{}}`)
	for selector, want := range map[string]string{
		"source=x":                           "both reporting source void",
		"source==x":                          "both reporting source void",
		"source=y":                           "",
		"source!=x":                          "neither",
		"source=":                            "neither",
		"source!=":                           "both reporting source void",
		"source!=x,source=":                  "neither",
		"source=x,reportingComponent=x":      "reporting void",
		"source=x,metadata.name=reporting":   "reporting",
		"source=x,metadata.name!=reporting,": "both source void",
		"reportingComponent=y":               "both",
	} {
		var list podList
		if w.into(&list, "/api/v1/namespaces/a/events?fieldSelector="+url.QueryEscape(selector)); list.names() != want {
			t.Errorf("%s selects %q, want %q", selector, list.names(), want)
		}
	}
	var page podList
	w.into(&page, "/api/v1/events?limit=2&fieldSelector=source%3Dx")
	w.wantStatus(w.get("/api/v1/events?limit=2&fieldSelector=source%3Dy&continue="+page.Metadata.Continue), 400, metav1.StatusReasonBadRequest, "continue")
	w.into(&page, "/api/v1/events?limit=2&fieldSelector=source%3Dx&continue="+page.Metadata.Continue)
	if page.names() != "source void" {
		t.Errorf("the second page is %q", page.names())
	}

	s := w.watch("/api/v1/events?watch=1&resourceVersion=100&fieldSelector=source%3Dx")
	events.apply(t, "MODIFIED", `{"metadata":{"name":"void","namespace":"a","uid":"void","resourceVersion":"101"},"reportingComponent":"z"}`)
	events.apply(t, "MODIFIED", `{"metadata":{"name":"neither","namespace":"a","uid":"neither","resourceVersion":"102"},"reportingComponent":"x"}`)
	s.want("DELETED void@101", "ADDED neither@102")
}

// TestHiddenFields: what a rule takes out cannot be selected by.
func TestHiddenFields(t *testing.T) {
	w := newWorld(t)
	rules := newResource(t, "", "v1", "events", "Event", true)
	rules.spec.Drop, rules.spec.Redact = []string{"source"}, []string{"data"}
	var err error
	if rules.store, err = cache.NewStore(rules.spec, cache.StoreOptions{}); err != nil {
		t.Fatal(err)
	}
	rules.replace(t, "100", coreEvent("both", "x", "y"))
	w.resources = append(w.resources, rules)
	for selector, why := range map[string]string{
		"source.component=x": "the rule of events drops source",
		"source=x":           "source.component cannot be selected by: the rule of events drops source",
		"data.a!=b":          "the rule of events redacts data",
	} {
		for _, path := range []string{"/api/v1/events?", "/api/v1/namespaces/a/events?watch=1&"} {
			w.wantStatus(w.get(path+"fieldSelector="+url.QueryEscape(selector)), 400, metav1.StatusReasonBadRequest, why)
		}
	}
	var list podList
	if w.into(&list, "/api/v1/events?fieldSelector=reportingComponent%3Dy"); list.names() != "both" {
		t.Errorf("a field that is there selects %q", list.names())
	}
}

// TestFieldLabels: labels that no path of the JSON stands for.
func TestFieldLabels(t *testing.T) {
	w := newWorld(t)
	w.pods.replace(t, "100", `{"metadata":{"name":"one","namespace":"a","uid":"u","resourceVersion":"5"},"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}`)
	newEvents := newResource(t, "events.k8s.io", "v1", "events", "Event", true)
	w.resources = append(w.resources, newResource(t, "", "v1", "events", "Event", true), newEvents)
	newEvents.replace(t, "100", `{"metadata":{"name":"e","namespace":"a","uid":"u","resourceVersion":"5"},"regarding":{"name":"one"},"reportingController":"x"}`)
	for target, want := range map[string]string{
		"/api/v1/pods?fieldSelector=status.podIPs%3D10.0.0.1":                    "",
		"/api/v1/pods?fieldSelector=status.podIPs%3D":                            "one",
		"/api/v1/pods?fieldSelector=status.podIPs!%3D10.0.0.1":                   "one",
		"/api/v1/pods?fieldSelector=status.podIP%3D10.0.0.1":                     "one",
		"/api/v1/pods?fieldSelector=spec.hostNetwork%3D":                         "",
		"/api/v1/pods?fieldSelector=spec.hostNetwork!%3D":                        "one",
		"/api/v1/pods?fieldSelector=spec.hostNetwork%3Dfalse":                    "one",
		"/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Done":       "e",
		"/apis/events.k8s.io/v1/events?fieldSelector=reportingController!%3Dabc": "e",
	} {
		var list podList
		if w.into(&list, target); list.names() != want {
			t.Errorf("GET %s is %q, want %q", target, list.names(), want)
		}
	}
	for _, target := range []string{
		"/api/v1/events?fieldSelector=regarding.name%3Done",
		"/api/v1/events?fieldSelector=reportingController%3Dx",
		"/apis/events.k8s.io/v1/events?fieldSelector=involvedObject.name%3Done",
		"/apis/events.k8s.io/v1/events?fieldSelector=source%3Dx",
	} {
		w.wantStatus(w.get(target), 400, metav1.StatusReasonBadRequest, "field label not supported")
	}
}

// TestSelectorIsExecutedAsJudged: authorizers are told the requirements that the API
// server's grammar finds. Quotes and brackets, which mean nothing there, must not make
// fewer of them here: the first of these selectors was judged with spec.nodeName=n9 and
// selected everything.
func TestSelectorIsExecutedAsJudged(t *testing.T) {
	w := newWorld(t)
	for _, selector := range []string{
		"a['=x,spec.nodeName=n9,z']!=q", `a["=x,spec.nodeName=n9,z"]!=q`, `a\,['!=x,metadata.name=none,z']!=q`, "a[!=x,spec.nodeName=n9",
		"['spec'].nodeName=n1", ".spec.nodeName=n1", "{spec.nodeName}=n1", "$.spec.nodeName=n1", " spec.nodeName=n1", "spec.nodeName =n1",
		`spec\.nodeName=n1`, "spec.a in (b)=c", "metadata.labels['app']=web", "=x", "!=x",
	} {
		for _, path := range []string{"/api/v1/pods?", "/api/v1/pods?watch=1&timeoutSeconds=1&"} {
			w.wantStatus(w.get(path+"fieldSelector="+url.QueryEscape(selector)), 400, metav1.StatusReasonBadRequest, "field label not supported: ")
		}
	}
	for selector, want := range map[string]string{
		"spec.nodeName=n1":                      "one three",
		"spec.nodeName!=n1,metadata.name!=x":    "two",
		"spec.containers[*].image=web:1":        "one two three",
		"spec.nodeName=n1 ":                     "",
		"spec.nodeName=(n1)":                    "",
		`spec.nodeName=n1\,metadata.name\=one`:  "",
		`spec.nodeName!=n1\,metadata.name\=one`: "one two three",
		"metadata.name=one,metadata.name=two":   "",
		"metadata.annotations['x/y']!=1":        "one two three",
	} {
		rec := w.get("/api/v1/pods?fieldSelector=" + url.QueryEscape(selector))
		var list podList
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != 200 || list.names() != want {
			t.Errorf("%s is %d and selects %q, want %q", selector, rec.Code, list.names(), want)
		}
	}
}
