package terminal

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// apiServer answers for one Service, and forwards to a port of this machine.
type apiServer struct {
	*httptest.Server
	target   string // where pods are forwarded to
	slices   string // the answer about endpoint slices
	mu       sync.Mutex
	asked    []string
	handlers sync.WaitGroup
}

func newAPIServer(t *testing.T, target string) *apiServer {
	t.Helper()
	a := &apiServer{target: target}
	_, port, _ := net.SplitHostPort(target)
	a.slices = `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[{"ports":[{"name":"https","port":` + port + `}],"endpoints":[
		{"conditions":{"ready":false},"targetRef":{"kind":"Pod","namespace":"informerd","name":"informerd-0"}},
		{"conditions":{"ready":true},"targetRef":{"kind":"Pod","namespace":"elsewhere","name":"trap"}},
		{"conditions":{"ready":true},"targetRef":{"kind":"Pod","namespace":"informerd","name":"informerd-1"}}]}]}`
	a.Server = httptest.NewTLSServer(http.HandlerFunc(a.serve)) // to no other are credentials shown
	t.Cleanup(func() {
		a.Server.Close()
		a.handlers.Wait()
	})
	return a
}

func (a *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	slices := a.slices
	a.mu.Unlock()
	switch {
	case strings.HasPrefix(slices, "https://"):
		http.Redirect(w, r, slices, http.StatusFound)
	case r.URL.Path == "/apis/discovery.k8s.io/v1/namespaces/informerd/endpointslices" && slices != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, slices)
	case r.URL.Path == "/api/v1/namespaces/informerd/pods/informerd-1/portforward" && r.Method == http.MethodPost:
		a.forward(w, r)
	case strings.HasSuffix(r.URL.Path, "/portforward"):
		http.Error(w, "no WebSockets here", http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"endpointslices is forbidden","code":403}`)
	}
}

// forward is what a kubelet does.
func (a *apiServer) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	faults := map[string]httpstream.Stream{}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			faults[id] = s
			return nil
		}
		fault := faults[id]
		a.handlers.Go(func() {
			<-replied
			a.join(s, fault)
		})
		return nil
	})
	if conn != nil {
		a.handlers.Go(func() { <-conn.CloseChan() })
	}
}

// join carries one connection.
func (a *apiServer) join(data, fault httpstream.Stream) {
	defer func() { _ = data.Reset() }()
	to, err := net.Dial("tcp", a.target)
	if err != nil {
		fmt.Fprintf(fault, "connect: %v", err)
		_ = fault.Close()
		time.Sleep(10 * time.Millisecond)
		return
	}
	_ = fault.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, data)
		_ = to.Close()
	}()
	_, _ = io.Copy(data, to)
	_ = to.Close()
	<-done
}

// TestServiceOfContext: informerd is found in the cluster of a context, and asked with what
// the kubeconfig has, through the API server and by nobody else.
func TestServiceOfContext(t *testing.T) {
	w := newWorld(t)
	target, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	shown := map[string]bool{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	informerd := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		shown[r.Header.Get("Authorization")] = true
		mu.Unlock()
		r.Host = target.Host
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		informerd.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	api := newAPIServer(t, informerd.Listener.Addr().String())
	file := writeKubeconfig(t, api.URL, "shop")
	got := runCommand(t.Context(), "get", "pods", "-o", "name", "--kubeconfig", file)
	if got.code != 0 || got.out != "pod/web-1-a\npod/web-1-b\n" {
		t.Errorf("%+v", got)
	}
	if !shown["Bearer secret"] || len(shown) != 1 {
		t.Errorf("shown to informerd: %v", shown)
	}
	for _, request := range api.asked {
		if !strings.Contains(request, "/namespaces/informerd/") {
			t.Errorf("looked elsewhere: %s", request)
		}
	}
	if got := runCommand(t.Context(), "get", "pods", "-o", "name", "--kubeconfig", file, "--token", "mine"); got.code != 0 || !shown["Bearer mine"] {
		t.Errorf("%+v, shown %v", got, shown)
	}
}

// TestNoServiceInContext: where it was looked for, and what can be done.
func TestNoServiceInContext(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	api := newAPIServer(t, dead.Listener.Addr().String())
	file := writeKubeconfig(t, api.URL, "shop")
	ask := func(args ...string) result {
		return runCommand(t.Context(), append([]string{"get", "pods", "--kubeconfig", file}, args...)...)
	}
	if got := ask(); got.code != ExitNoAnswer || !strings.Contains(got.err, "connect: ") {
		t.Errorf("nothing listens in the pod: %+v", got)
	}
	if got := ask("--service", "team/informerd"); got.code != ExitNoAnswer || !strings.Contains(got.err, "endpointslices is forbidden") || !strings.Contains(got.err, "--server") {
		t.Errorf("%+v", got)
	}
	if got := ask("--service", "informerd"); got.code != ExitUsage {
		t.Errorf("%+v", got)
	}
	api.mu.Lock()
	api.slices = `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[]}`
	api.mu.Unlock()
	if got := ask(); got.code != ExitNoAnswer || !strings.Contains(got.err, "no pod of a Service informerd/informerd is ready") {
		t.Errorf("%+v", got)
	}
}

// TestCredentialsForNobodyElse: what the kubeconfig has is for its cluster, wherever that
// sends one to; what a flag names is not for whoever listens on this machine.
func TestCredentialsForNobodyElse(t *testing.T) {
	var asked atomic.Bool
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	t.Cleanup(other.Close)
	api := newAPIServer(t, other.Listener.Addr().String())
	api.slices = other.URL
	if got := runCommand(t.Context(), "get", "pods", "--kubeconfig", writeKubeconfig(t, api.URL, "shop")); got.code != ExitNoAnswer || asked.Load() {
		t.Errorf("redirected: %+v, followed: %v", got, asked.Load())
	}
	t.Setenv("INFORMERD", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if got := runCommand(t.Context(), "get", "pods", "--token", "mine"); got.code != ExitUsage || !strings.Contains(got.err, "whom the credentials are for") {
		t.Errorf("a token for nobody: %+v", got)
	}
}
