package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestDiskFull: the disk of the snapshot is full while objects change, and informerd
// is killed. Started again, still without the API server, it shows what it saved and
// how old that is; with it, it goes on from there, lists nothing and lacks nothing.
func TestDiskFull(t *testing.T) {
	long(t)
	inTurn(t, &smallLane)
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("a disk of its own takes more rights: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := smallCluster(t)
	churn := newChurner(t, c, builtinKinds(), "full")
	churn.pause = 20 * time.Millisecond
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(disk, "informerd.db")})
	i.WaitLive(t, syncTime)
	witness := c.Witness(t, "full", 50*time.Millisecond)
	witness.Read(t, i)
	waitSaved(t, i)
	stop := churn.start(t.Context(), 3)
	waitChanges(t, churn, 60)

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	harness.Eventually(t, syncTime, "a readyz that tells of the disk and is ready", func() error {
		return readyzSays(t, i, http.StatusOK, "no space left")
	})
	waitChanges(t, churn, 300)
	i.Kill()
	stop()
	c.Ctl(t, "pause", apiServer)
	resume := func() { c.Ctl(t, "resume", apiServer) }
	t.Cleanup(resume)
	i.Start()
	harness.Eventually(t, 30*time.Second, "answers from the snapshot", func() error {
		a, err := i.Get("/v1/resources/configmaps/objects")
		if err == nil && (a.Status != http.StatusOK || a.Header.Get("Informerd-State") != "warm") {
			err = fmt.Errorf("%d, %s", a.Status, a.Header.Get("Informerd-State"))
		}
		return err
	})
	mark := c.AuditMark(t)
	resume()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	i.WaitLive(t, syncTime)
	witness.Stop(t)
	checkNoLists(t, c, mark)
	harness.CheckEqual(t, c, i, harness.Check{})
	churn.check(t)
	harness.Eventually(t, syncTime, "a readyz that has forgotten the disk", func() error {
		if a := i.MustGet(t, "/readyz?verbose"); strings.Contains(string(a.Body), "no space left") {
			return fmt.Errorf("it says %.600s", a.Body)
		}
		return nil
	})
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte("full"), 1024)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
