package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// CPU is the user and system time that informerd has used so far. Linux only.
func (i *Informerd) CPU(tb testing.TB) time.Duration {
	tb.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", i.PID()))
	if err != nil {
		tb.Fatalf("read CPU time: %v", err)
	}
	// The name, in parentheses, may hold anything. The times are in hundredths of
	// a second on every system that Go supports.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks int
	for _, n := range []int{11, 12} {
		t, err := strconv.Atoi(fields[n])
		if err != nil {
			tb.Fatalf("read CPU time: %v", err)
		}
		ticks += t
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
