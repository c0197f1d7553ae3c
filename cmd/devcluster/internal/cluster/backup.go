package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

// Saved answers backup and compact: a revision of etcd, and the file it is in.
type Saved struct {
	File     string `json:"file,omitempty"`
	Revision int64  `json:"revision"`
}

// Restored answers restore: etcd's revision before and after. Was is absent if
// etcd did not answer.
type Restored struct {
	Was      int64 `json:"was,omitempty"`
	Revision int64 `json:"revision"`
}

// backup saves etcd into DIR/backups/NAME.db.
func (c *Cluster) backup(ctx context.Context, name string) (*Saved, error) {
	file, err := c.backupFile(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	c.backups.Lock()
	defer c.backups.Unlock()
	m := snapshot.NewV3(zap.NewNop())
	config := clientv3.Config{Endpoints: []string{c.componentURL(etcd)}, DialTimeout: 5 * time.Second}
	if _, err := m.Save(ctx, config, file); err != nil {
		return nil, fmt.Errorf("save etcd: %w", err)
	}
	status, err := m.Status(file)
	if err != nil {
		return nil, fmt.Errorf("check the backup: %w", err)
	}
	return &Saved{File: file, Revision: status.Revision}, nil
}

// restore puts etcd back to a backup. The API servers that run are stopped
// meanwhile, unless running; bump is added to the revision.
func (c *Cluster) restore(ctx context.Context, name string, running bool, bump int) (*Restored, error) {
	file, err := c.backupFile(name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("there is no backup %s: %w", name, err)
	}
	if bump < 0 {
		return nil, errors.New("--bump must not be negative")
	}
	c.backups.Lock()
	defer c.backups.Unlock()
	data := c.path("etcd-restored")
	if err := os.RemoveAll(data); err != nil {
		return nil, err
	}
	if err := c.unpack(file, data, bump); err != nil {
		return nil, fmt.Errorf("unpack backup %s: %w", name, err)
	}
	was, _ := c.revision(ctx) // etcd may be what is broken
	var servers []string
	if !running {
		if servers, err = c.stopRunning(c.apiServers()...); err != nil {
			return nil, err
		}
	}
	if _, err := c.stopRunning(etcd); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(c.path("etcd")); err != nil {
		return nil, err
	}
	if err := os.Rename(data, c.path("etcd")); err != nil {
		return nil, err
	}
	if err := c.startAgain(ctx, etcd); err != nil {
		return nil, err
	}
	// Asked before the API servers write again.
	revision, err := c.revision(ctx)
	if err != nil {
		return nil, err
	}
	return &Restored{Was: was, Revision: revision}, c.startAgain(ctx, servers...)
}

// unpack makes a data directory of a backup.
func (c *Cluster) unpack(file, data string, bump int) error {
	peer := c.url("http", etcdPeer)
	return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath:        file,
		Name:                "default",
		OutputDataDir:       data,
		PeerURLs:            []string{peer},
		InitialCluster:      "default=" + peer,
		InitialClusterToken: "etcd-cluster",
		RevisionBump:        uint64(bump),
		MarkCompacted:       bump > 0,
	})
}

// compact compacts etcd at its present revision.
func (c *Cluster) compact(ctx context.Context) (*Saved, error) {
	c.backups.Lock()
	defer c.backups.Unlock()
	revision, err := c.revision(ctx)
	if err != nil {
		return nil, err
	}
	err = c.withEtcd(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil // before: nothing was written since
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("compact etcd: %w", err)
	}
	return &Saved{Revision: revision}, nil
}

// revision is the present one of etcd.
func (c *Cluster) revision(ctx context.Context) (revision int64, err error) {
	err = c.withEtcd(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Get(ctx, "/", clientv3.WithCountOnly())
		if err == nil {
			revision = resp.Header.Revision
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its revision: %w", err)
	}
	return revision, nil
}

func (c *Cluster) withEtcd(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{c.componentURL(etcd)}, Context: ctx, Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, client)
}

// stopRunning stops those of the components that run and returns them. One that
// died and waits for its revival is left to it.
func (c *Cluster) stopRunning(components ...string) ([]string, error) {
	var stopped []string
	for _, name := range components {
		switch c.processes[name].Status().State {
		case process.Stopped, process.Died:
			continue
		}
		if err := c.processes[name].Stop(); err != nil {
			return nil, err
		}
		stopped = append(stopped, name)
	}
	return stopped, nil
}

func (c *Cluster) startAgain(ctx context.Context, components ...string) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range components {
		g.Go(func() error { return c.processes[name].Start(ctx) })
	}
	return g.Wait()
}

// backupFile is where a backup is kept. Names are not paths.
func (c *Cluster) backupFile(name string) (string, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("%q cannot be the name of a backup", name)
	}
	return c.path("backups", name+".db"), nil
}
