package rig

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/informerd/informerd/test/child"
	"github.com/informerd/informerd/test/e2e/harness"
)

// Informerd is one informerd, which faults stop and start.
type Informerd struct {
	Name       string
	URL        string
	Dir        string // of its configuration and log
	Snapshot   string // its snapshot file
	Program    string
	Kubeconfig string
	Address    string
	Env        []string // beside the usual

	mu       sync.Mutex // guards all below
	process  *child.Process
	runs     int
	expected bool  // its end was wanted
	looked   int64 // how much of its log was
}

// DefaultRules are the resources of its configuration: all that change by
// somebody's will, Secrets in full.
const DefaultRules = `- match: [leases.coordination.k8s.io, events, events.events.k8s.io]
  watch: false
- match: [secrets]
  redact: []
- match: [configmaps]
  indexes: {tier: metadata.labels.tier}
- match: ["*"]
`

// WriteRules writes its configuration anew, in one step.
func (i *Informerd) WriteRules(rules string) error {
	text := fmt.Sprintf("listen: %s\nclusters:\n- name: default\n  kubeconfig: %q\nsnapshot:\n  path: %q\n  interval: 500ms\nlog:\n  level: info\nresources:\n%s",
		i.Address, i.Kubeconfig, i.Snapshot, rules)
	file := filepath.Join(i.Dir, "config.yaml")
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// Start starts it, at the address it had, and waits until it serves.
func (i *Informerd) Start() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.process != nil && i.process.Running() {
		return nil
	}
	i.runs++
	i.expected = false
	cmd := exec.Command(i.Program, "serve", "--config", filepath.Join(i.Dir, "config.yaml"))
	cmd.Dir = i.Dir
	cmd.Env = append(append(os.Environ(), "KUBECONFIG=", "HOME="+i.Dir, "GORACE=halt_on_error=0 exitcode=66"), i.Env...)
	var err error
	if i.process, err = child.Start(i.Name, cmd, i.LogFile(), syscall.SIGKILL); err != nil {
		return err
	}
	p := i.process
	return harness.Poll(time.Minute, func() error {
		if !p.Running() {
			return fmt.Errorf("%s ended at its start: %v", i.Name, p.Err())
		}
		c, err := net.DialTimeout("tcp", i.Address, time.Second)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// LogFile is where it prints to, over all its runs.
func (i *Informerd) LogFile() string { return filepath.Join(i.Dir, i.Name+".log") }

// Stop ends it with SIGTERM.
func (i *Informerd) Stop() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.expected = true
	if i.process == nil || !i.process.Running() {
		return nil
	}
	return i.process.Stop(60 * time.Second)
}

// Kill ends it with SIGKILL.
func (i *Informerd) Kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.expected = true
	if i.process != nil && i.process.Running() {
		i.process.Kill()
	}
}

// Signal sends it a signal.
func (i *Informerd) Signal(s syscall.Signal) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.process == nil || !i.process.Running() {
		return errors.New(i.Name + " does not run")
	}
	return i.process.Signal(s)
}

// Instance names the present process, over restarts.
func (i *Informerd) Instance() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return fmt.Sprintf("%s.%d", i.Name, i.runs)
}

// Trouble says what is wrong with the process: it died by itself, panicked or
// has a data race. Empty if nothing is.
func (i *Informerd) Trouble() string {
	i.mu.Lock()
	died := i.process != nil && !i.process.Running() && !i.expected
	var err error
	if died {
		err = i.process.Err()
	}
	i.mu.Unlock()
	log := i.newLog()
	for _, bad := range []string{"WARNING: DATA RACE", "\npanic: ", "\nfatal error: "} {
		if at := strings.Index(string(log), bad); at >= 0 {
			return fmt.Sprintf("%s: %.3000s", i.Name, log[at:])
		}
	}
	if died {
		return fmt.Sprintf("%s died by itself: %v", i.Name, err)
	}
	return ""
}

// newLog reads what was logged since the last look, and a little more: what is looked
// for may have been half there.
func (i *Informerd) newLog() []byte {
	f, err := os.Open(i.LogFile())
	if err != nil {
		return nil
	}
	defer f.Close()
	i.mu.Lock()
	from := max(i.looked-4096, 0)
	i.mu.Unlock()
	log, _ := io.ReadAll(io.NewSectionReader(f, from, 16<<20))
	i.mu.Lock()
	i.looked = from + int64(len(log))
	i.mu.Unlock()
	return log
}

// FreeAddress is a free port of loopback. It is chosen here so that a restart
// keeps it.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
