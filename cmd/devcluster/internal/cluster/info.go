package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

// Info is the content of DIR/devcluster.json. It describes the cluster to other
// programs, and its ports to the next start.
type Info struct {
	PID         int               `json:"pid"`   // of devcluster; 0 when it has ended
	Ready       bool              `json:"ready"` // the ready line was printed
	Version     string            `json:"version"`
	Server      string            `json:"server"` // URL of the API server
	CAFile      string            `json:"caFile"`
	Kubeconfig  string            `json:"kubeconfig"`  // of the admin
	Kubeconfigs map[string]string `json:"kubeconfigs"` // by user: admin, namespaced, nobody, nosecrets
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
	Log     string        `json:"log"`
	Args    []string      `json:"args"`
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
	return ports
}
