package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// plugin is a credential plugin that works while a file is there, and notes its runs.
const plugin = `#!/bin/sh
cd "$(dirname "$0")" && echo >> runs
test -e works || exit 1
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"shown","expirationTimestamp":"2000-01-01T00:00:00Z"}}'
`

// TestFailingExecPlugin: a credential plugin that fails is not run again for each request,
// whichever client sends it, but ever more seldom; once it works again everything does.
func TestFailingExecPlugin(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer shown" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	writeFile(t, dir+"/plugin", plugin)
	if err := os.Chmod(dir+"/plugin", 0o700); err != nil {
		t.Fatal(err)
	}
	a := newAccess(config.Cluster{}, &rest.Config{Host: server.URL, ExecProvider: &clientcmdapi.ExecConfig{
		Command: dir + "/plugin", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}, "")
	var said bytes.Buffer
	now := time.Now()
	a.plugin.log, a.plugin.now = slog.New(slog.NewTextHandler(&said, nil)), func() time.Time { return now }
	var clients [2]*http.Client
	for i := range clients {
		var err error
		if clients[i], err = httpClientOf(a.ClusterConfig); err != nil {
			t.Fatal(err)
		}
		defer utilnet.CloseIdleConnectionsFor(clients[i].Transport)
	}
	ask := func() (errs []error) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				resp, err := clients[i%2].Get(server.URL)
				if err == nil {
					if resp.Body.Close(); resp.StatusCode != http.StatusOK {
						t.Errorf("answer %s", resp.Status)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
		wg.Wait()
		return errs
	}
	runs := func() int {
		b, err := os.ReadFile(dir + "/runs")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
	wait := time.Second
	for n := range 10 {
		errs := ask()
		if len(errs) != 20 || !strings.Contains(errs[0].Error(), "plugin failed with exit code 1") {
			t.Fatalf("try %d: %d errors: %v", n, len(errs), errs)
		}
		if runs() != n+1 {
			t.Fatalf("after %d tries it ran %d times", n+1, runs())
		}
		now = now.Add(wait - time.Millisecond)
		if ask(); runs() != n+1 {
			t.Errorf("it ran again before %s were over", wait)
		}
		now = now.Add(time.Millisecond)
		wait = min(2*wait, time.Minute)
	}
	writeFile(t, dir+"/works", "")
	if errs := ask(); len(errs) != 0 {
		t.Errorf("it works again: %v", errs)
	}
	if err := os.Remove(dir + "/works"); err != nil {
		t.Fatal(err)
	}
	// What it gave is over at once. Those who found it working run it once more each.
	ask()
	before := runs()
	now = now.Add(999 * time.Millisecond)
	if ask(); runs() != before {
		t.Error("it runs for each request after it worked")
	}
	if warnings := strings.Count(said.String(), "level=WARN"); warnings != 2 || strings.Count(said.String(), "level=INFO") != 1 {
		t.Errorf("said:\n%s", &said)
	}
}
