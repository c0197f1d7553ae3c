package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server/kubeapi"
)

func TestAuthentication(t *testing.T) {
	parse := func(text string) *config.Config {
		t.Helper()
		c, err := config.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := parse(""); c.Authentication != nil || c.Authorization.Mode != config.Review || c.Kubernetes.Lists != kubeapi.Strict {
		t.Errorf("without: %+v %+v %+v", c.Authentication, c.Authorization, c.Kubernetes)
	}
	c := parse("authentication: {}")
	if diff := cmp.Diff(&config.Authentication{TokenReview: config.TokenReview{CacheTTL: 10 * time.Second}}, c.Authentication); diff != "" {
		t.Error(diff)
	}
	c = parse(`
authentication:
  anonymous: true
  clientCAFile: /etc/clients.pem
  requestHeader:
    clientCAFile: /etc/proxy.pem
    allowedNames: [front]
    usernameHeaders: [X-User, X-Remote-User]
    groupHeaders: [X-Groups]
    uidHeaders: []
  tokenReview: {audiences: [informerd], cacheTTL: 5s}
authorization: {mode: rbac}
kubernetes: {lists: visible}
`)
	want := &config.Authentication{
		Anonymous: true, ClientCAFile: "/etc/clients.pem",
		RequestHeader: &config.RequestHeader{
			ClientCAFile: "/etc/proxy.pem", AllowedNames: []string{"front"}, UsernameHeaders: []string{"X-User", "X-Remote-User"},
			UIDHeaders: []string{}, GroupHeaders: []string{"X-Groups"}, ExtraHeaderPrefixes: []string{"X-Remote-Extra-"},
		},
		TokenReview: config.TokenReview{Audiences: []string{"informerd"}, CacheTTL: 5 * time.Second},
	}
	if diff := cmp.Diff(want, c.Authentication); diff != "" {
		t.Error(diff)
	}
	if c.Authorization.Mode != config.RBAC || c.Kubernetes.Lists != kubeapi.Visible {
		t.Errorf("%+v %+v", c.Authorization, c.Kubernetes)
	}
}

func TestAuthenticationMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"authentication: true":                                                                 `f:1:17: authentication: is true, needs keys and values`,
		"authentication: {anonymus: true}":                                                     `f:1:18: authentication.anonymus: unknown key, did you mean "anonymous"?`,
		"authentication: {anonymous: yes please}":                                              `f:1:29: authentication.anonymous: is "yes please", needs true or false`,
		"authentication: {requestHeader: {allowedNames: [a]}}":                                 `f:1:33: authentication.requestHeader: needs clientCAFile, by which the proxy is told from those who pretend to be it`,
		"authentication: {tokenReview: {cacheTTL: 1h}}":                                        `f:1:42: authentication.tokenReview.cacheTTL: duration 1h is out of range: from 1s to 1m`,
		"authentication: {tokenReview: {audiences: ['']}}":                                     `f:1:44: authentication.tokenReview.audiences[0]: is empty`,
		"authorization: {mode: abac}":                                                          `f:1:23: authorization.mode: bad value "abac": did you mean "rbac"?`,
		"kubernetes: {lists: all}":                                                             `f:1:21: kubernetes.lists: bad value "all": known are strict, visible`,
		"authentication: {}\nlisten: 0.0.0.0:80":                                               `f:2:9: listen: listen address "0.0.0.0:80" is not a loopback address, and without TLS whoever is on the way could read tokens and answers: give tls.certFile and tls.keyFile, or say tls.plainHTTP: true where something else encrypts`,
		"listen: :80\ntls: {certFile: a, keyFile: b}":                                          `f:1:9: listen: listen address ":80" means every address of this machine, and informerd has no authentication configured: whoever reaches it could read everything it holds; configure authentication, or listen on 127.0.0.1:80 and put an authenticating proxy in front of it on the same machine`,
		"listen: :80\ntls: {plainHTTP: true}":                                                  `f:1:9: listen: listen address ":80" means every address of this machine, and informerd has no authentication configured: whoever reaches it could read everything it holds; configure authentication, or listen on 127.0.0.1:80 and put an authenticating proxy in front of it on the same machine`,
		"listen: :80\ntls: {certFile: a, keyFile: b}\nauthentication: {}":                      "",
		"authentication: {}\nlisten: 10.0.0.1:80\ntls: {plainHTTP: true}":                      "",
		"authentication: {requestHeader: {clientCAFile: a, usernameHeaders: [Authorization]}}": `f:1:69: authentication.requestHeader.usernameHeaders[0]: bad header "Authorization": it has a meaning of its own`,
		"authentication: {requestHeader: {clientCAFile: a, groupHeaders: ['a b']}}":            `f:1:66: authentication.requestHeader.groupHeaders[0]: bad header "a b": letters, digits and -`,
	} {
		_, err := config.Parse("f", []byte(text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}
