package cluster

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		opts Options
		want string
	}{
		"all":               {Options{Components: Components, Seed: "demo", Pods: 1}, ""},
		"unknown component": {Options{Components: []string{etcd, apiServer, "kubelet"}}, "kubelet"},
		"no etcd":           {Options{Components: []string{apiServer}}, "must contain etcd"},
		"unknown seed":      {Options{Components: Components, Seed: "prod"}, "prod"},
		"negative":          {Options{Components: Components, Pods: -1}, "negative"},
		"four API servers":  {Options{Components: Components, APIServers: 4}, "--apiservers"},
		"program of none":   {Options{Components: Components, Programs: []string{"kube-apiserver-2=/bin/sh"}}, "kube-apiserver-2"},
		"program":           {Options{Components: Components, APIServers: 2, Programs: []string{"kube-apiserver-2=/bin/sh"}}, ""},
		"missing program":   {Options{Components: Components, Programs: []string{"kube-apiserver=/nowhere"}}, "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			test.opts.APIServers = max(test.opts.APIServers, 1)
			err := test.opts.validate()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("validate() = %v, want %q", err, test.want)
			}
		})
	}
}

func TestPickPort(t *testing.T) {
	taken := map[int]bool{}
	first, err := pickPort(0, taken)
	if err != nil {
		t.Fatal(err)
	}
	if first < minPort || first >= maxPort {
		t.Errorf("port %d is outside %d-%d", first, minPort, maxPort)
	}
	if again, err := pickPort(first, map[int]bool{}); err != nil || again != first {
		t.Errorf("pickPort(%d) = %d, %v: a free port was not kept", first, again, err)
	}
	if other, err := pickPort(first, taken); err != nil || other == first {
		t.Errorf("pickPort(%d) = %d, %v although it is taken", first, other, err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	if other, err := pickPort(port, taken); err != nil || other == port {
		t.Errorf("pickPort(%d) = %d, %v although it is in use", port, other, err)
	}
}

func TestLockDir(t *testing.T) {
	dir := t.TempDir()
	if err := writeInfo(dir, &Info{PID: 4711}); err != nil {
		t.Fatal(err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(dir); err == nil || !strings.Contains(err.Error(), "pid 4711") {
		t.Errorf("second lockDir() = %v, want who holds it", err)
	}
	lock.Close()
	again, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestSavedPorts(t *testing.T) {
	dir := t.TempDir()
	if got := savedPorts(dir); len(got) != 0 {
		t.Errorf("savedPorts of an empty directory = %v", got)
	}
	info := &Info{Balancer: "127.0.0.1:23791", Proxy: "http://127.0.0.1:23792", Components: []ComponentInfo{{Name: etcd, Port: 23790}}}
	if err := writeInfo(dir, info); err != nil {
		t.Fatal(err)
	}
	if got := savedPorts(dir); got[etcd] != 23790 || got[balancerPort] != 23791 || got[proxyPort] != 23792 {
		t.Errorf("saved ports = %v, want 23790 to 23792", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "devcluster.json"), []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := savedPorts(dir); len(got) != 0 {
		t.Errorf("savedPorts of a damaged file = %v", got)
	}
}

// TestEmbeddedYAML makes a typing error fail here, not in a component's log.
func TestEmbeddedYAML(t *testing.T) {
	documents := strings.Split(string(stages), "\n---\n")
	for i, doc := range append(documents, string(auditPolicy)) {
		var v map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &v); err != nil {
			t.Errorf("document %d: %v", i, err)
		} else if v["kind"] == nil {
			t.Errorf("document %d has no kind", i)
		}
	}
}

func TestSettled(t *testing.T) {
	events := make(chan int, 3)
	events <- 1
	events <- 2
	if !settled(t.Context(), events, time.Millisecond) {
		t.Error("settled() = false although events came and stopped")
	}
	close(events)
	if settled(t.Context(), events, time.Millisecond) {
		t.Error("settled() = true although the channel is closed")
	}
}
