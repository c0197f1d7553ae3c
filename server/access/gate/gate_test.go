package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
	"github.com/informerd/informerd/server/access/authn"
	"github.com/informerd/informerd/server/access/review"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var pods = schema.GroupResource{Resource: "pods"}

// none are roles that grant nothing.
type none struct{}

func (none) Digest() string                                     { return "none" }
func (none) Scope(cache.Verb, schema.GroupResource) cache.Scope { return cache.Scope{} }
func (none) Allowed(access.Attributes) bool                     { return false }
func (none) Path(string, string) bool                           { return false }
func (none) Rules(string) ([]authorizationv1.ResourceRule, []authorizationv1.NonResourceRule) {
	return nil, nil
}

// world is some clusters, each with an API server of its own.
type world struct {
	*Gate
	apis map[string]*accesstest.API
}

func newWorld(anonymous bool, names ...string) *world {
	w := &world{apis: map[string]*accesstest.API{}}
	clusters := map[string]*Cluster{}
	for _, name := range names {
		api := &accesstest.API{}
		w.apis[name] = api
		proposer := ByRoles{func(context.Context, user.Info) (Rights, error) { return none{}, nil }}
		clusters[name] = &Cluster{
			Authenticator: authn.New(authn.Options{Tokens: api, Anonymous: anonymous}),
			Authorizer:    review.New(review.Options{Cluster: name, Reviewer: api, Proposer: proposer}),
			FrontProxy:    &authn.FrontProxy{},
		}
	}
	w.Gate = New(Options{
		Clusters: func() []string { return names },
		Cluster:  func(name string) *Cluster { return clusters[name] },
	})
	return w
}

// request is one with a token, if it is not "", and headers.
func request(url, token string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// allow lets names do everything.
func allow(names ...string) func(authorizationv1.SubjectAccessReviewSpec) bool {
	return func(s authorizationv1.SubjectAccessReviewSpec) bool { return slices.Contains(names, s.User) }
}

func sees(t *testing.T, a access.Asker, cluster string) bool {
	t.Helper()
	s, err := a.Scope(t.Context(), cluster, cache.List, pods)
	if err != nil {
		t.Fatalf("Scope(%s): %v", cluster, err)
	}
	return !s.Empty()
}

// Who somebody is in the cluster they name is for that cluster to say (Backstage
// GHSA-h53x-hjx6-25gr: the identity of one cluster was used for another, which the
// caller named).
func TestSelfDeclaredCluster(t *testing.T) {
	w := newWorld(false, "east", "west")
	w.apis["east"].Token("of-east", accesstest.Named("jane"))
	w.apis["west"].Token("of-west", accesstest.Named("jane"))
	for _, api := range w.apis {
		api.Allow(allow("jane"))
	}
	for url, code := range map[string]int{
		"/v1/query?resources=pods":                             0,
		"/v1/query?resources=pods&cluster=east":                0,
		"/v1/query?resources=pods&cluster=west":                http.StatusUnauthorized,
		"/v1/query?resources=pods&cluster=west&cluster=east":   0,
		"/v1/query?resources=pods&cluster=north":               http.StatusUnauthorized, // which does not exist
		"/v1/query?resources=pods&cluster=north&cluster=east":  0,
		"/v1/query?resources=pods&cluster=":                    0,
		"/clusters/north/api/v1/pods":                          http.StatusUnauthorized,
		"/clusters/":                                           0,
		"/clusters/east/api/v1/pods":                           0,
		"/clusters/west/api/v1/pods":                           http.StatusUnauthorized,
		"/clusters/west/api/v1/pods?cluster=east":              http.StatusUnauthorized,
		"/clusters/west/api/v1/namespaces/east/pods":           http.StatusUnauthorized,
		"/v1/graph/pods/n/x?cluster=west":                      http.StatusUnauthorized,
		"/v1/resources/pods/objects/n/x?cluster=west&pretty=1": http.StatusUnauthorized,
	} {
		a, err := w.Asker(request(url, "of-east"))
		if codeOf(err) != code {
			t.Errorf("%s: %v, want %d", url, err, code)
		}
		if err != nil {
			continue
		}
		// Whatever the request names: the asker is somebody in one cluster only.
		if !sees(t, a, "east") || sees(t, a, "west") {
			t.Errorf("%s: sees east %v, west %v", url, sees(t, a, "east"), sees(t, a, "west"))
		}
		if ok, _, err := a.Allowed(t.Context(), access.Attributes{Cluster: "west", Verb: "list", Resource: "pods"}); ok || err != nil {
			t.Errorf("%s: allowed in west: %v, %v", url, ok, err)
		}
		mine := strings.HasSuffix(url, "pods&cluster=east") || strings.HasPrefix(url, "/clusters/east/")
		if ok, err := a.Path(t.Context(), "get", "/metrics"); ok != mine || err != nil {
			t.Errorf("%s: may read what is of all clusters: %v, %v", url, ok, err)
		}
	}
	for _, spec := range w.apis["west"].Asked() {
		t.Errorf("west was asked about %s", spec.User)
	}
}

// TestUnknownClusterKnowsNobody: who names a cluster that there is not is answered as
// where nobody knows them, whoever they are elsewhere, and their token is shown to nobody.
func TestUnknownClusterKnowsNobody(t *testing.T) {
	w := newWorld(false, "east", "west")
	w.apis["east"].Token("of-east", accesstest.Named("jane"))
	for _, url := range []string{"/v1/resources?cluster=%s", "/v1/resources/pods/objects?cluster=%s", "/clusters/%s/api/v1/pods", "/clusters/%s/version"} {
		_, exists := w.Asker(request(fmt.Sprintf(url, "west"), "of-east"))
		asked := w.apis["east"].TokenReviews() + w.apis["west"].TokenReviews()
		_, missing := w.Asker(request(fmt.Sprintf(url, "north"), "of-east"))
		if codeOf(exists) != http.StatusUnauthorized || fmt.Sprint(exists) != fmt.Sprint(missing) {
			t.Errorf("%s: of one that there is %v, of none %v", url, exists, missing)
		}
		if now := w.apis["east"].TokenReviews() + w.apis["west"].TokenReviews(); now != asked {
			t.Errorf("%s: the token was shown to others", url)
		}
	}
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return int(status.ErrStatus.Code)
	}
	return -1
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		anonymous bool
		token     string
		headers   []string
		fail      error
		code      int
		user      string
	}{
		"no token":                     {code: 401},
		"wrong token":                  {token: "wrong", code: 401},
		"anonymous":                    {anonymous: true, user: "system:anonymous"},
		"wrong token, anonymous":       {anonymous: true, token: "wrong", code: 401},
		"token":                        {token: "of-jane", user: "jane"},
		"pretended":                    {headers: []string{"X-Remote-User", "admin"}, code: 401},
		"pretended, with a token":      {token: "of-jane", headers: []string{"X-Remote-User", "admin"}, user: "jane"},
		"API server away":              {token: "of-jane", fail: errors.New("dial tcp 10.0.0.1:6443: refused"), code: 503},
		"API server refuses informerd": {token: "of-jane", fail: apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "10.0.0.1", errors.New("refused")), code: 503},
		"API server does not know it":  {token: "of-jane", fail: apierrors.NewUnauthorized("refused"), code: 503},
		"API server away, no token":    {fail: errors.New("refused"), code: 401},
		"group without a user":         {token: "of-jane", headers: []string{"Impersonate-Group", "admins"}, code: 400},
		"group without a user, nobody": {headers: []string{"Impersonate-Group", "admins"}, code: 401},
		"impersonation":                {token: "of-jane", headers: []string{"Impersonate-User", "admin"}, code: 403},
		"impersonation by nobody":      {headers: []string{"Impersonate-User", "admin"}, code: 401},
		"impersonation by who may":     {token: "of-root", headers: []string{"Impersonate-User", "admin"}, user: "admin"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(test.anonymous, "c")
			api := w.apis["c"]
			api.Token("of-jane", accesstest.Named("jane"))
			api.Token("of-root", accesstest.Named("root"))
			api.Allow(allow("root"))
			api.Fail(test.fail)
			r := request("/api/v1/pods", test.token, test.headers...)
			a, err := w.Asker(r)
			if codeOf(err) != test.code {
				t.Fatalf("%v, want %d", err, test.code)
			}
			if err == nil && a.Name() != test.user {
				t.Errorf("is %q, want %q", a.Name(), test.user)
			}
			if err != nil && (strings.Contains(err.Error(), "10.0.0.1") || strings.Contains(err.Error(), "refused")) {
				t.Errorf("says why: %v", err)
			}
			if test.code == 401 && err.Error() != "Unauthorized" {
				t.Errorf("says %q", err)
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Remote-") {
					t.Errorf("%s is left in the request", name)
				}
			}
		})
	}
}

// That the API server refuses informerd is no refusal of who asks.
func TestRightsCannotBeTold(t *testing.T) {
	for name, cause := range map[string]error{
		"away":      errors.New("dial tcp 10.0.0.1:6443: refused"),
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "10.0.0.1", errors.New("refused")),
	} {
		w := newWorld(false, "c")
		w.apis["c"].Token("of-jane", accesstest.Named("jane"))
		known, err := w.Asker(request("/api/v1/pods", "of-jane"))
		if err != nil {
			t.Fatal(err)
		}
		w.apis["c"].Fail(cause)
		_, err = known.Scope(t.Context(), "c", cache.List, pods)
		_, _, allowed := known.Allowed(t.Context(), access.Attributes{Cluster: "c", Verb: "list", Resource: "pods"})
		_, path := known.Path(t.Context(), "get", "/metrics")
		_, _, other := known.(*asker).Other(t.Context(), authenticationv1.UserInfo{Username: "bob"}, access.Attributes{Cluster: "c", Verb: "list"}, "")
		_, impersonated := w.Asker(request("/api/v1/pods", "of-jane", "Impersonate-User", "bob"))
		for _, err := range []error{err, allowed, path, other, impersonated} {
			if codeOf(err) != 503 || strings.Contains(err.Error(), "10.0.0.1") || strings.Contains(err.Error(), "refused") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Probes show nothing of who makes them, and see nothing.
func TestProbes(t *testing.T) {
	w := newWorld(false, "c")
	w.apis["c"].Allow(func(authorizationv1.SubjectAccessReviewSpec) bool { return true })
	for path, open := range map[string]bool{"/livez": true, "/healthz": true, "/readyz": true, "/readyz/x": false, "/metrics": false, "/": false, "/v1/readyz": false} {
		a, err := w.Asker(request(path, ""))
		if (err == nil) != open {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil && sees(t, a, "c") {
			t.Errorf("%s: nobody sees something", path)
		}
	}
}

// Each part of whom somebody wants to be must be allowed, as at the API server.
func TestImpersonation(t *testing.T) {
	for name, test := range map[string]struct {
		headers []string
		denied  string // resource, or resource/subresource
		code    int
		want    authenticationv1.UserInfo
		asked   []string // namespace/resource/subresource/name
	}{
		"user": {
			headers: []string{"Impersonate-User", "jane"}, asked: []string{"/users//jane"},
			want: authenticationv1.UserInfo{Username: "jane", Groups: []string{"system:authenticated"}},
		},
		"user denied": {headers: []string{"Impersonate-User", "jane"}, denied: "users", code: 403, asked: []string{"/users//jane"}},
		"groups": {
			headers: []string{"Impersonate-User", "jane", "Impersonate-Group", "a", "Impersonate-Group", "b"},
			asked:   []string{"/users//jane", "/groups//a", "/groups//b"},
			want:    authenticationv1.UserInfo{Username: "jane", Groups: []string{"a", "b", "system:authenticated"}},
		},
		"group denied": {headers: []string{"Impersonate-User", "jane", "Impersonate-Group", "system:masters"}, denied: "groups", code: 403, asked: []string{"/users//jane", "/groups//system:masters"}},
		"group of all": {
			headers: []string{"Impersonate-User", "jane", "Impersonate-Group", "system:unauthenticated"},
			asked:   []string{"/users//jane", "/groups//system:unauthenticated"},
			want:    authenticationv1.UserInfo{Username: "jane", Groups: []string{"system:unauthenticated"}},
		},
		"service account": {
			headers: []string{"Impersonate-User", "system:serviceaccount:n:bot"}, asked: []string{"n/serviceaccounts//bot"},
			want: authenticationv1.UserInfo{Username: "system:serviceaccount:n:bot", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"}},
		},
		"service account denied": {headers: []string{"Impersonate-User", "system:serviceaccount:n:bot"}, denied: "serviceaccounts", code: 403, asked: []string{"n/serviceaccounts//bot"}},
		"anonymous": {
			headers: []string{"Impersonate-User", "system:anonymous"}, asked: []string{"/users//system:anonymous"},
			want: authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}},
		},
		"uid": {
			headers: []string{"Impersonate-User", "jane", "Impersonate-Uid", "7"}, asked: []string{"/users//jane", "/uids//7"},
			want: authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"system:authenticated"}},
		},
		"uid denied": {headers: []string{"Impersonate-User", "jane", "Impersonate-Uid", "7"}, denied: "uids", code: 403, asked: []string{"/users//jane", "/uids//7"}},
		"extra": {
			headers: []string{"Impersonate-User", "jane", "Impersonate-Extra-Acme.com%2fscopes", "view", "Impersonate-Extra-Acme.com%2fscopes", "edit"},
			asked:   []string{"/users//jane", "/userextras/acme.com/scopes/view", "/userextras/acme.com/scopes/edit"},
			want: authenticationv1.UserInfo{Username: "jane", Groups: []string{"system:authenticated"},
				Extra: map[string]authenticationv1.ExtraValue{"acme.com/scopes": {"view", "edit"}}},
		},
		"extra denied": {headers: []string{"Impersonate-User", "jane", "Impersonate-Extra-Scopes", "all"}, denied: "userextras", code: 403, asked: []string{"/users//jane", "/userextras/scopes/all"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(false, "c")
			api := w.apis["c"]
			api.Token("of-root", accesstest.Named("root"))
			api.Allow(func(s authorizationv1.SubjectAccessReviewSpec) bool {
				return s.User == "root" && s.ResourceAttributes.Verb == "impersonate" && s.ResourceAttributes.Resource != test.denied
			})
			a, err := w.Asker(request("/api/v1/pods", "of-root", test.headers...))
			if codeOf(err) != test.code {
				t.Fatalf("%v, want %d", err, test.code)
			}
			var asked []string
			for _, s := range api.Asked() {
				r := s.ResourceAttributes
				asked = append(asked, r.Namespace+"/"+r.Resource+"/"+r.Subresource+"/"+r.Name)
			}
			if !slices.Equal(asked, test.asked) {
				t.Errorf("asked %v, want %v", asked, test.asked)
			}
			if err != nil {
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "root" cannot impersonate resource "`+test.denied) {
					t.Errorf("says %v", err)
				}
				return
			}
			got, err := a.(*asker).User(t.Context(), "c")
			if err != nil || got.Username != test.want.Username || got.UID != test.want.UID || !slices.Equal(got.Groups, test.want.Groups) {
				t.Errorf("is %+v, %v; want %+v", got, err, test.want)
			}
			for key, values := range test.want.Extra {
				if !slices.Equal(got.Extra[key], values) {
					t.Errorf("extra %s is %v, want %v", key, got.Extra[key], values)
				}
			}
			if sees(t, a, "c") {
				t.Error("sees what the impersonator may")
			}
		})
	}
}

// A stream learns that it must begin again within eleven seconds, and not before
// something changed.
func TestGeneration(t *testing.T) {
	for name, change := range map[string]func(*accesstest.API){
		"nothing":       func(*accesstest.API) {},
		"right revoked": func(api *accesstest.API) { api.Allow(nil) },
		"token revoked": func(api *accesstest.API) { api.Revoke("of-jane") },
		"groups change": func(api *accesstest.API) { api.Token("of-jane", accesstest.Named("jane", "fired")) },
		"away":          func(api *accesstest.API) { api.Fail(errors.New("refused")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(false, "c")
				api := w.apis["c"]
				api.Token("of-jane", accesstest.Named("jane"))
				api.Allow(func(s authorizationv1.SubjectAccessReviewSpec) bool {
					return s.User == "jane" && !slices.Contains(s.Groups, "fired")
				})
				a, err := w.Asker(request("/api/v1/pods?watch=1", "of-jane"))
				if err != nil {
					t.Fatal(err)
				}
				if !sees(t, a, "c") {
					t.Fatal("sees nothing")
				}
				if ok, _, err := a.Allowed(t.Context(), access.Attributes{Cluster: "c", Verb: "watch", Resource: "pods"}); !ok || err != nil {
					t.Fatal(ok, err)
				}
				first, err := a.Generation(t.Context(), "c")
				if err != nil {
					t.Fatal(err)
				}
				change(api)
				start, ended := time.Now(), false
				for !ended && time.Since(start) < time.Minute {
					time.Sleep(300 * time.Millisecond)
					now, err := a.Generation(t.Context(), "c")
					ended = err != nil || now != first
				}
				if want := name != "nothing"; ended != want || ended && time.Since(start) > 11*time.Second {
					t.Errorf("ended %v after %v", ended, time.Since(start))
				}
			})
		})
	}
}

// What may not be passed on is refused: with another's identity, or nobody's, it would
// be another request.
func TestPassesOn(t *testing.T) {
	ca := accesstest.NewCA(t, "clients")
	clients := &authn.Authorities{}
	if _, err := clients.Set(ca.PEM); err != nil {
		t.Fatal(err)
	}
	api := &accesstest.API{}
	api.Token("of-jane", accesstest.Named("jane"))
	cluster := &Cluster{
		Authenticator: authn.New(authn.Options{Clients: clients, Tokens: api}),
		Authorizer:    ByRoles{func(context.Context, user.Info) (Rights, error) { return none{}, nil }},
	}
	g := New(Options{Clusters: func() []string { return []string{"c"} }, Cluster: func(string) *Cluster { return cluster }})
	var got error
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		a, err := g.Asker(r)
		if err != nil {
			got = err
			return
		}
		got = a.(*asker).PassesOn(r.Context(), "c")
	}))
	server.TLS = requestCertificates()
	server.StartTLS()
	defer server.Close()
	ask := func(withCertificate bool, token string) {
		client := *server.Client()
		transport := client.Transport.(*http.Transport).Clone()
		defer transport.CloseIdleConnections()
		if withCertificate {
			transport.TLSClientConfig.Certificates = append(transport.TLSClientConfig.Certificates, ca.Client(t, "jane"))
		}
		client.Transport = transport
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if ask(false, "of-jane"); got != nil {
		t.Errorf("with a token: %v", got)
	}
	if ask(true, ""); !apierrors.IsForbidden(got) || !strings.Contains(got.Error(), "client certificate") {
		t.Errorf("with a certificate: %v", got)
	}
	// The certificate says who asks, so that the token may be of somebody else.
	if ask(true, "of-jane"); !apierrors.IsForbidden(got) {
		t.Errorf("with both: %v", got)
	}
}

func TestTrouble(t *testing.T) {
	trouble := Trouble{Log: discard()}
	tokens, rights := trouble.Told("tokenreviews"), trouble.Told("subjectaccessreviews")
	if tokens(nil); trouble.Reason() != "" {
		t.Errorf("trouble: %s", trouble.Reason())
	}
	tokens(errors.New("first"))
	tokens(errors.New("second"))
	if rights(errors.New("third")); trouble.Reason() != "third; second" {
		t.Errorf("trouble: %s", trouble.Reason())
	}
	tokens(nil)
	if rights(nil); trouble.Reason() != "" {
		t.Errorf("trouble: %s", trouble.Reason())
	}
}
