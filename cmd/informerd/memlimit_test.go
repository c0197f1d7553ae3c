package main

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestLimitMemory: the runtime gets nine tenths of what the control group allows, and what
// is set by hand is left alone. That the smallest limit of nested groups counts, and how
// the files of both versions of control groups are read, is memlimit's own to test.
func TestLimitMemory(t *testing.T) {
	for name, test := range map[string]struct {
		allowed uint64
		err     error
		env     string
		want    int64
		said    string // and nothing else
	}{
		"a limit":         {allowed: 1 << 30, want: 966367641, said: `level=INFO msg="memory is limited"`},
		"no limit":        {err: memlimit.ErrNoLimit, want: math.MaxInt64},
		"no group":        {err: memlimit.ErrNoCgroup, want: math.MaxInt64},
		"no groups":       {err: memlimit.ErrCgroupsNotSupported, want: math.MaxInt64},
		"cannot be read":  {err: errors.New("permission denied"), want: math.MaxInt64, said: `level=WARN msg="the memory limit is not known, set GOMEMLIMIT" err="failed to set GOMEMLIMIT: permission denied"`},
		"more than there": {allowed: math.MaxUint64, want: math.MaxInt64},
		"set by hand":     {allowed: 1 << 30, env: "4GiB", want: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(math.MaxInt64)
			defer debug.SetMemoryLimit(before)
			t.Setenv("GOMEMLIMIT", test.env) // too late for the runtime of this process
			if test.env == "" {
				if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
					t.Fatal(err)
				}
			}
			var said bytes.Buffer
			limitMemory(func() (uint64, error) { return test.allowed, test.err }, slog.New(slog.NewTextHandler(&said, nil)))
			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("the limit is %d, want %d", got, test.want)
			}
			if text := said.String(); !strings.Contains(text, test.said) || test.said == "" && text != "" {
				t.Errorf("said: %s", text)
			}
		})
	}
}
