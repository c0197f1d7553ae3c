package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestKubeBadInput: what is wrong with a request is answered with the code and
// reason of the API server.
func TestKubeBadInput(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster})
	i.WaitLive(t, syncTime)
	var side sync.WaitGroup // some of them wait some seconds for a version
	defer side.Wait()
	const pods, table = "/api/v1/pods", "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, test := range slices.Concat([]struct{ method, uri, accept string }{
		{"GET", pods + "?labelSelector=a%3D%3D%3D", ""},
		{"GET", pods + "?labelSelector=a+in+b", ""},
		{"GET", pods + "?fieldSelector=foo", ""},
		{"GET", pods + "?limit=x", ""},
		{"GET", pods + "?timeoutSeconds=x&watch=1", ""},
		{"GET", pods + "?continue=xx", ""},
		{"GET", pods + "?continue=e30", ""},
		{"GET", pods + "?resourceVersion=abc", ""},
		{"GET", pods + "?resourceVersion=-1", ""},
		{"GET", pods + "?resourceVersion=abc&watch=1", ""},
		{"GET", pods + "?resourceVersion=99999999", ""},
		{"GET", pods + "?resourceVersion=99999999&limit=2", ""},
		{"GET", pods + "?resourceVersion=99999999&resourceVersionMatch=NotOlderThan", ""},
		{"GET", pods + "?resourceVersion=0&resourceVersionMatch=Exact", ""},
		{"GET", pods + "?resourceVersionMatch=Exact", ""},
		{"GET", pods + "?resourceVersion=5&resourceVersionMatch=Nearly", ""},
		{"GET", pods + "?resourceVersionMatch=NotOlderThan&watch=1&resourceVersion=5", ""},
		{"GET", pods + "?sendInitialEvents=true", ""},
		{"GET", pods + "?sendInitialEvents=true&watch=1", ""},
		{"GET", pods + "?includeObject=Half", table},
		{"GET", pods, "text/csv"},
		{"GET", pods, "application/json;as=Chart;v=v1;g=meta.k8s.io"},
		{"GET", pods, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
		{"GET", pods + "?watch=1", "application/yaml"},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0?resourceVersion=abc", ""},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0?resourceVersion=99999999", ""},
		{"GET", "/api/v1/namespaces/shop/pods/nothing", ""},
		{"GET", "/api/v1/pods/redis-0", ""},
		{"GET", "/api/v1/namespaces/shop/nodes", ""},
		{"GET", "/api/v1/nonsense", ""},
		{"GET", "/api/v2/pods", ""},
		{"GET", "/apis/nonsense.example.com/v1/things", ""},
		{"GET", "/apis/apps/v9", ""},
		{"GET", "/apis/nonsense.example.com", ""},
		{"GET", "/apis/apps", "text/csv"},
		{"GET", pods + "?labelSelector=-a", ""},
		{"GET", pods + "?labelSelector=a%3Db%20c", ""},
		{"GET", pods + "?labelSelector=a+in+%28b", ""},
		{"GET", pods + "?labelSelector=a%3E%3Db", ""},
		{"GET", pods + "?labelSelector=a%3Ex", ""},
		{"GET", pods + "?labelSelector=a/b/c%3Dd", ""},
		{"GET", pods + "?fieldSelector=%3Da", ""},
		{"GET", pods + "?fieldSelector=a%3Db%5C", ""},
		{"GET", pods + "?fieldSelector=a%3E%3Db", ""},
		{"GET", pods + "?limit=-1", ""},
		{"GET", pods + "?limit=1.5", ""},
		{"GET", pods + "?limit=99999999999999999999", ""},
		{"GET", pods + "?timeoutSeconds=x", ""},
		{"GET", pods + "?timeoutSeconds=-1&watch=1&resourceVersion=abc", ""},
		{"GET", pods + "?watch=maybe&resourceVersion=abc", ""},
		{"GET", pods + "?allowWatchBookmarks=maybe&resourceVersion=abc", ""},
		{"GET", pods + "?continue=e30&resourceVersion=5", ""},
		{"GET", pods + "?continue=e30&resourceVersion=0", ""},
		{"GET", pods + "?continue=e30&limit=2", ""},
		{"GET", pods + "?continue=e30&resourceVersionMatch=Exact", ""},
		{"GET", pods + "?continue=e30&resourceVersionMatch=NotOlderThan&resourceVersion=5", ""},
		{"GET", pods + "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIifQ", ""},
		{"GET", pods + "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjkiLCJydiI6NSwic3RhcnQiOiJhIn0", ""},
		{"GET", pods + "?resourceVersion=0x10", ""},
		{"GET", pods + "?resourceVersion=abc&resourceVersionMatch=Exact", ""},
		{"GET", pods + "?resourceVersion=abc&resourceVersionMatch=NotOlderThan", ""},
		{"GET", pods + "?resourceVersion=99999999&resourceVersionMatch=Exact", ""},
		{"GET", pods + "?resourceVersionMatch=NotOlderThan", ""},
		{"GET", pods + "?resourceVersionMatch=Nearly", ""},
		{"GET", pods + "?resourceVersionMatch=Exact&watch=1", ""},
		{"GET", pods + "?resourceVersionMatch=Exact&resourceVersion=5&watch=1", ""},
		{"GET", pods + "?sendInitialEvents=false", ""},
		{"GET", pods + "?sendInitialEvents=false&watch=1", ""},
		{"GET", pods + "?sendInitialEvents=true&watch=1&resourceVersionMatch=Exact", ""},
		{"GET", pods + "?sendInitialEvents=true&watch=1&resourceVersionMatch=Exact&resourceVersion=5", ""},
		{"GET", pods + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ""},
		{"GET", pods + "?sendInitialEvents=maybe&watch=1&resourceVersion=abc", ""},
		{"GET", pods + "?sendInitialEvents=true&watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=abc", ""},
		{"GET", pods + "?watch=1&labelSelector=a%3D%3D%3D", ""},
		{"GET", pods + "?watch=1&fieldSelector=foo", ""},
		{"GET", pods + "?watch=1&limit=x", ""},
		{"GET", pods + "?watch=1&continue=xx&resourceVersion=abc", ""},
		{"GET", pods + "?watch=1", "text/csv"},
		{"GET", pods + "?watch=1", "application/json;as=Chart;v=v1;g=meta.k8s.io"},
		{"GET", pods + "?watch=1&includeObject=Half", table},
		{"GET", pods, "application/json;as=Table;v=v3;g=meta.k8s.io"},
		{"GET", pods, "application/json;as=Table"},
		{"GET", pods, "application/json;q=0"},
		{"GET", pods, "application/xml, text/*"},
		{"GET", pods + "?pretty=maybe&limit=x", ""},
		{"GET", "/api/v1/watch/pods?resourceVersion=abc", ""},
		{"GET", "/api/v1/watch/namespaces/shop/pods/redis-0?fieldSelector=metadata.name%3Dother", ""},
		{"GET", "/api/v1/watch/nonsense", ""},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0?resourceVersion=0x10", ""},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0?includeObject=Half", table},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0", "text/csv"},
		{"GET", "/api/v1/namespaces/shop/pods/nothing", table},
		{"GET", "/api/v1/namespaces/nothing", ""},
		{"GET", "/api/v1/nodes/nothing", ""},
		{"GET", "/apis/apps/v1/namespaces/shop/deployments/nothing", ""},
		{"GET", "/apis/messaging.example.com/v1/namespaces/shop/queues/nothing", ""},
		{"GET", "/apis/messaging.example.com/v1/queues?fieldSelector=metadata.name%3D%5C", ""},
		{"GET", "/apis/apps/v1/nonsense", ""},
		{"GET", "/apis/apps/v1/namespaces/shop/nonsense/x", ""},
		{"GET", "/version/more", ""},
		{"GET", "/api", "text/csv"},
		{"GET", "/apis", "text/csv"},
		{"GET", "/openapi/v3/nonsense", ""},
		{"GET", "/openapi/v2", "text/csv"},
		{"PUT", pods, ""},
		{"PATCH", pods, ""},
		{"POST", "/api/v1/namespaces/shop/pods/redis-0", ""},
		{"BREW", pods, ""},
		{"BREW", "/api/v1/namespaces/shop/pods/redis-0", ""},
		{"TRACE", pods, ""},
		{"OPTIONS", pods, ""},
		{"GET", pods + "?timeout=invalid", ""},
		{"GET", pods + "?timeout=5", ""},
		{"GET", pods + "?timeout=-5s", ""},
		{"GET", pods + "?timeout=0s", ""},
		{"GET", pods + "?timeout=30s", ""},
		{"GET", pods + "?timeout=&limit=1", ""},
		{"GET", pods + "?timeout=10s&timeout=x", ""},
		{"GET", pods + "?timeout=x&limit=x", ""},
		{"GET", pods + "?timeout=x&watch=1&timeoutSeconds=1", ""},
		{"GET", "/api/v1/watch/pods?timeout=x&timeoutSeconds=1", ""},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0?timeout=x", ""},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0?timeoutSeconds=x", ""},
		{"GET", "/api/v1/namespaces/shop/pods/redis-0?watch=1&timeout=x", ""},
		{"GET", "/api/v1/nonsense?timeout=x", ""},
		{"GET", "/apis/nonsense.example.com/v1/things?timeout=x", ""},
		{"GET", "/api?timeout=x", ""},
		{"GET", "/apis?timeout=x", ""},
		{"GET", "/apis/apps/v1?timeout=x", ""},
		{"GET", "/version?timeout=x", ""},
		{"GET", "/openapi/v3?timeout=x", ""},
		{"GET", pods + "?limit=2&continue=e30&resourceVersion=00", ""},
		{"GET", "/api/v1/events?fieldSelector=regarding.name%3Da", ""},
		{"GET", "/api/v1/events?fieldSelector=reportingController%3Da", ""},
	}, oddVersions(pods)) {
		side.Go(func() {
			what := fmt.Sprintf("%s %s (Accept: %s)", test.method, test.uri, test.accept)
			got, err := statusIn(i.Do(test.method, test.uri, "Accept", test.accept))
			if err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			want, err := statusIn(c.Raw(t.Context(), test.method, test.uri, test.accept))
			if err != nil {
				t.Errorf("%s: the API server: %v", what, err)
				return
			}
			if got.Code != want.Code || want.Kind != "" && got.Reason != want.Reason {
				t.Errorf("%s = %d %q %q, the API server says %d %q %q", what, got.Code, got.Reason, got.Message, want.Code, want.Reason, want.Message)
			}
		})
	}
}

// oddVersions are reads at resourceVersions that are spelled in ways nobody does.
func oddVersions(all string) (inputs []struct{ method, uri, accept string }) {
	for _, version := range []string{"0", "00", "007", "-1", "-0", "+5", "1e3", " 5", "5 ", "1_0", "18446744073709551615", "18446744073709551616"} {
		version = "resourceVersion=" + url.QueryEscape(version)
		for _, uri := range []string{
			"/api/v1/namespaces/shop/pods/redis-0?",
			all + "?",
			all + "?resourceVersionMatch=NotOlderThan&",
			all + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&",
			all + "?watch=1&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&",
			all + "?watch=1&timeoutSeconds=1&",
		} {
			inputs = append(inputs, struct{ method, uri, accept string }{"GET", uri + version, ""})
		}
	}
	for _, more := range []string{"limit=1&resourceVersion=00", "resourceVersionMatch=Exact&resourceVersion=00", "resourceVersionMatch=Exact&resourceVersion=%2B5"} {
		inputs = append(inputs, struct{ method, uri, accept string }{"GET", all + "?" + more, ""})
	}
	return inputs
}

// statusIn is the Status of an answer. The API server does not send one for all
// paths it does not know: it has no kind then.
func statusIn(a *harness.Answer, err error) (metav1.Status, error) {
	status := metav1.Status{}
	if err != nil {
		return status, err
	}
	if err := yaml.Unmarshal(a.Body, &status); err != nil || status.Kind != "Status" { // JSON is YAML
		return metav1.Status{Code: int32(a.Status), Message: fmt.Sprintf("%.200s", a.Body)}, nil
	}
	if status.Code != int32(a.Status) {
		return status, fmt.Errorf("HTTP code %d, but in the body %d", a.Status, status.Code)
	}
	return status, nil
}
