package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/persist"
)

// startServe runs the serve command until the test ends, or stop is called; it
// returns the address it serves on.
func startServe(t *testing.T, args ...string) (address string, log *lines, stop func() int) {
	t.Helper()
	log = newLines()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), io.Discard, log)
	}()
	stopped := false
	stop = func() int {
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if !stopped {
			stop()
		}
		http.DefaultClient.CloseIdleConnections()
	})
	text := log.await(t, "msg=serving address=")
	return regexp.MustCompile(`msg=serving address=(\S+)`).FindStringSubmatch(text)[1], log, stop
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// Without a kubeconfig, informerd runs, says why it is not ready, and stops
// cleanly.
func TestServeWithoutCluster(t *testing.T) {
	dir := t.TempDir()
	address, log, stop := startServe(t, "--kubeconfig", dir+"/none", "--snapshot", dir+"/informerd.db")
	if code, body := get(t, "http://"+address+"/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d %s", code, body)
	}
	log.await(t, "cannot connect to the cluster")
	code, body := get(t, "http://"+address+"/readyz?verbose")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, dir+"/none: no such file") {
		t.Errorf("/readyz does not explain: %d %s", code, body)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, log)
	}
	if text := log.await(t, "msg=stopped"); strings.Contains(text, "level=ERROR") {
		t.Errorf("errors in the log:\n%s", text)
	}
	// The file is closed and whole: another process may have it.
	db, err := persist.Open(persist.Options{Path: dir + "/informerd.db"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever is wrong with the snapshot, informerd serves on from memory and says
// so.
func TestServeWithoutSnapshot(t *testing.T) {
	dir := t.TempDir()
	held, err := persist.Open(persist.Options{Path: dir + "/held.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	writeFile(t, dir+"/file", "")
	for name, path := range map[string]string{
		"locked":       dir + "/held.db",
		"no folder":    dir + "/file/informerd.db",
		"is a folder":  dir,
		"switched off": "",
	} {
		t.Run(name, func(t *testing.T) {
			address, log, stop := startServe(t, "--kubeconfig", dir+"/none", "--snapshot", path)
			if code, _ := get(t, "http://"+address+"/livez"); code != http.StatusOK {
				t.Errorf("/livez: %d", code)
			}
			_, body := get(t, "http://"+address+"/metrics")
			if !strings.Contains(body, "informerd_snapshot") {
				t.Errorf("/metrics says nothing of the snapshot")
			}
			if code := stop(); code != 0 {
				t.Errorf("exit code %d; log:\n%s", code, log)
			}
			said := strings.Count(log.String(), "cannot use the snapshot")
			if want := map[bool]int{true: 1, false: 0}[path != ""]; said != want {
				t.Errorf("said %d times, want %d:\n%s", said, want, log)
			}
		})
	}
}

// What the configuration leaves out since the last run is not kept on disk.
func TestServeForgetsUnwatched(t *testing.T) {
	dir := t.TempDir()
	open := func() *persist.DB {
		t.Helper()
		db, err := persist.Open(persist.Options{Path: dir + "/informerd.db"})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	var batches []cache.Batch
	for _, s := range []cache.Saved{savedOf("default", "pods", "v1"), savedOf("default", "nodes", "v1"), savedOf("gone", "pods", "v1")} {
		s.ResourceVersions = map[string]string{"": "1"}
		batches = append(batches, cache.Batch{Saved: s, Reset: true})
	}
	if err := errors.Join(db.Commit(batches, nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, dir+"/c.yaml", `resources: [{match: [pods], drop: []}]`)
	_, log, stop := startServe(t, "--config", file, "--kubeconfig", dir+"/none", "--snapshot", dir+"/informerd.db")
	if code := stop(); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, log)
	}
	db = open()
	defer db.Close()
	saved, err := db.Saved()
	if err != nil || len(saved) != 1 || saved[0].Spec.Resource != savedOf("default", "pods", "v1").Spec.Resource {
		t.Errorf("Saved() = %v, %v; want the pods of default; log:\n%s", saved, err, log)
	}
}

// A taken port ends the start with the reason.
func TestServeOnTakenPort(t *testing.T) {
	dir := t.TempDir()
	address, _, _ := startServe(t, "--kubeconfig", dir+"/none", "--snapshot", "")
	log := newLines()
	code := run(t.Context(), []string{"serve", "--listen", address, "--kubeconfig", dir + "/none", "--snapshot", dir + "/db"}, io.Discard, log)
	if code != exitFailure || !strings.Contains(log.String(), "address already in use") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
}

// The cluster's resources are shown as discovered, with what the rules make of
// them; a change of the file takes effect while running.
func TestServeAndReload(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "apps Deployment deployments v1")
	dir := t.TempDir()
	file := writeFile(t, dir+"/c.yaml", `resources: [{match: [pods], watch: false}, {match: ["*.apps"]}]`)
	address, log, stop := startServe(t, "--config", file, "--kubeconfig", kubeconfigFor(t, dir+"/k", api.URL), "--snapshot", "")
	log.await(t, "resources discovered")
	watched := func() map[string]bool {
		var list struct {
			Items []struct{ Name, State string }
		}
		_, body := get(t, "http://"+address+"/v1/resources")
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, i := range list.Items {
			all[i.Name] = i.State != "unwatched"
		}
		return all
	}
	until(t, func() bool { w := watched(); return len(w) == 2 && !w["pods"] && w["deployments.apps"] })
	if err := os.WriteFile(file, []byte(`resources: [{match: [pods]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	log.await(t, "configuration reloaded")
	until(t, func() bool { w := watched(); return w["pods"] && !w["deployments.apps"] })
	if code := stop(); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, log)
	}
}

// until asks again and again.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !condition() {
		if ctx.Err() != nil {
			t.Fatal("condition is never met")
		}
	}
}

// Whatever is wrong with the keys of the snapshot, informerd serves on, says what is
// wrong, and neither loses the file nor writes to it without them.
func TestServeWrongKey(t *testing.T) {
	dir := t.TempDir()
	path, keyFile := dir+"/informerd.db", dir+"/keys"
	config := writeFile(t, dir+"/config.yaml", "snapshot: {path: "+path+", encryption: {keyFile: "+keyFile+"}}\n")
	serve := func(want string) string {
		t.Helper()
		_, log, stop := startServe(t, "--config", config, "--kubeconfig", dir+"/none")
		if code := stop(); code != 0 {
			t.Errorf("exit code %d; log:\n%s", code, log)
		}
		if want != "" && !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
		return log.String()
	}
	writeKeys(t, keyFile, "right")
	keys, err := persist.ReadKeys(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	db, err := persist.Open(persist.Options{Path: path, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	saved := savedOf("default", "pods", "v1")
	saved.ResourceVersions = map[string]string{"": "1"}
	if err := errors.Join(db.Commit([]cache.Batch{{Saved: saved, Reset: true}}, nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	if text := serve(""); strings.Contains(text, "level=ERROR") {
		t.Errorf("errors in the log:\n%s", text)
	}
	writeKeys(t, keyFile, "wrong")
	serve("snapshot file cannot be decrypted, moved aside, starting cold")
	writeKeys(t, keyFile, "right")
	serve("back in its place")

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(keyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	serve("cannot use the snapshot, serving from memory only")
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	serve("keys: no such file or directory")
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
}
