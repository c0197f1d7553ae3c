package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

// Info is the content of DIR/devcluster.json. It describes the cluster to other
// programs, and its ports to the next start.
type Info struct {
	PID         int               `json:"pid"`   // of devcluster; 0 when it has ended
	Ready       bool              `json:"ready"` // the ready line was printed
	Version     string            `json:"version"`
	Server      string            `json:"server"`             // URL of the API server, or of the balancer
	Balancer    string            `json:"balancer,omitempty"` // its address, if there is one
	Proxy       string            `json:"proxy,omitempty"`    // its URL, if there is one
	CAFile      string            `json:"caFile"`
	Kubeconfig  string            `json:"kubeconfig"`  // of the admin
	Kubeconfigs map[string]string `json:"kubeconfigs"` // by user: admin, namespaced, nobody, nosecrets; proxied, apiserver-1, ...
	AuditLog    string            `json:"auditLog"`
	Control     string            `json:"controlSocket"`
	Components  []ComponentInfo   `json:"components"`
}

// ComponentInfo describes one process.
type ComponentInfo struct {
	Name    string        `json:"name"`
	State   process.State `json:"state"`
	PID     int           `json:"pid,omitempty"`
	Started *time.Time    `json:"started,omitempty"`
	Port    int           `json:"port"` // on 127.0.0.1
	URL     string        `json:"url"`
	Log     string        `json:"log"`
	Args    []string      `json:"args"`
	Program string        `json:"program,omitempty"` // unless it is devcluster itself
	Deaths  int           `json:"deaths,omitempty"`  // by itself, since devcluster started
}

// ReadInfo reads the description of the cluster in dir. A directory that never
// held one is fs.ErrNotExist.
func ReadInfo(dir string) (*Info, error) {
	data, err := os.ReadFile(infoFile(dir))
	if err != nil {
		return nil, err
	}
	var info Info
	if err := json.Unmarshal(data, &info); err != nil {
		return nil, fmt.Errorf("read %s: %w", infoFile(dir), err)
	}
	return &info, nil
}

// EtcdURL is where etcd listens.
func (i *Info) EtcdURL() string {
	for _, c := range i.Components {
		if c.Name == etcd {
			return fmt.Sprintf("http://127.0.0.1:%d", c.Port)
		}
	}
	return ""
}

func (c *Cluster) infoLocked() *Info {
	info := &Info{
		PID:         os.Getpid(),
		Ready:       c.ready,
		Version:     c.opts.Version,
		Server:      c.server(),
		CAFile:      c.creds.ca.CertFile(),
		Kubeconfig:  kubeconfigFile(c.opts.Dir, "admin"),
		Kubeconfigs: map[string]string{},
		AuditLog:    c.auditLog(),
		Control:     c.socket,
	}
	if c.ended {
		info.PID = 0
	}
	for _, id := range people {
		info.Kubeconfigs[id.name] = kubeconfigFile(c.opts.Dir, id.name)
	}
	if c.balances() {
		info.Balancer = c.address(balancerPort)
		for i := range c.apiServers() {
			name := directName(i)
			info.Kubeconfigs[name] = kubeconfigFile(c.opts.Dir, name)
		}
	}
	if c.opts.Proxy {
		info.Proxy = c.url("http", proxyPort)
		info.Kubeconfigs[proxied] = kubeconfigFile(c.opts.Dir, proxied)
	}
	for _, name := range c.names {
		s := c.processes[name].Status()
		ci := ComponentInfo{
			Name:  name,
			State: s.State,
			PID:   s.PID,
			Port:  c.ports[name],
			URL:   c.componentURL(name),
			Log:   c.logFile(name),
			Args:  c.args(name),
		}
		if path := c.processes[name].Path(); path != c.opts.Program {
			ci.Program = path
		}
		if d := c.deaths[name]; d != nil {
			ci.Deaths = d.total
		}
		if !s.Started.IsZero() {
			ci.Started = &s.Started
		}
		info.Components = append(info.Components, ci)
	}
	return info
}

func writeInfo(dir string, info *Info) error {
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	// Readers poll this file: they must never see half of it.
	tmp := infoFile(dir) + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, infoFile(dir))
}

func infoFile(dir string) string { return filepath.Join(dir, "devcluster.json") }

// savedPorts are the ports of the last run in dir. Whatever is wrong with the
// file, new ports are an answer.
func savedPorts(dir string) map[string]int {
	ports := map[string]int{}
	info, err := ReadInfo(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(infoFile(dir))
		}
		return ports
	}
	for _, c := range info.Components {
		ports[c.Name] = c.Port
	}
	for name, address := range map[string]string{
		balancerPort: info.Balancer,
		proxyPort:    strings.TrimPrefix(info.Proxy, "http://"),
	} {
		if _, port, err := net.SplitHostPort(address); err == nil {
			ports[name], _ = strconv.Atoi(port)
		}
	}
	return ports
}
