package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newFakeAPI is an API server that tells what it serves, CRDs and APIServices
// aside, and refuses the rest. A
// line is "group kind plural version[,version...]"; the core group is "-".
func newFakeAPI(t *testing.T, lines ...string) *httptest.Server {
	t.Helper()
	var core, groups apidiscovery.APIGroupDiscoveryList
	for _, line := range lines {
		f := strings.Fields(line)
		group := apidiscovery.APIGroupDiscovery{}
		for _, v := range strings.Split(f[3], ",") {
			group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{
				Version: v, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
				Resources: []apidiscovery.APIResourceDiscovery{{
					Resource: f[2], SingularResource: strings.ToLower(f[1]), Scope: apidiscovery.ScopeNamespace,
					ResponseKind: &metav1.GroupVersionKind{Kind: f[1]},
					Verbs:        []string{"get", "list", "watch"},
				}},
			})
		}
		if f[0] == "-" {
			core.Items = append(core.Items, group)
			continue
		}
		group.Name = f[0]
		groups.Items = append(groups.Items, group)
	}
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			answer(w, "application/json", map[string]string{"gitVersion": "v1.36.3"})
		case "/api":
			answer(w, aggregated, list(core))
		case "/apis":
			answer(w, aggregated, list(groups))
		case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apiregistration.k8s.io/v1/apiservices":
			_, _ = io.WriteString(w, noneYet)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		default:
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return server
}

// noneYet is a watch that starts with no object.
const noneYet = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func list(l apidiscovery.APIGroupDiscoveryList) apidiscovery.APIGroupDiscoveryList {
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "apidiscovery.k8s.io", Version: "v2", Kind: "APIGroupDiscoveryList"})
	return l
}

func answer(w http.ResponseWriter, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(body)
}

// kubeconfigFor writes a kubeconfig whose current context, ctx, is for server.
func kubeconfigFor(t *testing.T, path, server string) string {
	t.Helper()
	return writeFile(t, path, `apiVersion: v1
kind: Config
current-context: ctx
clusters: [{name: c, cluster: {server: "`+server+`"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: ctx, context: {cluster: c, user: u, namespace: shop}}
- {name: other, context: {cluster: c, user: u}}
`)
}
