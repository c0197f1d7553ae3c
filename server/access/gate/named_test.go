package gate

import (
	"crypto/tls"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/server/access"
)

func requestCertificates() *tls.Config { return &tls.Config{ClientAuth: tls.RequestClientCert} }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestNamedBy(t *testing.T) {
	places := func(only bool, pairs ...string) access.Named {
		n := access.Named{Only: only}
		for i := 0; i < len(pairs); i += 2 {
			n.Places = append(n.Places, access.Place{Namespace: pairs[i], Name: pairs[i+1]})
		}
		return n
	}
	selected := func(n access.Named, labels, fields string) access.Named {
		n.LabelSelector, n.FieldSelector = labels, fields
		return n
	}
	for url, want := range map[string]access.Named{
		"/":                        {},
		"/v1/query?resources=pods": {},
		"/v1/query?resources=pods&namespace=a&namespace=b":           places(true, "a", "", "b", ""),
		"/v1/query?resources=pods&namespace=a&namespace=b-*":         places(false, "a", ""),
		"/v1/resources/pods/objects?namespace=a":                     places(true, "a", ""),
		"/v1/resources/pods/objects/a/x":                             places(true, "a", "x"),
		"/v1/resources/nodes/objects/-/x":                            places(true, "", "x"),
		"/v1/graph/pods/a/x":                                         places(false, "a", "x"),
		"/v1/graph/dangling?namespace=a":                             places(false, "a", ""),
		"/v1/search?q=x&namespace=a":                                 places(false, "a", ""),
		"/api":                                                       {},
		"/apis/apps/v1":                                              {},
		"/api/v1/pods":                                               {},
		"/api/v1/pods?fieldSelector=metadata.name%3Dx":               selected(places(false, "", "x"), "", "metadata.name=x"),
		"/api/v1/namespaces/a/pods":                                  places(true, "a", ""),
		"/api/v1/namespaces/a/pods/x":                                places(true, "a", "x"),
		"/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx":  selected(places(true, "a", "x"), "", "metadata.name=x"),
		"/api/v1/pods?labelSelector=app%3Dshop":                      selected(places(false), "app=shop", ""),
		"/v1/query?labelSelector=app%3Dshop&namespace=a":             places(true, "a", ""),
		"/api/v1/watch/namespaces/a/pods/x":                          places(true, "a", "x"),
		"/api/v1/namespaces/a":                                       places(true, "", "a"),
		"/api/v1/nodes/x":                                            places(true, "", "x"),
		"/apis/apps/v1/namespaces/a/deployments/x/scale":             places(true, "a", "x"),
		"/clusters/c/apis/apps/v1/namespaces/a/deployments?limit=50": places(true, "a", ""),
		"/clusters/c":                                                {},
	} {
		if diff := cmp.Diff(want, namedBy(httptest.NewRequest("GET", url, nil))); diff != "" {
			t.Errorf("%s: %s", url, diff)
		}
	}
}
