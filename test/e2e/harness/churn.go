package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Churn changes the pods of a namespace, rate times a second for as long as
// duration, and returns how many seconds it took. Changes are numbered from 1, in
// the annotation devcluster.informerd.io/change.
func (c *Cluster) Churn(tb testing.TB, namespace string, rate int, duration time.Duration) (seconds float64) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), duration+5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, "churn", "--dir", c.Dir, "--namespace", namespace)
	cmd.Stdin = strings.NewReader(fmt.Sprintln(rate, duration))
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("churn: %v\n%s%s", err, out, errors.String())
	}
	var replies struct {
		Changes int
		Seconds float64
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	for d.More() {
		if err := d.Decode(&replies); err != nil {
			tb.Fatalf("churn replied %q: %v", out, err)
		}
	}
	if want := int(float64(rate) * duration.Seconds()); replies.Changes != want {
		tb.Fatalf("churn made %d of %d changes", replies.Changes, want)
	}
	return replies.Seconds
}
