// Package harness runs devcluster and informerd as processes, the way an
// operator does, and looks at both from outside: the API server's own answers
// and audit log on one side, informerd's HTTP API and log on the other. Tests
// and benchmarks share it.
//
// It knows nothing of informerd's packages: what it compares with is computed
// anew from the API server's JSON.
package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Root is the directory of the module.
func Root() (string, error) { return root() }

var root = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod in %s or above", dir)
		}
	}
})

const (
	pollFirst = 20 * time.Millisecond
	pollMost  = 250 * time.Millisecond
)

// Eventually tries until try returns nil, and fails the test with its last error
// after timeout.
func Eventually(tb testing.TB, timeout time.Duration, what string, try func() error) {
	tb.Helper()
	if err := Poll(timeout, try); err != nil {
		tb.Fatalf("%s: not within %v: %v", what, timeout, err)
	}
}

// Poll tries until try returns nil, and returns its last error after timeout.
func Poll(timeout time.Duration, try func() error) error {
	deadline := time.Now().Add(timeout)
	for pause := pollFirst; ; pause = min(pause*3/2, pollMost) {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}

// tail is the end of what it has printed.
func tail(s string, lines int) string {
	all := strings.SplitAfter(s, "\n")
	if len(all) > lines {
		return fmt.Sprintf("... %d lines\n", len(all)-lines) + strings.Join(all[len(all)-lines:], "")
	}
	return s
}
