package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"testing"
)

// Authorize has Kubernetes' own RBAC authorizer judge requests: lines are as devcluster
// authorize reads them, and the verdicts are those on the requests among them, in order.
func Authorize(tb testing.TB, lines io.Reader) (allowed []bool) {
	tb.Helper()
	program, err := devcluster()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), program, "authorize")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = lines, &out, &errs
	if err := cmd.Run(); err != nil {
		tb.Fatalf("devcluster authorize: %v\n%s", err, tail(errs.String(), 40))
	}
	for answers := json.NewDecoder(&out); ; {
		var a struct{ Allowed *bool }
		switch err := answers.Decode(&a); {
		case errors.Is(err, io.EOF):
			return allowed
		case err != nil || a.Allowed == nil:
			tb.Fatalf("answer %d of devcluster authorize: %v", len(allowed)+1, err)
		}
		allowed = append(allowed, *a.Allowed)
	}
}
