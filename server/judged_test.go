package server

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// TestHealthIsAValue: objects are sorted, grouped and counted by their health as by a field.
func TestHealthIsAValue(t *testing.T) {
	w := sick(t)
	w.pods.apply(t, cache.Modified, `{"metadata":{"name":"lost","namespace":"b","uid":"lost","resourceVersion":"9"},"status":{"phase":"Running","reason":"x\"y"}}`)
	var all list[json.RawMessage]
	status := map[string]int{}
	w.getJSON(t, "/v1/resources/pods/objects?filter="+url.QueryEscape(`health(object) == "bad"`), &all)
	status["bad"] = len(all.Items)
	w.getJSON(t, "/v1/resources/pods/objects?filter="+url.QueryEscape(`health(object) == "progressing"`), &all)
	status["progressing"] = len(all.Items)
	w.getJSON(t, "/v1/resources/pods/objects", &all)
	status["good"] = len(all.Items) - status["bad"] - status["progressing"]
	if status["bad"] == 0 || status["progressing"] == 0 {
		t.Fatalf("the world is as it should be: %v", status)
	}

	type grouped = list[struct {
		Group  map[string]*string `json:"group"`
		Values map[string]int     `json:"values"`
	}]
	for _, target := range []string{"/v1/resources/pods/objects?groupBy=health()", "/v1/query?resources=pods&groupBy=health()&sort=-count(),health()"} {
		var groups grouped
		w.getJSON(t, target, &groups)
		got := map[string]int{}
		for _, g := range groups.Items {
			got[*g.Group["health()"]] = g.Values["count()"]
		}
		for s, n := range status {
			if got[s] != n {
				t.Errorf("%s: %v, want %v", target, got, status)
			}
		}
	}
	var reasons grouped
	w.getJSON(t, "/v1/query?resources=pods,deployments.apps&groupBy=kind,healthReason()&filter="+url.QueryEscape(`health(object) == "bad"`), &reasons)
	if len(reasons.Items) != 1 || *reasons.Items[0].Group["healthReason()"] != "ImagePullBackOff" || *reasons.Items[0].Group["kind"] != "Pod" {
		t.Errorf("by reason: %+v", reasons.Items)
	}
	var counted struct {
		Metadata struct{}
		Facets   []struct {
			Path   string
			Values []struct {
				Value   string
				Objects int
			}
		}
	}
	w.getJSON(t, "/v1/resources/pods/objects?facets=health(),metadata.namespace&limit=1", &counted)
	if len(counted.Facets) != 2 || counted.Facets[0].Path != "health()" || counted.Facets[0].Values[0].Objects != slices.Max([]int{status["good"], status["bad"], status["progressing"]}) {
		t.Errorf("facets: %+v", counted)
	}
}

// TestSortedByHealth: what is worse is more, in one kind and in many, page by page.
func TestSortedByHealth(t *testing.T) {
	w := sick(t)
	rank := map[string]int{"bad": 3, "progressing": 2, "unknown": 1, "good": 0}
	healthOf := map[string]string{}
	var verdicts healthAnswer
	w.getJSON(t, "/v1/health?resources=pods&all&status=bad,progressing,unknown,good", &verdicts)
	for _, i := range verdicts.Items {
		healthOf[i.Namespace+"/"+i.Name] = i.Status
	}
	for _, target := range []string{"/v1/resources/pods/objects?sort=-health(),-metadata.name&limit=2", "/v1/query?resources=pods&sort=-health(),-metadata.name&limit=2"} {
		var ranks []int
		token := ""
		for {
			var page list[struct{ Metadata metav1.ObjectMeta }]
			w.getJSON(t, target+"&continue="+url.QueryEscape(token), &page)
			for _, o := range page.Items {
				ranks = append(ranks, rank[healthOf[o.Metadata.Namespace+"/"+o.Metadata.Name]])
			}
			if token = page.Metadata.Continue; token == "" {
				break
			}
		}
		if len(ranks) != len(healthOf) || !slices.IsSortedFunc(ranks, func(a, b int) int { return b - a }) || ranks[0] != 3 {
			t.Errorf("%s: %v of %d", target, ranks, len(healthOf))
		}
	}
	for _, target := range []string{"fields=health()", "fieldSelector=health()=bad", "sort=health(object)", "groupBy=healthy()", "sort=health(),health()", "groupBy=health().x", "agg=sum(health())"} {
		wantStatus(t, w.get(t, "/v1/resources/pods/objects?"+target), 400, metav1.StatusReasonBadRequest, "")
	}
}
