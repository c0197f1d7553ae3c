// Package rig starts what a soak runs on, and acts on its parts: a devcluster
// with two API servers, a balancer and a proxy that lies, an informerd, and a
// second one whose API server the first is.
package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/soak/clock"
	"github.com/informerd/informerd/test/soak/history"
)

// Options of a Rig.
type Options struct {
	// Dir is where everything is kept.
	Dir string
	// Program is the informerd under test.
	Program string
	// Clock says that its wall clock can be set, see package clock.
	Clock bool
	// Env is its environment beside the usual.
	Env []string
	// Resources are those whose history is kept.
	Resources []history.Resource
	// Log tells what is done.
	Log func(format string, args ...any)
}

// Rig is all that runs.
type Rig struct {
	Options
	Cluster       *harness.Cluster
	First, Second *Informerd
	History       *history.Log
	// Clients write to the API servers, each to one, past balancer and proxy.
	Clients []dynamic.Interface
	Servers []string // names of the API servers, as ctl knows them
	Audit   string   // the audit log
	// Has are the abilities of this rig: servers, proxy, backup, disk.
	Has []string
	// Disk is the small file system of the first informerd's snapshot, if there
	// is one.
	Disk string

	unmount    func() // the disk
	devcluster string
	reader     *history.Reader
	restoring  sync.Mutex // one restore at a time
	backups    map[string]backup
}

type backup struct {
	epoch    *history.Epoch
	revision int64
}

// Start starts everything.
func Start(opts Options) (_ *Rig, err error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	r := &Rig{Options: opts, History: history.NewLog(), devcluster: filepath.Join(root, "bin", "devcluster"), backups: map[string]backup{}}
	defer func() {
		if err != nil {
			r.Stop()
		}
	}()
	args, err := r.abilities()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.Dir, "cluster")
	if r.Cluster, err = harness.StartCluster(dir, args...); err != nil {
		return nil, err
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	if r.reader, err = history.StartReader(r.devcluster, dir, r.Resources, r.History.Now()); err != nil {
		return nil, err
	}
	r.makeDisk()
	return r, r.startInformerds()
}

// abilities finds out what this devcluster and this machine can do, and how to
// start it.
func (r *Rig) abilities() ([]string, error) {
	help, err := exec.Command(r.devcluster, "--help").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s --help: %w; run make devcluster", r.devcluster, err)
	}
	args := slices.Clone(harness.Small)
	if strings.Contains(string(help), "--apiservers") {
		args = append(args, "--apiservers", "2")
		r.Has = append(r.Has, "servers", "backup")
	}
	if strings.Contains(string(help), "--proxy") {
		args = append(args, "--proxy")
		r.Has = append(r.Has, "proxy")
	}
	return args, nil
}

// info is what is used here of devcluster.json.
type info struct {
	Kubeconfig  string
	Kubeconfigs map[string]string
	AuditLog    string
	Components  []struct{ Name, State string }
}

func (r *Rig) info() (info, error) {
	var i info
	data, err := os.ReadFile(filepath.Join(r.Cluster.Dir, "devcluster.json"))
	if err == nil {
		err = json.Unmarshal(data, &i)
	}
	return i, err
}

func (r *Rig) connect() error {
	i, err := r.info()
	if err != nil {
		return err
	}
	r.Audit = i.AuditLog
	var files []string
	for _, c := range i.Components {
		if strings.HasPrefix(c.Name, "kube-apiserver") {
			r.Servers = append(r.Servers, c.Name)
			files = append(files, filepath.Join(r.Cluster.Dir, fmt.Sprintf("kubeconfig-apiserver-%d", len(r.Servers))))
		}
	}
	if !r.Can("servers") {
		files = []string{i.Kubeconfig}
	}
	for _, file := range files {
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return err
		}
		config.UserAgent, config.QPS, config.Timeout = "soak", -1, 10*time.Second
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		r.Clients = append(r.Clients, client)
	}
	return nil
}

// Can says whether the rig has an ability.
func (r *Rig) Can(ability string) bool { return ability == "" || slices.Contains(r.Has, ability) }

func (r *Rig) startInformerds() error {
	upstream := r.Cluster.Kubeconfig("admin")
	if r.Can("proxy") {
		upstream = filepath.Join(r.Cluster.Dir, "kubeconfig-proxied")
	}
	snapshots := r.Disk
	if snapshots == "" {
		snapshots = r.Dir
	}
	var err error
	if r.First, err = r.newInformerd("first", upstream, filepath.Join(snapshots, "first.db")); err != nil {
		return err
	}
	second := filepath.Join(r.Dir, "kubeconfig-second")
	if err := writeKubeconfig(second, r.First.URL); err != nil {
		return err
	}
	if r.Second, err = r.newInformerd("second", second, filepath.Join(r.Dir, "second.db")); err != nil {
		return err
	}
	r.First.Env = r.Env
	if r.Clock {
		r.Has = append(r.Has, "clock")
		r.First.Env = append(slices.Clone(r.Env), clock.Env+"="+r.clockFile())
	}
	return errors.Join(r.First.Start(), r.Second.Start())
}

func (r *Rig) clockFile() string { return filepath.Join(r.Dir, "clock") }

// SetClock sets the wall clock of the first informerd off by some time.
func (r *Rig) SetClock(by time.Duration) error {
	file := r.clockFile()
	if err := os.WriteFile(file+".new", fmt.Appendf(nil, "%d", int(by.Seconds())), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func (r *Rig) newInformerd(name, kubeconfig, snapshot string) (*Informerd, error) {
	dir := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	i := &Informerd{Name: name, Dir: dir, Snapshot: snapshot, Program: r.Program, Kubeconfig: kubeconfig, Address: address, URL: "http://" + address}
	return i, i.WriteRules(DefaultRules)
}

// Loaded starts a throw-away informerd on a copy of a snapshot file, which
// reaches no API server.
func (r *Rig) Loaded(snapshot string) (*Informerd, error) {
	nowhere := filepath.Join(r.Dir, "kubeconfig-nowhere")
	if err := writeKubeconfig(nowhere, "http://127.0.0.1:1"); err != nil {
		return nil, err
	}
	i, err := r.newInformerd("loaded", nowhere, snapshot)
	if err != nil {
		return nil, err
	}
	if err := i.Start(); err != nil {
		i.Kill()
		return nil, err
	}
	return i, nil
}

func writeKubeconfig(file, server string) error {
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"x","cluster":{"server":%q}}],`+
		`"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"users":[{"name":"x","user":{}}]}`, server)
	return os.WriteFile(file, []byte(text), 0o600)
}

// Stop stops everything.
func (r *Rig) Stop() {
	r.thaw()
	for _, i := range []*Informerd{r.Second, r.First} {
		if i != nil {
			_ = i.Signal(continued) // it may be frozen
			if err := i.Stop(); err != nil {
				r.Log("%v", err)
			}
		}
	}
	if r.reader != nil {
		r.reader.Stop()
	}
	if r.Cluster != nil {
		if err := r.Cluster.Stop(); err != nil {
			r.Log("%v", err)
		}
	}
	r.removeDisk()
}

// HistoryErr is why the history is not told any more, nil while it is.
func (r *Rig) HistoryErr() error {
	r.restoring.Lock()
	defer r.restoring.Unlock()
	return r.reader.Err()
}

// Ctl runs devcluster ctl, and returns what it prints.
func (r *Rig) Ctl(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, r.devcluster, append([]string{"ctl", "--dir", r.Cluster.Dir}, args...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("devcluster ctl %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	} else if err != nil {
		return nil, fmt.Errorf("devcluster ctl %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// Up starts every component that does not run.
func (r *Rig) Up(ctx context.Context) error {
	i, err := r.info()
	if err != nil {
		return err
	}
	for _, c := range i.Components {
		if c.State == "ready" || c.Name != "etcd" && !strings.HasPrefix(c.Name, "kube-apiserver") {
			continue
		}
		if _, err := r.Ctl(ctx, "start", c.Name); err != nil {
			return err
		}
	}
	return nil
}

// Backup saves etcd.
func (r *Rig) Backup(ctx context.Context, name string) error {
	out, err := r.Ctl(ctx, "backup", name)
	if err != nil {
		return err
	}
	var reply struct{ Revision int64 }
	if err := json.Unmarshal(out, &reply); err != nil {
		return fmt.Errorf("backup: %w in %q", err, out)
	}
	r.backups[name] = backup{r.History.Now(), reply.Revision}
	return nil
}

// Restore takes etcd back to a backup. Nobody may write meanwhile, so that the
// history of before is known to its end.
func (r *Rig) Restore(ctx context.Context, name string, flags ...string) error {
	r.restoring.Lock()
	defer r.restoring.Unlock()
	b, ok := r.backups[name]
	if !ok {
		return fmt.Errorf("there is no backup %s", name)
	}
	if err := r.History.Now().Wait(ctx); err != nil {
		return err
	}
	r.History.Hold(true)
	defer r.History.Hold(false)
	r.reader.Stop()
	_, err := r.Ctl(ctx, append([]string{"restore", name}, flags...)...)
	if err != nil {
		return err
	}
	e := r.History.Fork(b.epoch, b.revision)
	if r.reader, err = history.StartReader(r.devcluster, r.Cluster.Dir, r.Resources, e); err != nil {
		return err
	}
	return e.Wait(ctx)
}
