package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is one cold sync of one subject.
type sample struct {
	// Wall is from the start of the process until it had all objects.
	Wall float64 `json:"wallSeconds"`
	// CPU is user and system time until the process was quiet again, so that
	// work put off until after the sync is counted.
	CPU float64 `json:"cpuSeconds"`
	// Peak is the highest resident memory until then, Resident that at the end.
	Peak     float64 `json:"peakBytes"`
	Resident float64 `json:"residentBytes"`
	// Heap is what the process kept of it on the Go heap after two garbage
	// collections, less what it had before; 0 if it was not asked.
	Heap float64 `json:"heapBytes,omitempty"`
}

// measureSynced completes the sample of a process that is synced now.
func (p *process) measureSynced(ctx context.Context, wall time.Duration) (sample, error) {
	s := sample{Wall: wall.Seconds()}
	var err, peakErr, residentErr error
	s.CPU, err = settle(ctx, p.pid(), 0.05, 30*time.Second)
	s.Peak, peakErr = statusBytes(p.pid(), "VmHWM")
	s.Resident, residentErr = statusBytes(p.pid(), "VmRSS")
	if err := errors.Join(err, peakErr, residentErr); err != nil {
		if died := p.died(); died != nil {
			return s, died
		}
		return s, fmt.Errorf("measure %s: %w", p.name, err)
	}
	return s, nil
}

const settleStep = 250 * time.Millisecond

// settle waits until a process is quiet: three steps in a row in which it used
// at most the share idle of one core. It returns the CPU seconds used so far.
func settle(ctx context.Context, pid int, idle float64, atMost time.Duration) (float64, error) {
	before, err := cpuSeconds(pid)
	if err != nil {
		return 0, err
	}
	limit := time.Now().Add(atMost)
	for quiet := 0; quiet < 3; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(settleStep):
		}
		now, err := cpuSeconds(pid)
		if err != nil {
			return 0, err
		}
		if now-before <= idle*settleStep.Seconds() {
			quiet++
		} else {
			quiet = 0
		}
		before = now
		if time.Now().After(limit) {
			logf("process %d is still busy after %s; measured as it is", pid, atMost)
			break
		}
	}
	return before, nil
}

// ticksPerSecond is the unit of times in /proc, the same on all Linux systems
// that Go supports.
const ticksPerSecond = 100

// cpuSeconds is the user and system time of a process, its ended threads
// included.
func cpuSeconds(pid int) (float64, error) {
	data, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0, fmt.Errorf("read CPU time (this needs Linux): %w", err)
	}
	// The name, in parentheses, may hold anything.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: %q has too few fields", data)
	}
	user, err := strconv.ParseUint(fields[11], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	system, err := strconv.ParseUint(fields[12], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return float64(user+system) / ticksPerSecond, nil
}

// statusBytes reads one size of /proc/PID/status. Unlike rusage's maxrss, VmHWM
// there knows nothing of the process that this one was forked from.
func statusBytes(pid int, field string) (float64, error) {
	data, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return 0, fmt.Errorf("read memory (this needs Linux): %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("read memory: no %s", field)
}

// resetPeak makes VmHWM begin anew at the present resident memory, which it
// returns.
func resetPeak(pid int) (float64, error) {
	if err := os.WriteFile(procFile(pid, "clear_refs"), []byte("5"), 0); err != nil {
		return 0, fmt.Errorf("reset peak memory: %w", err)
	}
	return statusBytes(pid, "VmRSS")
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// median of values, 0 of none.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile is the value below which the share q of values lies, between the two
// nearest ones; 0 of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// of takes one figure out of each sample.
func of(samples []sample, figure func(sample) float64) []float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, figure(s))
	}
	return all
}
