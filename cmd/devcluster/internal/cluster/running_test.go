package cluster_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/cmd/devcluster/internal/cluster"
)

// devcluster is a running one.
type devcluster struct {
	dir    string
	cmd    *exec.Cmd
	stderr *buffer
	exited chan struct{}
	err    error
}

func start(t *testing.T, dir string, args ...string) *devcluster {
	t.Helper()
	d := &devcluster{dir: dir, stderr: &buffer{}, exited: make(chan struct{})}
	d.cmd = exec.Command(binary(t), append([]string{"--dir", dir}, args...)...)
	d.cmd.Stderr = d.stderr
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(d.exited)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
		d.err = d.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		<-d.exited
		for line := range lines {
			t.Errorf("more than one line on stdout: %s", line)
		}
		if t.Failed() {
			t.Logf("stderr:\n%s", d.stderr)
		}
	})
	select {
	case line := <-lines:
		if want := "devcluster ready: kubeconfig=" + dir + "/kubeconfig server=https://127.0.0.1:"; !strings.HasPrefix(line, want) {
			t.Fatalf("stdout: %q, want %s...\n%s", line, want, d.stderr)
		}
	case <-time.After(3 * time.Minute):
		t.Fatalf("no ready line\n%s", d.stderr)
	}
	return d
}

func (d *devcluster) stop(t *testing.T, sig syscall.Signal) error {
	t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	return d.wait(t)
}

func (d *devcluster) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-d.exited:
		return d.err
	case <-time.After(30 * time.Second):
		t.Fatalf("does not end\n%s", d.stderr)
		return nil
	}
}

func (d *devcluster) info(t *testing.T) *cluster.Info {
	t.Helper()
	info, err := cluster.ReadInfo(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func (d *devcluster) config(t *testing.T, user string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", d.info(t).Kubeconfigs[user])
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (d *devcluster) client(t *testing.T, user, agent string) kubernetes.Interface {
	t.Helper()
	config := d.config(t, user)
	config.UserAgent = agent
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (d *devcluster) dynamic(t *testing.T, user string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(d.config(t, user))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// ctl runs `devcluster ctl` and returns what it prints.
func (d *devcluster) ctl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"ctl", "--dir", d.dir}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("ctl %v: %v", args, err)
	}
	return string(out)
}

// pid is that of a component.
func (d *devcluster) pid(t *testing.T, component string) int {
	t.Helper()
	for _, c := range d.info(t).Components {
		if c.Name == component {
			return c.PID
		}
	}
	t.Fatalf("there is no component %s", component)
	return 0
}

func (d *devcluster) namespaceUID(t *testing.T) string {
	t.Helper()
	ns, err := d.client(t, "admin", "test").CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(ns.UID)
}

// assertGone checks that no component of the cluster runs any more.
func assertGone(t *testing.T, info *cluster.Info) {
	t.Helper()
	for _, c := range info.Components {
		if c.PID == 0 {
			continue
		}
		eventually(t, func() error {
			cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.PID))
			if err == nil && bytes.Contains(cmdline, []byte(c.Name)) {
				return fmt.Errorf("%s (pid %d) still runs", c.Name, c.PID)
			}
			return nil
		})
	}
}

func eventually(t *testing.T, do func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func keep[T any](items []T, want func(T) bool) []T {
	var kept []T
	for _, item := range items {
		if want(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// buffer is a bytes.Buffer for a writer and a reader at a time.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

var built struct {
	once sync.Once
	path string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(code)
}

// binary is the program under test.
func binary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("DEVCLUSTER"); path != "" {
		return path
	}
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "devcluster-build-")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "devcluster")
		out, err := exec.Command("../../build.sh", built.path).CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}
