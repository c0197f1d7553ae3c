package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

// kept is how many objects are there before.
const kept = 80

// longVariable has tests wait for what takes minutes.
const longVariable = "INFORMERD_E2E_LONG"

// long skips a test that waits for minutes: for a lease to end, for one.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv(longVariable) == "" {
		t.Skip("it waits for minutes: make e2e-long")
	}
}

// TestRestoredBackup: etcd is restored from a backup, in the ways operators do it,
// with informerd running, stopped or standing still meanwhile. Whatever the restore
// took back, and however far the cluster has come since, informerd shows what is
// there now, soon; readers of its streams, too.
func TestRestoredBackup(t *testing.T) {
	long(t)
	t.Parallel()
	c, err := harness.StartCluster(filepath.Join(t.TempDir(), "cluster"), append([]string{"--apiservers", "2"}, harness.Small...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	for n := range kept {
		createConfigMap(t, c, "default", fmt.Sprintf("kept-%d", n), nil, map[string]any{"n": fmt.Sprint(n)})
	}
	// Verification cannot help in the time there is, but for the last one.
	opts := harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db")}
	if os.Getenv(longVariable) != "" {
		opts.Verify = time.Minute
	}
	i := harness.StartInformerd(t, opts)
	i.WaitLive(t, syncTime)

	change := func(tag string) {
		for n := range 20 {
			createConfigMap(t, c, "default", fmt.Sprintf("%s-%d", tag, n), nil, map[string]any{"of": tag})
		}
		patchConfigMap(t, c, "default", "kept-1", fmt.Sprintf(`{"data":{"by":%q}}`, tag))
	}
	removeSome := func(n int) func(string) {
		return func(string) {
			for n := range n {
				deleteConfigMap(t, c, "default", fmt.Sprintf("kept-%d", 2+n))
			}
		}
	}
	// API servers that start write some thirty times, and so pass a few deletions.
	remove, removeFew := removeSome(kept-10), removeSome(3)
	// pass takes etcd past what informerd has seen, in another resource.
	pass := func(restored harness.Restored) {
		for n := range int(restored.Was-restored.Revision) + 30 {
			createNamespace(t, c, fmt.Sprintf("pass-%d-%d", restored.Revision, n))
		}
	}
	stop, start := i.Stop, i.Start
	still, on := func() { i.Signal(syscall.SIGSTOP) }, func() { i.Signal(syscall.SIGCONT) }
	nothing := func() {}
	for _, tc := range []struct {
		name          string
		history       func(tag string) // between backup and restore
		away, back    func()
		passed        bool
		running, long bool
	}{
		{name: "running", history: change, away: nothing, back: nothing},
		{name: "running, deletions taken back", history: remove, away: nothing, back: nothing},
		{name: "standing still, versions passed", history: change, away: still, back: on, passed: true},
		{name: "stopped", history: change, away: stop, back: start},
		{name: "stopped, versions passed", history: change, away: stop, back: start, passed: true},
		{name: "stopped, deletions taken back", history: remove, away: stop, back: start},
		{name: "running, few deletions taken back", history: removeFew, away: nothing, back: nothing, long: true},
		{name: "stopped, deletions taken back, versions passed", history: remove, away: stop, back: start, passed: true, long: true},
		{name: "API servers running, restarted later", history: change, away: nothing, back: func() { c.Ctl(t, "restart", apiServer, apiServer2) }, running: true},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			if tc.long && os.Getenv(longVariable) == "" {
				t.Skipf("only verification finds this, which takes a minute; set %s", longVariable)
			}
			i.WaitLive(t, syncTime)
			harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
			f := harness.Follow(t, i, "/v1/resources/configmaps/objects")
			f.Wait(t)
			before := len(i.LogLines("another history"))
			c.Backup(t, "before")
			tc.history(fmt.Sprintf("future-%d", fresh()))
			harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
			waitSaved(t, i)

			tc.away()
			restored := c.Restore(t, "before", harness.RestoreOptions{Running: tc.running})
			if tc.passed {
				pass(restored)
			}
			tc.back()
			waitServing(t, c)
			began := time.Now()
			i.WaitLive(t, syncTime)
			timeout := 30 * time.Second
			if tc.long {
				timeout = 4 * time.Minute
			}
			// In any state: what is found by verification alone was live.
			harness.CheckEqual(t, c, i, harness.Check{Timeout: timeout})
			t.Logf("equal %.1f s after the restore", time.Since(began).Seconds())
			f.CheckEqual(t, selected(t, c, configMaps, nil))
			for _, line := range i.LogLines("another history")[before:] {
				t.Log(line)
			}
		})
		if !ok {
			return // the next would wait for equality in vain
		}
	}
}
