package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/server/access/accesstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answerOf is what an Authenticator says of a request that comes in over real TLS.
func answerOf(t *testing.T, a *Authenticator, cert *tls.Certificate, header http.Header) (Identity, error) {
	t.Helper()
	var id Identity
	var err error
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id, err = a.Authenticate(r.Context(), r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	client := server.Client()
	config := client.Transport.(*http.Transport).TLSClientConfig
	if cert != nil {
		// Whatever authorities the server names: an impostor does not care.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	for name, values := range header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, doErr := client.Do(r)
	if doErr != nil {
		t.Fatal(doErr)
	}
	_ = resp.Body.Close()
	client.CloseIdleConnections()
	return id, err
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestAuthenticate(t *testing.T) {
	clientCA, proxyCA, otherCA := accesstest.NewCA(t, "clients"), accesstest.NewCA(t, "proxies"), accesstest.NewCA(t, "others")
	api := &accesstest.API{}
	api.Token("of-jane", accesstest.Named("jane", "dev"))
	api.Token("of-nobody", accesstest.Named(""))
	proxy := &FrontProxy{}
	proxy.SetHeaders(Headers{
		Names: []string{"front-proxy"}, Users: []string{"X-Remote-User"}, UIDs: []string{"X-Remote-Uid"},
		Groups: []string{"X-Remote-Group"}, ExtraPrefixes: []string{"X-Remote-Extra-"},
	})
	clients := &Authorities{}
	set(t, clients, clientCA)
	set(t, &proxy.Authorities, proxyCA)
	a := New(Options{FrontProxy: proxy, Clients: clients, Tokens: api})
	open := New(Options{FrontProxy: proxy, Clients: clients, Tokens: api, Anonymous: true})

	certificate := func(ca *accesstest.CA, template *x509.Certificate) *tls.Certificate {
		c := ca.Issue(t, template)
		return &c
	}
	jane := func(ca *accesstest.CA) *tls.Certificate {
		return certificate(ca, &x509.Certificate{Subject: pkix.Name{CommonName: "jane", Organization: []string{"dev"}}})
	}
	front := certificate(proxyCA, &x509.Certificate{Subject: pkix.Name{CommonName: "front-proxy"}})
	pretended := headers("X-Remote-User", "admin", "X-Remote-Group", "system:masters", "X-Remote-Extra-Scope", "all")
	bearer := func(token string) http.Header { return headers("Authorization", "Bearer "+token) }
	with := func(a, b http.Header) http.Header {
		both := a.Clone()
		for name, values := range b {
			both[name] = values
		}
		return both
	}
	socket := headers("Upgrade", "websocket", "Connection", "Upgrade",
		"Sec-WebSocket-Protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io."+base64.RawURLEncoding.EncodeToString([]byte("of-jane")))

	for name, test := range map[string]struct {
		by     *Authenticator
		cert   *tls.Certificate
		header http.Header
		want   string // "" is nobody
		means  Means
		groups []string
	}{
		"nothing":                          {by: a},
		"nothing, anonymous let in":        {by: open, want: "system:anonymous", means: ByNothing, groups: []string{"system:unauthenticated"}},
		"token":                            {by: a, header: bearer("of-jane"), want: "jane", means: ByToken, groups: []string{"dev", "system:authenticated"}},
		"token in lower case":              {by: a, header: headers("Authorization", "bearer of-jane"), want: "jane", means: ByToken, groups: []string{"dev", "system:authenticated"}},
		"wrong token":                      {by: a, header: bearer("of-joe")},
		"wrong token, anonymous let in":    {by: open, header: bearer("of-joe")},
		"token of somebody without a name": {by: a, header: bearer("of-nobody")},
		"empty token":                      {by: open, header: headers("Authorization", "Bearer ")},
		"password":                         {by: open, header: headers("Authorization", "Basic amFuZTpqYW5l")},
		"token of a socket":                {by: a, header: socket, want: "jane", means: ByToken, groups: []string{"dev", "system:authenticated"}},
		"certificate":                      {by: a, cert: jane(clientCA), want: "jane", means: ByCertificate, groups: []string{"dev", "system:authenticated"}},
		"certificate of another CA":        {by: open, cert: jane(otherCA)},
		"certificate of the proxies' CA":   {by: a, cert: jane(proxyCA)},
		"certificate that is over":         {by: open, cert: certificate(clientCA, &x509.Certificate{Subject: pkix.Name{CommonName: "jane"}, NotAfter: time.Now().Add(-time.Minute)})},
		"certificate of a server": {by: open, cert: certificate(clientCA, &x509.Certificate{
			Subject: pkix.Name{CommonName: "jane"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})},
		"certificate without a name":                 {by: open, cert: certificate(clientCA, &x509.Certificate{Subject: pkix.Name{Organization: []string{"dev"}}})},
		"wrong certificate, right token":             {by: a, cert: jane(otherCA), header: bearer("of-jane"), want: "jane", means: ByToken, groups: []string{"dev", "system:authenticated"}},
		"pretended headers":                          {by: a, header: pretended},
		"pretended headers, anonymous let in":        {by: open, header: pretended, want: "system:anonymous", means: ByNothing, groups: []string{"system:unauthenticated"}},
		"pretended headers with a token":             {by: a, header: with(pretended, bearer("of-jane")), want: "jane", means: ByToken, groups: []string{"dev", "system:authenticated"}},
		"pretended headers with a certificate":       {by: a, cert: jane(clientCA), header: pretended, want: "jane", means: ByCertificate, groups: []string{"dev", "system:authenticated"}},
		"pretended headers with another's":           {by: open, cert: certificate(otherCA, &x509.Certificate{Subject: pkix.Name{CommonName: "front-proxy"}}), header: pretended},
		"headers of a name that is not allowed":      {by: open, cert: certificate(proxyCA, &x509.Certificate{Subject: pkix.Name{CommonName: "other-proxy"}}), header: pretended},
		"headers of the proxy":                       {by: a, cert: front, header: pretended, want: "admin", means: ByProxy, groups: []string{"system:masters", "system:authenticated"}},
		"proxy that says nothing":                    {by: open, cert: front},
		"proxy that passes on a token":               {by: a, cert: front, header: bearer("of-jane"), want: "jane", means: ByToken, groups: []string{"dev", "system:authenticated"}},
		"proxy whose word is taken before the token": {by: a, cert: front, header: with(pretended, bearer("of-jane")), want: "admin", means: ByProxy, groups: []string{"system:masters", "system:authenticated"}},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := answerOf(t, test.by, test.cert, test.header)
			if test.want == "" {
				if !errors.Is(err, ErrNobody) {
					t.Fatalf("is %+v, %v; want nobody", id, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if id.GetName() != test.want || id.By != test.means || !slices.Equal(id.GetGroups(), test.groups) {
				t.Errorf("is %s of %v by %s; want %s of %v by %s", id.GetName(), id.GetGroups(), id.By, test.want, test.groups, test.means)
			}
		})
	}
}

func set(t *testing.T, a *Authorities, ca *accesstest.CA) {
	t.Helper()
	if changed, err := a.Set(ca.PEM); err != nil || !changed {
		t.Fatalf("Set() = %v, %v", changed, err)
	}
}

// Authorities change while informerd runs, and a bundle that is broken changes nothing.
func TestAuthoritiesChange(t *testing.T) {
	first, second := accesstest.NewCA(t, "first"), accesstest.NewCA(t, "second")
	clients := &Authorities{}
	a := New(Options{Clients: clients})
	of := func(ca *accesstest.CA) bool {
		cert := ca.Client(t, "jane")
		_, err := answerOf(t, a, &cert, nil)
		return err == nil
	}
	if of(first) {
		t.Error("known without authorities")
	}
	set(t, clients, first)
	if !of(first) || of(second) {
		t.Error("the first authority is not the only one")
	}
	for _, broken := range []string{"nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := clients.Set([]byte(broken)); err == nil {
			t.Errorf("took over %q", broken)
		}
	}
	if changed, err := clients.Set(first.PEM); changed || err != nil || !of(first) {
		t.Errorf("Set() of the same = %v, %v", changed, err)
	}
	set(t, clients, second)
	if of(first) || !of(second) {
		t.Error("the second authority did not take the place of the first")
	}
	if changed, err := clients.Set(nil); !changed || err != nil || of(second) {
		t.Errorf("Set(nil) = %v, %v", changed, err)
	}
}

// withToken is a request that carries a token.
func withToken(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// A token must be made for informerd, where it is configured that it must.
func TestTokenAudiences(t *testing.T) {
	api := &accesstest.API{}
	for token, audiences := range map[string][]string{"ours": {"informerd", "other"}, "theirs": {"other"}, "old": nil} {
		known := accesstest.Named("jane")
		known.Audiences = audiences
		api.Token(token, known)
	}
	strict := New(Options{Tokens: api, Audiences: []string{"informerd"}})
	lax := New(Options{Tokens: api})
	for token, want := range map[string]bool{"ours": true, "theirs": false, "old": false} {
		if _, err := strict.Authenticate(t.Context(), withToken(token)); (err == nil) != want {
			t.Errorf("token %s: %v", token, err)
		}
		if _, err := lax.Authenticate(t.Context(), withToken(token)); err != nil {
			t.Errorf("token %s for the API server: %v", token, err)
		}
	}
}

// An API server that knows nothing of audiences says none, and its tokens may be for
// anybody.
func TestTokenAudiencesUnknown(t *testing.T) {
	api := &deaf{}
	api.Token("t", accesstest.Named("jane"))
	if _, err := New(Options{Tokens: api, Audiences: []string{"informerd"}}).Authenticate(t.Context(), withToken("t")); !errors.Is(err, ErrNobody) {
		t.Errorf("known: %v", err)
	}
}

// The API server is asked once about a token, however many ask, and again after ten
// seconds. When it cannot be asked then, nobody is known, and nobody is refused for
// good.
func TestTokensFailClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &accesstest.API{}
		api.Token("t", accesstest.Named("jane"))
		api.Delay(100 * time.Millisecond)
		var told []error
		a := New(Options{Tokens: api, Told: func(err error) { told = append(told, err) }})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if id, err := a.Authenticate(t.Context(), withToken("t")); err != nil || id.GetName() != "jane" {
					t.Errorf("is %v, %v", id.Info, err)
				}
			})
		}
		all.Wait()
		if n := api.TokenReviews(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		api.Fail(errors.New("connection refused"))
		time.Sleep(9 * time.Second)
		if _, err := a.Authenticate(t.Context(), withToken("t")); err != nil {
			t.Errorf("within ten seconds: %v", err)
		}
		time.Sleep(2 * time.Second)
		_, err := a.Authenticate(t.Context(), withToken("t"))
		if _, ok := errors.AsType[*Unavailable](err); !ok {
			t.Errorf("after ten seconds: %v, want an Unavailable", err)
		}
		api.Fail(nil)
		if _, err := a.Authenticate(t.Context(), withToken("t")); err != nil {
			t.Errorf("as soon as it answers: %v", err)
		}
		if len(told) != 3 || told[0] != nil || told[1] == nil || told[2] != nil {
			t.Errorf("told %v", told)
		}
	})
}

// A token that is revoked is known for ten seconds at most.
func TestTokenRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &accesstest.API{}
		api.Token("t", accesstest.Named("jane"))
		a := New(Options{Tokens: api})
		if _, err := a.Authenticate(t.Context(), withToken("t")); err != nil {
			t.Fatal(err)
		}
		api.Revoke("t")
		time.Sleep(10*time.Second + time.Millisecond)
		if _, err := a.Authenticate(t.Context(), withToken("t")); !errors.Is(err, ErrNobody) {
			t.Errorf("after ten seconds: %v", err)
		}
	})
}

// An API server that hangs holds nobody up for longer than a question may take, and a
// client that leaves is not answered for.
func TestTokenReviewHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &accesstest.API{}
		api.Delay(time.Hour)
		a := New(Options{Tokens: api})
		start := time.Now()
		_, err := a.Authenticate(t.Context(), withToken("t"))
		if _, ok := errors.AsType[*Unavailable](err); !ok || time.Since(start) > reviewTimeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Authenticate(ctx, withToken("t")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that left: %v", err)
		}
		time.Sleep(time.Minute) // the question that goes on without it ends
	})
}

var _ user.Info = Identity{}
