package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/informerd/informerd/server/access/accesstest"
)

// guarded is informerd behind TLS with authentication, and its API server.
type guarded struct {
	t       *testing.T
	address string
	serving *accesstest.CA // of informerd's own certificate
	clients *accesstest.CA // that the cluster publishes
	proxies *accesstest.CA
	reviews *accesstest.API
	log     *lines

	mu   sync.Mutex // guards all below
	seen []*http.Request
	// upgrade answers exec; nil refuses it.
	upgrade http.HandlerFunc
}

const published = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"

// newGuarded starts informerd with further lines of configuration.
func newGuarded(t *testing.T, configuration string) *guarded {
	t.Helper()
	g := &guarded{
		t: t, serving: accesstest.NewCA(t, "serving"), clients: accesstest.NewCA(t, "clients"), proxies: accesstest.NewCA(t, "proxies"),
		reviews: &accesstest.API{},
	}
	fake := newFakeAPI(t, "- Pod pods v1").Config.Handler
	// Over TLS, since client-go shows its token to nobody else.
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serveAPI(w, r, fake) }))
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	dir := t.TempDir()
	cert, key := accesstest.Files(t, g.serving.Server(t))
	file := writeFile(t, dir+"/c.yaml", fmt.Sprintf("tls: {certFile: %q, keyFile: %q}\n%s\n",
		writeFile(t, dir+"/tls.crt", string(cert)), writeFile(t, dir+"/tls.key", string(key)), configuration))
	g.address, g.log, _ = startServe(t, "--config", file, "--kubeconfig", trusting(t, kubeconfigFor(t, dir+"/k", api.URL)), "--snapshot", "")
	g.log.await(t, "resources discovered")
	return g
}

// trusting changes a kubeconfig so that any certificate of its server will do.
func trusting(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, file, strings.Replace(string(data), "cluster: {server:", "cluster: {insecure-skip-tls-verify: true, server:", 1))
}

func (g *guarded) serveAPI(w http.ResponseWriter, r *http.Request, fake http.Handler) {
	g.mu.Lock()
	g.seen = append(g.seen, r.Clone(r.Context()))
	upgrade := g.upgrade
	g.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"), strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		g.reviews.ServeHTTP(w, r)
	case r.URL.Path == published:
		answer(w, "application/json", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]string{
			"client-ca-file":                     string(g.clients.PEM),
			"requestheader-client-ca-file":       string(g.proxies.PEM),
			"requestheader-allowed-names":        `["front-proxy"]`,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		}})
	case strings.HasSuffix(r.URL.Path, "/exec") && upgrade != nil:
		upgrade(w, r)
	default:
		fake.ServeHTTP(w, r)
	}
}

// own are the requests made with informerd's own credentials, others all else.
func (g *guarded) requests() (own, others []*http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.seen {
		if r.Header.Get("Authorization") == "Bearer t" {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	}
	return own, others
}

// do asks informerd. Headers come in pairs.
func (g *guarded) do(cert *tls.Certificate, method, path string, headers ...string) (int, string) {
	g.t.Helper()
	config := &tls.Config{RootCAs: g.serving.Pool()}
	if cert != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(g.t.Context(), method, "https://"+g.address+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		g.t.Errorf("answers in %s", resp.Proto)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func allowAll(names ...string) func(authorizationv1.SubjectAccessReviewSpec) bool {
	return func(s authorizationv1.SubjectAccessReviewSpec) bool {
		for _, name := range names {
			if s.User == name {
				return true
			}
		}
		return false
	}
}

// Whoever reaches informerd and shows nothing learns nothing, wherever they ask (Argo CD
// CVE-2024-31989: any pod that reached the cache could read it).
func TestReadableByNobodyUnknown(t *testing.T) {
	g := newGuarded(t, "authentication: {}\nkubernetes: {passthrough: all}")
	g.reviews.Allow(func(authorizationv1.SubjectAccessReviewSpec) bool { return true })
	other := accesstest.NewCA(t, "others").Client(t, "admin", "system:masters")
	paths := []string{
		"/", "/index.html", "/metrics", "/metrics/", "/debug/pprof/", "/v1", "/v1/openapi.json", "/v1/resources", "/v1/resources/pods",
		"/v1/resources/pods/objects", "/v1/resources/pods/objects/shop/a", "/v1/resources/none/objects", "/v1/resources/pods/indexes",
		"/v1/resources/pods/indexes/namespace", "/v1/resources/pods/indexes/namespace/shop", "/v1/query?resources=*", "/v1/query?resources=pods&watch=true",
		"/v1/search?q=a", "/v1/complete?for=resource", "/v1/graph/dangling", "/v1/graph/pods/shop/a",
		"/api", "/apis", "/api/v1", "/api/v1/pods", "/api/v1/pods?watch=1", "/api/v1/namespaces/shop/pods/a", "/api/v1/namespaces/shop/pods/a/log",
		"/api/v1/none", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/version", "/clusters/default/api/v1/pods", "/clusters/none/api/v1/pods",
		"//v1/resources", "/v1/../v1/resources", "/livez/../v1/resources", "/readyz/verbose",
	}
	for name, credentials := range map[string]struct {
		cert    *tls.Certificate
		headers []string
	}{
		"nothing":             {},
		"wrong token":         {headers: []string{"Authorization", "Bearer nonsense"}},
		"informerd's address": {headers: []string{"X-Forwarded-For", "127.0.0.1", "Host", "localhost"}},
		"pretended headers":   {headers: []string{"X-Remote-User", "admin", "X-Remote-Group", "system:masters"}},
		"pretended to be":     {headers: []string{"Impersonate-User", "admin"}},
		"another CA":          {cert: &other},
	} {
		for _, path := range paths {
			code, body := g.do(credentials.cert, http.MethodGet, path, credentials.headers...)
			var status struct{ Kind, Message, Reason string }
			_ = json.Unmarshal([]byte(body), &status)
			if code != http.StatusUnauthorized || status.Kind != "Status" || status.Message != "Unauthorized" || status.Reason != "Unauthorized" {
				t.Errorf("%s, GET %s: %d %s", name, path, code, body)
			}
		}
		for _, path := range []string{"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/api/v1/namespaces/shop/pods", "/v1/query?resources=pods"} {
			if code, body := g.do(credentials.cert, http.MethodPost, path, credentials.headers...); code != http.StatusUnauthorized {
				t.Errorf("%s, POST %s: %d %s", name, path, code, body)
			}
		}
		if code, body := g.do(credentials.cert, http.MethodGet, "/livez", credentials.headers...); code != http.StatusOK || body != "ok\n" {
			t.Errorf("%s, /livez: %d %s", name, code, body)
		}
		if _, body := g.do(credentials.cert, http.MethodGet, "/readyz?verbose", credentials.headers...); strings.Contains(body, "pods") || strings.Contains(body, "default") {
			t.Errorf("%s, /readyz: %s", name, body)
		}
	}
	if _, others := g.requests(); len(others) > 0 {
		t.Errorf("passed on: %s %s", others[0].Method, others[0].URL)
	}
}

// Who asks is known by what the cluster publishes, and sees what it lets them.
func TestGuarded(t *testing.T) {
	g := newGuarded(t, "authentication: {}")
	g.reviews.Token("of-jane", accesstest.Named("jane"))
	g.reviews.Token("of-bob", accesstest.Named("bob"))
	g.reviews.Allow(allowAll("jane", "carol"))
	carol, front := g.clients.Client(t, "carol"), g.proxies.Client(t, "front-proxy")
	stranger := g.proxies.Client(t, "other-proxy")
	until(t, func() bool { // the ConfigMap is read
		code, _ := g.do(&carol, http.MethodGet, "/v1/resources")
		return code == http.StatusOK
	})
	for name, test := range map[string]struct {
		cert    *tls.Certificate
		headers []string
		path    string
		want    int
	}{
		"token":                          {headers: []string{"Authorization", "Bearer of-jane"}, path: "/v1/resources", want: 200},
		"certificate":                    {cert: &carol, path: "/v1/resources", want: 200},
		"proxy":                          {cert: &front, headers: []string{"X-Remote-User", "carol"}, path: "/v1/resources", want: 200},
		"proxy that is not allowed":      {cert: &stranger, headers: []string{"X-Remote-User", "carol"}, path: "/v1/resources", want: 401},
		"token, what may be read":        {headers: []string{"Authorization", "Bearer of-jane"}, path: "/metrics", want: 200},
		"impersonation that is allowed":  {headers: []string{"Authorization", "Bearer of-jane", "Impersonate-User", "carol"}, path: "/v1/resources", want: 200},
		"impersonation that is refused":  {headers: []string{"Authorization", "Bearer of-bob", "Impersonate-User", "carol"}, path: "/v1/resources", want: 403},
		"a token that the proxy carries": {cert: &front, headers: []string{"Authorization", "Bearer of-jane"}, path: "/v1/resources", want: 200},
	} {
		if code, body := g.do(test.cert, http.MethodGet, test.path, test.headers...); code != test.want {
			t.Errorf("%s: %d %s, want %d", name, code, body, test.want)
		}
	}
}

// When the API server cannot be asked who somebody is, they are not refused for good,
// nobody is let in, and people are told why.
func TestGuardedFailsClosed(t *testing.T) {
	g := newGuarded(t, "authentication: {}")
	g.reviews.Allow(allowAll("jane"))
	g.reviews.Fail(errors.New("the cause"))
	code, body := g.do(nil, http.MethodGet, "/v1/resources", "Authorization", "Bearer of-jane")
	if code != http.StatusServiceUnavailable || strings.Contains(body, "the cause") || strings.Contains(body, "127.0.0.1") {
		t.Errorf("%d %s", code, body)
	}
	g.log.await(t, "the cause")
	if _, body := g.do(nil, http.MethodGet, "/readyz?verbose"); !strings.Contains(body, "who asks, or what they may, cannot be told now") || strings.Contains(body, "the cause") {
		t.Errorf("/readyz to whoever asks: %s", body)
	}
	carol := g.clients.Client(t, "carol")
	g.reviews.Fail(nil)
	g.reviews.Allow(allowAll("carol"))
	until(t, func() bool {
		code, _ := g.do(&carol, http.MethodGet, "/metrics")
		return code == http.StatusOK
	})
	// She is known without asking, and what she may was just asked.
	g.reviews.Token("of-bob", accesstest.Named("bob"))
	until(t, func() bool {
		_, body := g.do(&carol, http.MethodGet, "/readyz?verbose")
		return strings.Contains(body, "[")
	})
	g.reviews.Fail(errors.New("another cause"))
	g.do(nil, http.MethodGet, "/v1/resources", "Authorization", "Bearer of-dave")
	if _, body := g.do(&carol, http.MethodGet, "/readyz?verbose"); !strings.Contains(body, "another cause") {
		t.Errorf("/readyz to who may read it: %s", body)
	}
}

// Who somebody wants to be is judged here, and told to nobody whom informerd asks as
// itself: with its identity it would be another's request (steve GHSA-gvh9-xgrq-r8hw).
func TestImpersonationHeadersAreNotPassedOn(t *testing.T) {
	g := newGuarded(t, "authentication: {}\nkubernetes: {passthrough: all}")
	g.reviews.Token("of-root", accesstest.Named("root"))
	g.reviews.Token("of-bob", accesstest.Named("bob"))
	g.reviews.Allow(allowAll("root", "jane"))
	carol := g.clients.Client(t, "carol", "system:masters")
	until(t, func() bool {
		code, _ := g.do(&carol, http.MethodGet, "/livez")
		own, _ := g.requests()
		for _, r := range own {
			if r.URL.Path == published {
				return code == 200
			}
		}
		return false
	})
	pretended := []string{"Impersonate-User", "jane", "Impersonate-Group", "admins", "Impersonate-Uid", "1", "Impersonate-Extra-Scope", "all", "X-Remote-User", "admin"}
	as := func(token string) []string { return append([]string{"Authorization", "Bearer " + token}, pretended...) }
	paths := []string{
		"/version", "/openapi/v3", "/api", "/apis", "/api/v1", "/api/v1/pods", "/v1/resources", "/v1/query?resources=pods", "/v1/complete?for=path&resource=pods",
		"/api/v1/namespaces/shop/secrets", "/api/v1/namespaces/shop/pods/a/log",
	}
	for _, path := range paths {
		g.do(nil, http.MethodGet, path, as("of-root")...)
		if code, body := g.do(nil, http.MethodGet, path, as("of-bob")...); code != http.StatusForbidden || !strings.Contains(body, "cannot impersonate") {
			t.Errorf("%s by who may not: %d %s", path, code, body)
		}
		g.do(&carol, http.MethodGet, path, pretended...)
	}
	g.do(nil, http.MethodDelete, "/api/v1/namespaces/shop/pods/a", as("of-root")...)
	g.do(&carol, http.MethodDelete, "/api/v1/namespaces/shop/pods/a", pretended...)
	own, others := g.requests()
	for _, r := range own {
		for name := range r.Header {
			if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
				t.Errorf("%s %s as informerd has %s", r.Method, r.URL, name)
			}
		}
	}
	if len(others) == 0 {
		t.Error("nothing was passed on")
	}
	for _, r := range others {
		if r.Header.Get("Authorization") != "Bearer of-root" || r.Header.Get("Impersonate-User") != "jane" || r.Header.Get("X-Remote-User") != "" {
			t.Errorf("%s %s was passed on with %v", r.Method, r.URL, r.Header)
		}
	}
}

// What is named in Connection ends at the next hop. The API server would answer whoever
// makes the request, who was judged as whom they want to be: behind a proxy that sets
// Impersonate-User and passes on its clients' Connection, these would be the proxy.
func TestConnectionDoesNotTakeOutWhoAsks(t *testing.T) {
	g := newGuarded(t, "authentication: {}\nkubernetes: {passthrough: all}")
	g.reviews.Token("of-root", accesstest.Named("root"))
	g.reviews.Allow(allowAll("root", "jane"))
	conn, err := tls.Dial("tcp", g.address, &tls.Config{RootCAs: g.serving.Pool(), NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "DELETE /api/v1/namespaces/shop/pods/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer of-root\r\n"+
		"Impersonate-User: jane\r\nImpersonate-Group: g\r\nConnection: impersonate-user, Impersonate-Group, Authorization, close\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	_, others := g.requests()
	if len(others) != 1 {
		t.Fatalf("%d requests were passed on, want 1", len(others))
	}
	h := others[0].Header
	if h.Get("Authorization") != "Bearer of-root" || h.Get("Impersonate-User") != "jane" || h.Get("Impersonate-Group") != "g" {
		t.Errorf("passed on with %v", h)
	}
}

// A connection that is to be taken over is the caller's own, with their credentials
// alone; one that is not taken over goes on to be informerd's (kubernetes#71411,
// CVE-2018-1002105: it stayed open to the API server, as the proxy).
func TestUpgradedConnectionIsTheCallers(t *testing.T) {
	g := newGuarded(t, "authentication: {}\nkubernetes: {passthrough: all}")
	g.reviews.Token("of-jane", accesstest.Named("jane"))
	g.reviews.Allow(allowAll("jane"))
	exec := "GET /api/v1/namespaces/shop/pods/a/exec?command=sh HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
	dial := func() (*tls.Conn, *bufio.Reader) {
		conn, err := tls.Dial("tcp", g.address, &tls.Config{RootCAs: g.serving.Pool(), NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	send := func(conn *tls.Conn, from *bufio.Reader, request string) *http.Response {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	drain := func(resp *http.Response) string {
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return string(body)
	}

	t.Run("refused", func(t *testing.T) {
		g.setUpgrade(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) })
		conn, from := dial()
		resp := send(conn, from, exec+"Authorization: Bearer of-jane\r\n\r\n")
		if drain(resp); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("exec: %s", resp.Status)
		}
		_, before := g.requests()
		resp = send(conn, from, "GET /api/v1/namespaces/kube-system/secrets HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if body := drain(resp); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("on the same connection: %s %s", resp.Status, body)
		}
		if _, after := g.requests(); len(after) != len(before) {
			t.Errorf("reached the API server: %s", after[len(after)-1].URL)
		}
	})
	t.Run("taken over", func(t *testing.T) {
		g.setUpgrade(func(w http.ResponseWriter, _ *http.Request) {
			conn, stream, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(stream, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
			_ = stream.Flush()
			line, _ := stream.ReadString('\n')
			_, _ = io.WriteString(stream, "echo "+line)
			_ = stream.Flush()
		})
		conn, from := dial()
		resp := send(conn, from, exec+"Authorization: Bearer of-jane\r\nX-Remote-User: admin\r\n\r\n")
		if resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("exec: %s %s", resp.Status, drain(resp))
		}
		_, _ = io.WriteString(conn, "hello\n")
		if line, err := from.ReadString('\n'); line != "echo hello\n" {
			t.Errorf("over the connection: %q, %v", line, err)
		}
	})
	t.Run("without credentials", func(t *testing.T) {
		conn, from := dial()
		resp := send(conn, from, exec+"\r\n")
		if body := drain(resp); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("exec: %s %s", resp.Status, body)
		}
	})
	own, others := g.requests()
	for _, r := range own {
		if strings.Contains(r.URL.Path, "/exec") || strings.Contains(r.URL.Path, "/secrets") && r.URL.Path != "/api/v1/secrets" {
			t.Errorf("%s was asked for as informerd", r.URL)
		}
	}
	if len(others) != 2 {
		t.Errorf("%d requests were passed on, want 2", len(others))
	}
	for _, r := range others {
		if r.Header.Get("Authorization") != "Bearer of-jane" || r.Header.Get("X-Remote-User") != "" {
			t.Errorf("%s was passed on with %v", r.URL, r.Header)
		}
	}
}

func (g *guarded) setUpgrade(h http.HandlerFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.upgrade = h
}

// Files of authorities must be there at the start.
func TestGuardedWithoutItsFiles(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir+"/c.yaml", "authentication: {clientCAFile: "+dir+"/none}\n")
	log := newLines()
	if code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--config", file, "--kubeconfig", dir + "/none", "--snapshot", ""}, io.Discard, log); code != exitFailure ||
		!strings.Contains(log.String(), "authentication.clientCAFile") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
}
