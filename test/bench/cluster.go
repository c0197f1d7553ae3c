package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is the control plane that everything is measured against: etcd and an
// API server, nothing else, so that nothing else takes time from what is
// measured.
type cluster struct {
	devcluster *exec.Cmd // nil if it ran before
	info       clusterInfo
	client     kubernetes.Interface
	http       *http.Client // without compression
}

// clusterInfo is the part of DIR/devcluster.json that is used here.
type clusterInfo struct {
	PID        int    `json:"pid"`
	Ready      bool   `json:"ready"`
	Version    string `json:"version"`
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	AuditLog   string `json:"auditLog"`
	Components []struct {
		Name  string `json:"name"`
		State string `json:"state"`
		PID   int    `json:"pid"`
	} `json:"components"`
}

// openCluster starts the cluster of dir, made with pods if it is new. If one
// runs there it is used, and left running.
func openCluster(ctx context.Context, program, dir string, pods int) (*cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &cluster{}
	if err := c.readInfo(dir); err == nil && c.info.Ready && syscall.Kill(c.info.PID, 0) == nil {
		logf("using the cluster that runs in %s", dir)
		return c, errors.Join(c.isQuiet(), c.connect())
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	logf("starting a cluster in %s", dir)
	if err := c.start(ctx, program, dir, pods); err != nil {
		return nil, errors.Join(fmt.Errorf("start devcluster: %w", err), c.close())
	}
	if err := errors.Join(c.readInfo(dir), c.connect()); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, program, dir string, pods int) error {
	// An API server reads all pods before it is ready, which takes it more than a
	// minute for 100,000 on a busy machine.
	cmd := exec.Command(program, "--dir", dir, "--pods", fmt.Sprint(pods), "--components", "etcd,kube-apiserver", "--start-timeout", "10m")
	// What serves the changes shares the processors with what is measured, and has memory to
	// spare: it need not look for garbage often.
	cmd.Env = append(os.Environ(), "GOGC=400")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.devcluster = cmd
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "devcluster ready:") {
			go io.Copy(io.Discard, stdout)
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("it ended before it was ready")
}

func (c *cluster) readInfo(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "devcluster.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &c.info)
}

// isQuiet fails if controllers run: they would take time from what is measured,
// and act on what is made for it.
func (c *cluster) isQuiet() error {
	for _, component := range c.info.Components {
		if component.State == "ready" && component.Name != "etcd" && component.Name != "kube-apiserver" {
			return fmt.Errorf("the cluster runs %s: only etcd and kube-apiserver may run", component.Name)
		}
	}
	return nil
}

func (c *cluster) connect() error {
	rc, err := loadKubeconfig(c.info.Kubeconfig, "bench")
	if err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(overProtobuf(rc)); err != nil {
		return err
	}
	c.http, err = plainClient(rc)
	return err
}

// close stops the cluster unless it ran before.
func (c *cluster) close() error {
	if c.devcluster == nil {
		return nil
	}
	logf("stopping the cluster")
	_ = c.devcluster.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(time.Minute, func() { _ = c.devcluster.Process.Kill() })
	defer kill.Stop()
	if err := c.devcluster.Wait(); err != nil {
		return fmt.Errorf("stop devcluster: %w", err)
	}
	return nil
}

// serverPID is the process of the API server, 0 if it is unknown.
func (c *cluster) serverPID() int {
	for _, component := range c.info.Components {
		if component.Name == "kube-apiserver" {
			return component.PID
		}
	}
	return 0
}

// settle waits until the API server has done what the last subject left it to
// do, so that the next one finds the same server.
func (c *cluster) settle(ctx context.Context) error {
	if pid := c.serverPID(); pid != 0 {
		_, err := settle(ctx, pid, 0.2, 15*time.Second)
		return err
	}
	return nil
}

// collect has the API server collect its garbage now, where its CPU or a delay is
// about to be measured: a collection takes both cores for a second, more than most
// requests do, and whether one falls into a measurement is chance. What etcd has written, and
// does not wait for, is written to the disk now as well: the system does it half a minute
// later, and what is measured, and waits for the disk, would wait for all of that.
func (c *cluster) collect(ctx context.Context) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	if _, err := discard(ctx, c.http, c.info.Server+"/debug/pprof/heap?gc=1"); err != nil {
		return fmt.Errorf("have the API server collect its garbage: %w", err)
	}
	syscall.Sync()
	return c.settle(ctx)
}

// loadKubeconfig reads a kubeconfig for a client without rate limits.
func loadKubeconfig(file, agent string) (*rest.Config, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	rc.QPS, rc.UserAgent = -1, agent
	return rc, nil
}

// plainClient is an HTTP/1.1 client that gets bytes as they are: no compression,
// no framing, nothing decoded.
func plainClient(rc *rest.Config) (*http.Client, error) {
	rc = rest.CopyConfig(rc)
	rc.DisableCompression = true
	rc.NextProtos = []string{"http/1.1"}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, fmt.Errorf("make HTTP client: %w", err)
	}
	return client, nil
}
