package config_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cmd/informerd/config"
)

func TestPatternMatches(t *testing.T) {
	for _, test := range []struct {
		pattern, version string
		match, miss      []string
	}{
		{"*", "", []string{"pods", "deployments.apps", "a.b.c"}, nil},
		{"pods", "", []string{"pods"}, []string{"pods.metrics.k8s.io", "nodes"}},
		{"pods.v1", "v1", []string{"pods"}, []string{"pods.metrics.k8s.io"}},
		{"pods.v1.", "v1", []string{"pods"}, nil},
		{"pods.metrics.k8s.io", "", []string{"pods.metrics.k8s.io"}, []string{"pods"}},
		{"deployments.apps", "", []string{"deployments.apps"}, []string{"deployments", "deployments.extensions"}},
		{"deployments.v1.apps", "v1", []string{"deployments.apps"}, []string{"deployments"}},
		{"*.apps", "", []string{"deployments.apps", "x.apps"}, []string{"deployments", "x.my.apps"}},
		{"*.v1beta1.apps", "v1beta1", []string{"deployments.apps"}, nil},
		{"*.v1", "v1", []string{"pods"}, []string{"deployments.apps"}},
		{"*.cert-manager.io", "", []string{"issuers.cert-manager.io"}, []string{"orders.acme.cert-manager.io"}},
		{"*.*.cert-manager.io", "", []string{"orders.acme.cert-manager.io"}, []string{"issuers.cert-manager.io"}},
		{"*.*cert-manager.io", "", []string{"orders.acme.cert-manager.io", "issuers.cert-manager.io"}, []string{"pods"}},
		{"node*", "", []string{"nodes"}, []string{"nodes.metrics.k8s.io"}},
		{"[a-c]*.apps", "", []string{"controllerrevisions.apps"}, []string{"deployments.apps"}},
		{"widgets.v1x.io", "", []string{"widgets.v1x.io"}, nil},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			p, err := config.ParsePattern(test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if p.Version() != test.version {
				t.Errorf("Version() = %q, want %q", p.Version(), test.version)
			}
			for _, name := range test.match {
				if !p.Matches(schema.ParseGroupResource(name)) {
					t.Errorf("does not match %s", name)
				}
			}
			for _, name := range test.miss {
				if p.Matches(schema.ParseGroupResource(name)) {
					t.Errorf("matches %s", name)
				}
			}
		})
	}
}
