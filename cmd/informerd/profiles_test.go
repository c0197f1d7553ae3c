package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Profiles are served beside what everybody sees, and end with informerd.
func TestServeProfiles(t *testing.T) {
	dir := t.TempDir()
	address, log, stop := startServe(t, "--kubeconfig", dir+"/none", "--snapshot", "", "--pprof", "127.0.0.1:0")
	at := regexp.MustCompile(`url=(http://\S+/debug/pprof/)`).FindStringSubmatch(log.await(t, "serving profiles"))[1]
	if code, body := get(t, at); code != http.StatusOK || !strings.Contains(body, "goroutine") {
		t.Errorf("profiles: %d %.100s", code, body)
	}
	if code, _ := get(t, "http://"+address+"/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("profiles where everything else is served: %d", code)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, log)
	}
	if resp, err := http.Get(at); err == nil {
		_ = resp.Body.Close()
		t.Error("profiles are served after the end")
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--pprof", "0.0.0.0:6060"}, io.Discard, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "--pprof: address of profiles") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
