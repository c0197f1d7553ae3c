package audit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestURI(t *testing.T) {
	for asked, want := range map[string]string{
		"/api/v1/pods": "/api/v1/pods",
		"/v1/query?resources=pods&filter=object.spec.x%3D%3D%22a%26b%22": "/v1/query?resources=pods&filter=object.spec.x%3D%3D%22a%26b%22",
		"/api/v1/pods?limit=5&continue=eyJ2Ijoi":                         "/api/v1/pods?limit=5&continue=REDACTED",
		"/x?access_token=s3cr3t&a=1":                                     "/x?access_token=REDACTED&a=1",
		"/x?Access_Token=s3cr3t":                                         "/x?Access_Token=REDACTED",
		"/x?access%5Ftoken=s3cr3t":                                       "/x?access%5Ftoken=REDACTED",
		"/x?%61ccess_token=s3cr3t":                                       "/x?%61ccess_token=REDACTED",
		"/x?acc%zzess_token=s3cr3t":                                      "/x?acc%zzess_token=REDACTED",
		"/x?a;access_token=s3cr3t":                                       "/x?a;access_token=REDACTED",
		"/x?access_token=s3cr3t=s3cr3t":                                  "/x?access_token=REDACTED",
		"/x?continue":                                                    "/x?REDACTED",
		"/x?token=&id_token=s3cr3t&password=s3cr3t":                      "/x?token=REDACTED&id_token=REDACTED&password=REDACTED",
		"/x?eyJhbGciOiJSUzI1NiIsImtpZCI6s3cr3t.s3cr3t":                   "/x?REDACTED",
		"/x?verbose&watch":                                               "/x?verbose&watch",
		"/x?":                                                            "/x",
		"/x?a=1&&b=2":                                                    "/x?a=1&&b=2",
		"/api/v1/namespaces/a/services/web:80/proxy/login?user=j&pin=s3cr3t":  "/api/v1/namespaces/a/services/web:80/proxy/login?REDACTED",
		"/api/v1/namespaces/a/pods/x/exec?command=sh&command=-c&stdin=true":   "/api/v1/namespaces/a/pods/x/exec?command=sh&command=-c&stdin=true",
		"http://jane:s3cr3t@127.0.0.1/api/v1/pods?watch=1":                    "/api/v1/pods?watch=1",
		"/v1/resources/pods/indexes/label/app%2Fname=a%20b":                   "/v1/resources/pods/indexes/label/app%2Fname=a%20b",
		"/api/v1/secrets?labelSelector=token%3Dx&fieldSelector=metadata.name": "/api/v1/secrets?labelSelector=token%3Dx&fieldSelector=metadata.name",
	} {
		u, err := url.ParseRequestURI(asked)
		if err != nil {
			t.Fatal(err)
		}
		if got := uriOf(u); got != want {
			t.Errorf("%s is written as %s, want %s", asked, got, want)
		}
	}
}

// TestNothingSecretIsWritten: wherever in a request it is.
func TestNothingSecretIsWritten(t *testing.T) {
	r := request("/api/v1/pods?access_token=s3cr3t&continue=s3cr3t",
		"Authorization", "Bearer s3cr3t", "Cookie", "session=s3cr3t", "Last-Event-ID", "s3cr3t", "Proxy-Authorization", "s3cr3t",
		"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.s3cr3t", "X-Remote-User", "s3cr3t", "Audit-ID", "s3cr3t s3cr3t",
		"X-Forwarded-For", "s3cr3t", "Referer", "http://x/?s3cr3t", "Impersonate-Extra-Token", "s3cr3t")
	if line := recorded(t, r, func(r *Record) { r.End(200, 1, false) }); strings.Contains(line, "s3cr3t") {
		t.Errorf("written: %s", line)
	}
}

// TestID: a client's id is taken over if it can be mistaken for nothing else.
func TestID(t *testing.T) {
	for id, taken := range map[string]bool{
		"4d5e6f70-1a2b-4c3d-8e9f-0a1b2c3d4e5f": true, "a": true, "trace:1.2_3": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "a b": false, "a\"b": false, "ä": false, "-a": false, "a\nb": false, "<x>": false,
	} {
		r := request("/")
		r.Header[Header] = []string{id}
		if got := idOf(r); (got == id) != taken || !goodID.MatchString(got) {
			t.Errorf("%q: %q", id, got)
		}
	}
	if a, b := idOf(request("/")), idOf(request("/")); a == b || len(a) != 36 {
		t.Errorf("two requests are %s and %s", a, b)
	}
	if http.CanonicalHeaderKey("Audit-ID") != Header {
		t.Errorf("the header is %s", Header)
	}
}

// TestSources: the last address is the connection's, whatever a request says.
func TestSources(t *testing.T) {
	for _, test := range []struct {
		remote, forwarded string
		want              []string
	}{
		{"10.0.0.1:80", "", []string{"10.0.0.1"}},
		{"[2001:db8::1]:80", "", []string{"2001:db8::1"}},
		{"[fe80::1%eth0]:80", "192.0.2.7", []string{"192.0.2.7", "fe80::1%eth0"}},
		{"10.0.0.1:80", "192.0.2.7, junk, 192.0.2.8", []string{"192.0.2.7", "192.0.2.8", "10.0.0.1"}},
		{"10.0.0.1:80", "10.0.0.1", []string{"10.0.0.1", "10.0.0.1"}},
		{"@", "", []string{"@"}},
	} {
		r := request("/")
		r.RemoteAddr = test.remote
		if test.forwarded != "" {
			r.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if got := sourcesOf(r); !slices.Equal(got, test.want) {
			t.Errorf("from %s for %q: %v, want %v", test.remote, test.forwarded, got, test.want)
		}
	}
	r := request("/")
	r.Header.Set("X-Forwarded-For", strings.Repeat("192.0.2.7,", 100))
	if got := sourcesOf(r); len(got) != maxSources || got[maxSources-1] != "192.0.2.1" {
		t.Errorf("of many: %v", got)
	}
}
