package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// Who asked for what is in the file when informerd has stopped, and the file is its
// owner's. Where it is cannot be changed while it runs.
func TestServeAudit(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir+"/c.yaml", "audit: {file: "+dir+"/audit.log}")
	address, log, stop := startServe(t, "--config", file, "--kubeconfig", dir+"/none", "--snapshot", "")
	for _, path := range []string{"/livez", "/v1/resources", "/v1/search?q=x&access_token=s3cr3t"} {
		get(t, "http://"+address+path)
	}
	writeFile(t, file, "audit: {file: "+dir+"/other.log}")
	if text := log.await(t, "need a restart"); !strings.Contains(text, "settings=[audit]") {
		t.Errorf("the log does not name the setting:\n%s", text)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, log)
	}
	data, err := os.ReadFile(dir + "/audit.log")
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for line := range strings.Lines(string(data)) {
		var e struct{ RequestURI string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		uris = append(uris, e.RequestURI)
	}
	if got := strings.Join(uris, " "); got != "/v1/resources /v1/search?q=x&access_token=REDACTED" {
		t.Errorf("recorded are %s", got)
	}
	if info, err := os.Stat(dir + "/audit.log"); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(dir + "/other.log"); err == nil {
		t.Error("the other file was made")
	}
}

// A file that cannot be opened is an error of the start, and names the reason.
func TestServeBadAudit(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(writeFile(t, dir+"/real.log", ""), dir+"/link.log"); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--kubeconfig", dir + "/none", "--snapshot", "",
		"--config", writeFile(t, dir+"/c.yaml", "audit: {file: "+dir+"/link.log}")}, io.Discard, &stderr)
	if code != exitFailure || !strings.Contains(stderr.String(), "open audit log: "+dir+"/link.log is a symbolic link") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

// On the standard output there are the records and nothing else.
func TestServeAuditToStdout(t *testing.T) {
	dir := t.TempDir()
	var stdout bytes.Buffer
	log := newLines()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--kubeconfig", dir + "/none", "--snapshot", "",
			"--config", writeFile(t, dir+"/c.yaml", "audit: {file: '-'}")}, &stdout, log)
	}()
	address := regexp.MustCompile(`msg=serving address=(\S+)`).FindStringSubmatch(log.await(t, "msg=serving address="))[1]
	get(t, "http://"+address+"/v1/resources")
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, log)
	}
	http.DefaultClient.CloseIdleConnections()
	if lines := strings.Split(stdout.String(), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], `{"kind":"Event"`) || lines[1] != "" {
		t.Errorf("on the standard output: %q", lines)
	}
}
