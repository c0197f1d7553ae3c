package faults

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/cert"
)

// Aggregated is a small API behind the API server's aggregator: one resource, one
// object that never changes.
type Aggregated struct {
	server *http.Server

	mu   sync.Mutex // guards all below
	mode string     // "", "hang" or "refuse"
	wake chan struct{}
}

// AggregatedGroup is that of the resource which a server of its own serves.
const AggregatedGroup = "aggregated.soak.example.com"

// StartAggregated serves, and registers itself.
func StartAggregated(ctx context.Context, client dynamic.Interface) (*Aggregated, error) {
	pem, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(pem, key)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &Aggregated{wake: make(chan struct{})}
	a.server = &http.Server{Handler: a, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go func() { _ = a.server.ServeTLS(l, "", "") }()
	return a, a.register(ctx, client, l.Addr().(*net.TCPAddr).Port)
}

func (a *Aggregated) register(ctx context.Context, client dynamic.Interface, port int) error {
	for _, o := range []struct {
		gvr       schema.GroupVersionResource
		namespace string
		object    map[string]any
	}{
		{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "default", map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "soak-aggregated"},
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost", "ports": []any{map[string]any{"port": int64(port)}}},
		}},
		{schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, "", map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + AggregatedGroup},
			"spec": map[string]any{
				"group": AggregatedGroup, "version": "v1", "insecureSkipTLSVerify": true, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
				"service": map[string]any{"namespace": "default", "name": "soak-aggregated", "port": int64(port)},
			},
		}},
	} {
		var c dynamic.ResourceInterface = client.Resource(o.gvr)
		if o.namespace != "" {
			c = client.Resource(o.gvr).Namespace(o.namespace)
		}
		_, err := c.Create(ctx, &unstructured.Unstructured{Object: o.object}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("register the aggregated API: %w", err)
		}
	}
	return nil
}

// Set makes it hang, refuse, or serve again.
func (a *Aggregated) Set(mode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = mode
	close(a.wake)
	a.wake = make(chan struct{})
}

// Close ends it.
func (a *Aggregated) Close() { _ = a.server.Close() }

func (a *Aggregated) now() (string, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mode, a.wake
}

func (a *Aggregated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mode, wake := a.now()
	switch mode {
	case "hang":
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		}
	case "refuse":
		http.Error(w, "planted", http.StatusServiceUnavailable)
		return
	}
	a.serve(w, r)
}

func (a *Aggregated) serve(w http.ResponseWriter, r *http.Request) {
	base := "/apis/" + AggregatedGroup
	gauge := map[string]any{
		"apiVersion": AggregatedGroup + "/v1", "kind": "Gauge",
		"metadata": map[string]any{"name": "only", "uid": "00000000-0000-0000-0000-000000000001", "resourceVersion": "1"},
	}
	group := map[string]any{
		"kind": "APIGroup", "apiVersion": "v1", "name": AggregatedGroup,
		"versions":         []any{map[string]any{"groupVersion": AggregatedGroup + "/v1", "version": "v1"}},
		"preferredVersion": map[string]any{"groupVersion": AggregatedGroup + "/v1", "version": "v1"},
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case path == "/apis":
		reply(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{group}})
	case path == base:
		reply(w, group)
	case path == base+"/v1":
		reply(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": AggregatedGroup + "/v1", "resources": []any{
			map[string]any{"name": "gauges", "singularName": "gauge", "kind": "Gauge", "namespaced": false, "verbs": []any{"get", "list", "watch"}},
		}})
	case path == base+"/v1/gauges" && r.URL.Query().Get("watch") != "":
		a.watch(w, r)
	case path == base+"/v1/gauges":
		reply(w, map[string]any{"kind": "GaugeList", "apiVersion": AggregatedGroup + "/v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{gauge}})
	case path == base+"/v1/gauges/only":
		reply(w, gauge)
	default:
		http.NotFound(w, r)
	}
}

// watch gives a bookmark now and then; nothing changes.
func (a *Aggregated) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for {
		bookmark := map[string]any{"apiVersion": AggregatedGroup + "/v1", "kind": "Gauge", "metadata": map[string]any{"resourceVersion": "1"}}
		if json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": bookmark}) != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Second):
		}
		if mode, _ := a.now(); mode != "" {
			return
		}
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
