package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is also the programs that the tests start.
func TestMain(m *testing.M) {
	switch os.Getenv("PROCESS_TEST_ROLE") {
	case "sleep":
		fmt.Println("sleeping")
		touch(os.Getenv("PROCESS_TEST_FILE"))
		time.Sleep(time.Minute)
	case "stubborn": // ends by SIGKILL only
		signal.Ignore(syscall.SIGTERM)
		touch(os.Getenv("PROCESS_TEST_FILE"))
		time.Sleep(time.Minute)
	case "crash":
		fmt.Println("first words")
		fmt.Println("the disk is full")
		os.Exit(3)
	case "parent": // starts a child, prints its PID, waits to be killed
		os.Setenv("PROCESS_TEST_ROLE", "sleep")
		p := New(Options{Name: "child", Path: os.Args[0], Log: os.Getenv("PROCESS_TEST_LOG")})
		if err := p.Start(context.Background()); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.Status().PID)
		time.Sleep(time.Minute)
	default:
		os.Exit(m.Run())
	}
}

func touch(path string) {
	if path != "" {
		_ = os.WriteFile(path, nil, 0o600)
	}
}

// newProcess returns a Process in the given role; sleep and stubborn are ready
// as soon as they say so.
func newProcess(t *testing.T, role string, change func(*Options)) *Process {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	opts := Options{
		Name: "test",
		Path: os.Args[0],
		Env:  append(os.Environ(), "PROCESS_TEST_ROLE="+role, "PROCESS_TEST_FILE="+ready),
		Log:  filepath.Join(dir, "log"),
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
	}
	if change != nil {
		change(&opts)
	}
	p := New(opts)
	t.Cleanup(func() { _ = p.Kill(); _ = os.Remove(ready) })
	return p
}

func TestStartStopStart(t *testing.T) {
	p := newProcess(t, "sleep", func(o *Options) {
		o.Died = func(err error) { t.Errorf("Died(%v) after a Stop", err) }
	})
	for range 3 {
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := p.Status()
		if s.State != Ready || !running(s.PID) {
			t.Fatalf("Status() = %+v after Start", s)
		}
		if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "already running") {
			t.Errorf("second Start() = %v, want already running", err)
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		if running(s.PID) {
			t.Fatal("still running after Stop")
		}
		if s := p.Status(); s.State != Stopped || s.PID != 0 {
			t.Fatalf("Status() = %+v after Stop", s)
		}
	}
	if err := p.Stop(); err != nil {
		t.Errorf("Stop() of a stopped process = %v", err)
	}
}

func TestStopKillsAfterTimeout(t *testing.T) {
	p := newProcess(t, "stubborn", func(o *Options) { o.StopTimeout = 100 * time.Millisecond })
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := p.Status().PID
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if running(pid) {
		t.Error("still running after Stop")
	}
}

func TestPauseThenStop(t *testing.T) {
	p := newProcess(t, "sleep", func(o *Options) { o.StopTimeout = time.Minute })
	if err := p.Pause(); err == nil {
		t.Error("Pause() of a stopped process = nil")
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if s := p.Status().State; s != Paused {
		t.Errorf("State = %s, want paused", s)
	}
	start := time.Now()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("Stop of a paused process took %v: it never saw the SIGTERM", d)
	}
}

func TestDeathAtStartShowsLog(t *testing.T) {
	p := newProcess(t, "crash", func(o *Options) {
		o.Died = func(err error) { t.Errorf("Died(%v) although Start returned the error", err) }
	})
	for range 2 { // the second error must not show the first run's lines
		err := p.Start(t.Context())
		if err == nil {
			t.Fatal("Start() = nil")
		}
		if got := err.Error(); !strings.Contains(got, "exit status 3") || strings.Count(got, "the disk is full") != 1 {
			t.Errorf("Start() = %v, want the exit status and the last log lines once", err)
		}
	}
}

func TestStartTimeout(t *testing.T) {
	never := errors.New("connection refused")
	p := newProcess(t, "sleep", func(o *Options) {
		o.StartTimeout = 200 * time.Millisecond
		o.Ready = func(context.Context) error { return never }
	})
	err := p.Start(t.Context())
	if !errors.Is(err, never) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start() = %v, want what it waited for and the timeout", err)
	}
	if s := p.Status(); s.PID != 0 {
		t.Errorf("Status() = %+v: left running", s)
	}
}

func TestUnexpectedDeath(t *testing.T) {
	died := make(chan error, 1)
	p := newProcess(t, "sleep", func(o *Options) { o.Died = func(err error) { died <- err } })
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.Status().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-died; !strings.Contains(err.Error(), "test died: signal: killed") {
		t.Errorf("Died(%v)", err)
	}
	if s := p.Status(); s.State != Died {
		t.Errorf("Status() = %+v, want died", s)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Errorf("Start() after a death = %v", err)
	}
}

// TestRevive: only a process that died is revived, and only until somebody else
// decides about it.
func TestRevive(t *testing.T) {
	died := make(chan error, 1)
	p := newProcess(t, "sleep", func(o *Options) { o.Died = func(err error) { died <- err } })
	revive := func(want State) {
		t.Helper()
		if err := p.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := p.Status(); s.State != want {
			t.Errorf("Status() = %+v after Revive, want %s", s, want)
		}
	}
	die := func() {
		t.Helper()
		if err := syscall.Kill(p.Status().PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-died
	}
	revive(Stopped)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	die()
	revive(Ready)
	revive(Ready)
	die()
	program := p.Path()
	p.SetPath("/nowhere")
	if err := p.Revive(t.Context()); err == nil || p.Status().State != Died {
		t.Errorf("Revive() of a missing program = %v, %+v", err, p.Status())
	}
	p.SetPath(program)
	revive(Ready)
	die()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	revive(Stopped)
}

func TestChildDiesWithParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the parent death signal of Linux")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_ROLE=parent", "PROCESS_TEST_LOG="+filepath.Join(t.TempDir(), "log"))
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("parent said %q", line)
	}
	if !running(child) {
		t.Fatal("the child does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	deadline := time.Now().Add(5 * time.Second)
	for running(child) {
		if time.Now().After(deadline) {
			t.Fatal("the child outlives its parent")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// running says whether pid exists and is not merely waiting to be reaped.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}
