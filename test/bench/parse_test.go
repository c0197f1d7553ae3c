package main

import (
	"os"
	"testing"
)

func TestAuditLine(t *testing.T) {
	for _, c := range []struct {
		verb, uri         string
		list, definitions bool
	}{
		{"list", "/api/v1/pods?limit=500", true, false},
		{"list", "/api/v1/pods?limit=10", true, false},
		{"list", "/api/v1/namespaces?limit=1", false, false},
		{"watch", "/api/v1/pods?sendInitialEvents=true&watch=true", true, false},
		{"watch", "/api/v1/pods?resourceVersion=7&watch=true", false, false},
		{"get", "/api/v1/namespaces/kube-system", false, false},
		{"watch", "/apis/apiregistration.k8s.io/v1/apiservices?sendInitialEvents=true&watch=true", true, true},
		{"list", "/apis/apiregistration.k8s.io/v1/apiservices", true, false},
	} {
		r := auditLine{Verb: c.verb, RequestURI: c.uri}
		if r.isList() != c.list || r.isDefinitions() != c.definitions {
			t.Errorf("%s %s: list %v, definitions %v", c.verb, c.uri, r.isList(), r.isDefinitions())
		}
	}
}

func TestChangeOf(t *testing.T) {
	for line, want := range map[string]int{
		`{"type":"MODIFIED","object":{"metadata":{"annotations":{"devcluster.informerd.io/change":"17"},"managedFields":[{"fieldsV1":{"f:devcluster.informerd.io/change":{}}}]}}}`: 17,
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:devcluster.informerd.io/change":{}}}]}}`:                                                                                    -1,
		`{"metadata":{"annotations":{"devcluster.informerd.io/change":"x"}}}`:                                                                                                      -1,
		`event: MODIFIED`: -1,
		``:                -1,
	} {
		n, ok := changeOf([]byte(line))
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("changeOf(%s) = %d, want %d", line, n, want)
		}
	}
}

func TestParseFlags(t *testing.T) {
	o, err := parseFlags([]string{"--pods", "500", "--rows", "cold,warm"})
	if err != nil || o.dir != "data/bench-500" || o.json != "test/results/bench-500-cold-warm.json" || o.svg != "test/results/bench-500-cold-warm.svg" ||
		len(o.groups) != 2 || len(o.peers) != len(allPeers) {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parseFlags(nil); err != nil || o.json != "test/results/bench-20000.json" {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parseFlags([]string{"--from", "docs/a.json,b.json", "--peers", "none"}); err != nil || o.svg != "docs/a.svg" || len(o.from) != 2 || o.save || len(o.peers) != 0 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range [][]string{{"--rows", "hot"}, {"--rows", ""}, {"--pods", "0"}, {"--rounds", "0"}, {"--peers", "rancher"}, {"extra"}} {
		if _, err := parseFlags(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	if _, err := cpuSeconds(os.Getpid()); err != nil {
		t.Error(err)
	}
	peak, err := statusBytes(os.Getpid(), "VmHWM")
	if err != nil || peak < 1<<20 {
		t.Errorf("peak RSS of this test = %v bytes, %v", peak, err)
	}
}
