package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cmd/informerd/config"
)

func TestLoadAccess(t *testing.T) {
	dir := t.TempDir()
	good := kubeconfigFor(t, dir+"/good", "http://good.example")
	other := kubeconfigFor(t, dir+"/other", "http://other.example")
	empty := writeFile(t, dir+"/empty", "")
	broken := writeFile(t, dir+"/broken", "clusters: 3")
	for _, test := range []struct {
		name       string
		env        string
		cluster    config.Cluster
		host       string
		namespaces []string
		err        string
	}{
		{"configured", "", config.Cluster{Kubeconfig: good}, "http://good.example", []string{"shop"}, ""},
		{"configured before KUBECONFIG", other, config.Cluster{Kubeconfig: good}, "http://good.example", []string{"shop"}, ""},
		{"KUBECONFIG", other, config.Cluster{}, "http://other.example", []string{"shop"}, ""},
		{"first of KUBECONFIG that exists", dir + "/none:" + other + ":" + good, config.Cluster{}, "http://other.example", []string{"shop"}, ""},
		{"another context", good, config.Cluster{Context: "other"}, "http://good.example", nil, ""},
		{"namespaces configured", good, config.Cluster{Namespaces: []string{"a", "b"}}, "http://good.example", []string{"a", "b"}, ""},
		{"missing", good, config.Cluster{Kubeconfig: dir + "/none"}, "", nil, "read kubeconfig: stat " + dir + "/none: no such file or directory"},
		{"KUBECONFIG missing", dir + "/none", config.Cluster{}, "", nil, "read kubeconfig: KUBECONFIG is " + dir + "/none, which does not exist"},
		{"no such context", good, config.Cluster{Context: "x"}, "", nil, "read kubeconfig " + good + `: it has no context "x", but ctx, other`},
		{"no current context", empty, config.Cluster{}, "", nil, "read kubeconfig " + empty + ": it has no current context: name one"},
		{"broken", broken, config.Cluster{}, "", nil, "read kubeconfig " + broken + ": "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			a, err := loadAccess(test.cluster)
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("loadAccess() = %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.REST.Host != test.host || !slices.Equal(a.Namespaces, test.namespaces) {
				t.Errorf("host %s, namespaces %v; want %s, %v", a.REST.Host, a.Namespaces, test.host, test.namespaces)
			}
			if !strings.HasPrefix(a.REST.UserAgent, "informerd/") {
				t.Errorf("user agent %q", a.REST.UserAgent)
			}
		})
	}
}
