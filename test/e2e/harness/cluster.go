package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/test/child"
)

// Small are the components of a cluster in which nothing happens by itself.
var Small = []string{"--components", "etcd,kube-apiserver"}

// Demo is the whole control plane with the demo company's data.
var Demo = []string{"--seed", "demo"}

// Cluster is a running devcluster.
type Cluster struct {
	Dir     string
	process *child.Process
	program string
	info    clusterInfo

	// Clients of the admin, without rate limits.
	Config     *rest.Config
	Dynamic    dynamic.Interface
	Client     kubernetes.Interface
	Extensions apiextensions.Interface
	raw        rest.Interface

	audit string // path of the audit log
}

// clusterInfo is the part of DIR/devcluster.json that is used here.
type clusterInfo struct {
	Server      string            `json:"server"`
	Balancer    string            `json:"balancer"`
	Proxy       string            `json:"proxy"`
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	AuditLog    string            `json:"auditLog"`
	Components  []Component       `json:"components"`
}

// Component is one process of a cluster.
type Component struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ready, paused, stopped, starting or died
	PID    int    `json:"pid"`
	URL    string `json:"url"`
	Log    string `json:"log"`
	Deaths int    `json:"deaths"` // by itself
}

// devcluster finds the program.
func devcluster() (string, error) {
	dir, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bin", "devcluster")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is missing: run make devcluster", path)
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// StartCluster starts a devcluster in dir and waits until it is ready.
func StartCluster(dir string, args ...string) (*Cluster, error) {
	program, err := devcluster()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, program: program}
	cmd := exec.Command(program, append([]string{"--dir", dir}, args...)...)
	if c.process, err = child.Start("devcluster", cmd, filepath.Join(dir, "devcluster.log"), syscall.SIGTERM); err != nil {
		return nil, err
	}
	err = Poll(4*time.Minute, func() error {
		if strings.Contains(c.process.Output(), "devcluster ready:") || !c.process.Running() {
			return nil
		}
		return errors.New("no ready line")
	})
	if err != nil || !c.process.Running() {
		output := c.process.Output()
		return nil, errors.Join(fmt.Errorf("devcluster in %s did not start:\n%s", dir, tail(output, 40)), c.Stop())
	}
	if err := c.connect("admin"); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// AttachCluster uses a devcluster that runs in dir already; Stop leaves it
// alone.
func AttachCluster(dir string) (*Cluster, error) {
	program, err := devcluster()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, program: program}
	return c, c.connect("admin")
}

// Through is the cluster with clients that connect with the kubeconfig of another
// user, such as apiserver-2, which goes past the balancer. It ends with c.
func (c *Cluster) Through(tb testing.TB, user string) *Cluster {
	tb.Helper()
	other := &Cluster{Dir: c.Dir, program: c.program}
	if err := other.connect(user); err != nil {
		tb.Fatal(err)
	}
	return other
}

func (c *Cluster) connect(user string) (err error) {
	if err := c.readInfo(); err != nil {
		return err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.info.Kubeconfigs[user]); err != nil {
		return err
	}
	c.Config.UserAgent, c.Config.QPS = "e2e", -1
	if c.Dynamic, err = dynamic.NewForConfig(c.Config); err != nil {
		return err
	}
	if c.Extensions, err = apiextensions.NewForConfig(c.Config); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	c.Client, c.raw = client, client.CoreV1().RESTClient()
	c.audit = c.info.AuditLog
	return nil
}

func (c *Cluster) readInfo() error {
	data, err := os.ReadFile(filepath.Join(c.Dir, "devcluster.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &c.info)
}

// Kubeconfig is the file of a user: admin, namespaced, nobody or nosecrets; or of
// the admin's ways past the balancer: apiserver-1, apiserver-2.
func (c *Cluster) Kubeconfig(user string) string { return c.info.Kubeconfigs[user] }

// Server is the URL of the API server, or of the balancer before several.
func (c *Cluster) Server() string { return c.info.Server }

// Stop stops all of it.
func (c *Cluster) Stop() error {
	if c.process == nil {
		return nil
	}
	return c.process.Stop(30 * time.Second)
}

// Ctl acts on single components: stop, start, restart, kill, pause, resume.
func (c *Cluster) Ctl(tb testing.TB, action string, components ...string) {
	tb.Helper()
	c.order(tb, nil, append([]string{action}, components...)...)
}

// Up starts those of the components that do not run.
func (c *Cluster) Up(tb testing.TB, components ...string) {
	tb.Helper()
	if err := c.readInfo(); err != nil {
		tb.Fatal(err)
	}
	for _, component := range c.info.Components {
		if slices.Contains(components, component.Name) && component.State != "ready" {
			c.Ctl(tb, "start", component.Name)
		}
	}
}

// Raw asks the API server for a path with its query, as the admin.
func (c *Cluster) Raw(ctx context.Context, method, uri, accept string) (*Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.Config.Host+uri, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return &Answer{resp.StatusCode, resp.Header, body}, err
}
