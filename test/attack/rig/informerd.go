// Package rig starts what an attack is on: an informerd with little memory that asks who
// asks, on a cluster that has what attacks need, and looks at what it takes.
package rig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/informerd/informerd/test/child"
	"github.com/informerd/informerd/test/e2e/harness"
)

const (
	// Virtual is what the process may have of address space, in KB: ulimit -v. Go alone
	// reserves more than a GB of it.
	Virtual = 4 << 20
	// Memory is its GOMEMLIMIT.
	Memory = "1GiB"
)

// Informerd is the real program under those limits.
type Informerd struct {
	URL string
	CA  []byte // its certificate, in PEM

	dir     string
	process *child.Process
}

// StartInformerd starts one in dir that serves when this returns; it may have no data yet.
// authorization is the mode, rbac or review; pprof is where its profiles are, if anywhere.
func StartInformerd(program, dir, kubeconfig, authorization, pprof string) (*Informerd, error) {
	i := &Informerd{dir: dir}
	var key []byte
	var err error
	if i.CA, key, err = cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	i.URL = "https://" + address
	config := fmt.Sprintf("listen: %s\ntls: {certFile: %q, keyFile: %q}\nauthentication: {}\nauthorization: {mode: %s}\nclusters:\n- name: default\n  kubeconfig: %q\nsnapshot: {path: %q}\nkubernetes: {passthrough: all}\npprof: %q\n",
		address, i.file("tls.crt"), i.file("tls.key"), authorization, kubeconfig, i.file("informerd.db"), pprof)
	for name, data := range map[string][]byte{"tls.crt": i.CA, "tls.key": key, "config.yaml": []byte(config)} {
		if err := os.WriteFile(i.file(name), data, 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" serve --config "$1"`, Virtual), program, i.file("config.yaml"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+dir, "GOMEMLIMIT="+Memory)
	if i.process, err = child.Start("informerd", cmd, i.LogFile(), syscall.SIGKILL); err != nil {
		return nil, err
	}
	err = harness.Poll(time.Minute, func() error {
		if err := i.Died(); err != nil {
			return nil // waiting does not help
		}
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return i, errors.Join(err, i.Died())
}

func (i *Informerd) file(name string) string { return filepath.Join(i.dir, name) }

// LogFile is where it prints to.
func (i *Informerd) LogFile() string { return i.file("informerd.log") }

// Died says how it ended by itself, nil if it runs.
func (i *Informerd) Died() error {
	if i.process.Running() {
		return nil
	}
	output := i.process.Output()
	return fmt.Errorf("informerd ended: %w; the end of its log:\n%s", errors.Join(i.process.Err(), errEnded), output[max(0, len(output)-4<<10):])
}

var errEnded = errors.New("by itself")

// Stop ends it as an operator does, and says how long that took.
func (i *Informerd) Stop() (took time.Duration, err error) {
	if err := i.Died(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err = i.process.Stop(time.Minute); err == nil {
		err = i.process.Err()
	}
	return time.Since(began), err
}

// Kill ends it at once.
func (i *Informerd) Kill() {
	if i.process.Running() {
		i.process.Kill()
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
