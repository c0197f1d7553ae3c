package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/informerd/informerd/server/access"
)

// anybody lets in everybody, to see everything.
func anybody(*http.Request) (access.Asker, error) { return access.Everyone(), nil }

// TestExposure: an address beyond loopback needs authentication, and TLS or a word that
// it is not needed.
func TestExposure(t *testing.T) {
	for _, test := range []struct {
		Exposure
		want string
	}{
		{Exposure{}, "no authentication configured"},
		{Exposure{TLS: true}, "no authentication configured"},
		{Exposure{PlainHTTP: true}, "no authentication configured"},
		{Exposure{Authenticated: true}, "without TLS"},
		{Exposure{Authenticated: true, TLS: true}, ""},
		{Exposure{Authenticated: true, PlainHTTP: true}, ""},
	} {
		for _, addr := range []string{":8443", "0.0.0.0:8443", "10.0.0.1:8443", "informerd.example.com:8443"} {
			err := CheckAddr(addr, test.Exposure)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s with %+v: %v, want %q", addr, test.Exposure, err, test.want)
			}
		}
		if err := CheckAddr("localhost:8443", test.Exposure); err != nil {
			t.Errorf("loopback with %+v: %v", test.Exposure, err)
		}
	}
}

// TestHostBeyondLoopback: there informerd has names that it cannot know, unless it is
// told them. Pages of other sites may ask nowhere.
func TestHostBeyondLoopback(t *testing.T) {
	for name, test := range map[string]struct {
		options func(*Options)
		host    string
		code    int
	}{
		"beyond loopback": {func(o *Options) { o.Addr, o.Access, o.PlainHTTP = ":0", anybody, true }, "informerd.example.com", 200},
		"another than those it has": {func(o *Options) {
			o.Addr, o.Access, o.PlainHTTP, o.Hosts = ":0", anybody, true, []string{"a.example.com"}
		}, "b.example.com", 403},
		"one of those it has": {func(o *Options) {
			o.Addr, o.Access, o.PlainHTTP, o.Hosts = ":0", anybody, true, []string{"a.example.com"}
		}, "a.example.com", 200},
		"on loopback":                  {func(o *Options) { o.Access = anybody }, "informerd.example.com", 403},
		"on loopback, without anybody": {func(*Options) {}, "informerd.example.com", 403},
	} {
		w := newWorld(t, test.options)
		for _, path := range []string{"/v1/resources", "/api"} {
			if rec := w.get(t, path, "Host", test.host); rec.Code != test.code {
				t.Errorf("%s, %s: %d %s", name, path, rec.Code, rec.Body)
			}
			if rec := w.get(t, path, "Host", test.host, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"); rec.Code != 403 {
				t.Errorf("%s, %s from another site: %d", name, path, rec.Code)
			}
		}
	}
}

// TestReadyzIsDiscreet: who shows nothing learns whether informerd is ready, and whether
// it could know them, and no names.
func TestReadyzIsDiscreet(t *testing.T) {
	trouble := ""
	nobody := func(*http.Request) (access.Asker, error) { return access.From(t.Context()), nil }
	w := newWorld(t, func(o *Options) {
		o.Access = nobody
		o.AccessTrouble = func(string) string { return trouble }
	})
	answers := func(code int, text string) {
		t.Helper()
		for _, rec := range []struct {
			body string
			code int
		}{
			{w.get(t, "/readyz?verbose").Body.String(), w.get(t, "/readyz?verbose").Code},
			{w.get(t, "/readyz", "Accept", typeJSON).Body.String(), w.get(t, "/readyz").Code},
		} {
			if rec.code != code || !strings.Contains(rec.body, text) {
				t.Errorf("%d %s, want %d %s", rec.code, rec.body, code, text)
			}
			for _, secret := range []string{"pods", "secrets", "6443", "refused by 10.0.0.1"} {
				if strings.Contains(rec.body, secret) {
					t.Errorf("says %s: %s", secret, rec.body)
				}
			}
		}
	}
	answers(200, "")
	trouble = "refused by 10.0.0.1"
	answers(200, "cannot be told now")
	w.pods.status.State = "syncing"
	answers(503, "")
	known := newWorld(t, func(o *Options) {
		o.Access = anybody
		o.AccessTrouble = func(string) string { return trouble }
	})
	if body := known.get(t, "/readyz?verbose").Body.String(); !strings.Contains(body, "[!]access to cluster unknown: refused by 10.0.0.1") || !strings.Contains(body, "[+]pods ok") {
		t.Errorf("who may know: %s", body)
	}
}
