package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/devcluster/internal/cluster"
	"github.com/informerd/informerd/cmd/devcluster/internal/control"
)

func newControlCommand() *cobra.Command {
	c := &ctl{}
	cmd := &cobra.Command{
		Use:   "ctl --dir DIR ACTION",
		Short: "Give orders to a running cluster",
		Long: `ctl gives orders to the cluster that runs in DIR and returns when they are carried
out: a started component is ready, a stopped one is gone. Some print what came of
it, a line of JSON.`,
		Example: `  devcluster ctl --dir /tmp/dc status
  devcluster ctl --dir /tmp/dc kill kube-apiserver
  devcluster ctl --dir /tmp/dc balancer only kube-apiserver-2
  devcluster ctl --dir /tmp/dc restore monday --running`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown action %q; see devcluster ctl --help", args[0])
			}
			return errors.New("which action? See devcluster ctl --help")
		},
	}
	cmd.PersistentFlags().StringVar(&c.dir, "dir", "", "directory of the cluster")
	cmd.AddCommand(
		&cobra.Command{
			Use: "status", Short: "Print state, pid, port and log file of each component", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return c.status() },
		},
		c.component("start", "Start components and wait until they are ready"),
		c.component("stop", "SIGTERM, and SIGKILL after 5 seconds"),
		c.component("kill", "SIGKILL"),
		c.component("restart", "Stop, then start"),
		c.component("pause", "SIGSTOP: the component's port stays open, nothing answers"),
		c.component("resume", "SIGCONT"),
		c.order("program COMPONENT PATH", "Start a component from another binary the next time (-: from this one)", cobra.ExactArgs(2)),
		c.order("balancer [normal|reset|hold|only C|drop C|cut [C]|slow C N]", "Say how the balancer treats connections", cobra.MaximumNArgs(3)),
		c.order("backup NAME", "Save etcd into DIR/backups", cobra.ExactArgs(1)),
		c.restore(),
		c.proxy(),
		c.order("compact", "Compact etcd at its present revision", cobra.NoArgs),
	)
	return cmd
}

// ctl is a run of `devcluster ctl`.
type ctl struct {
	dir string
}

func (c *ctl) component(action, short string) *cobra.Command {
	return c.order(action+" COMPONENT...", short, cobra.MinimumNArgs(1))
}

// order is a command that the running devcluster carries out as it is.
func (c *ctl) order(use, short string, args cobra.PositionalArgs) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.do(cmd, control.Order{Action: cmd.Name(), Args: args})
		},
	}
}

func (c *ctl) restore() *cobra.Command {
	var running bool
	var bump int
	cmd := &cobra.Command{
		Use: "restore NAME", Short: "Put etcd back to a backup", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := map[string]int{cluster.FlagBump: bump}
			if running {
				flags[cluster.FlagRunning] = 1
			}
			return c.do(cmd, control.Order{Action: "restore", Args: args, Flags: flags})
		},
	}
	cmd.Flags().BoolVar(&running, "running", false, "leave the API servers running: etcd goes back under them")
	cmd.Flags().IntVar(&bump, "bump", 0, "add `N` to the revision and mark what is older as compacted")
	return cmd
}

func (c *ctl) proxy() *cobra.Command {
	return &cobra.Command{
		Use: "proxy [RULES|-]", Short: "Replace the rules by which the proxy lies (JSON; -: from stdin)", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			order := control.Order{Action: "proxy"}
			if len(args) > 0 {
				order.Body = []byte(args[0])
			}
			if len(args) > 0 && args[0] == "-" {
				var err error
				if order.Body, err = io.ReadAll(os.Stdin); err != nil {
					return err
				}
			}
			if order.Body != nil && !json.Valid(order.Body) {
				return fmt.Errorf("the rules are no JSON: %s", order.Body)
			}
			return c.do(cmd, order)
		},
	}
}

// do has an order carried out and prints its result.
func (c *ctl) do(cmd *cobra.Command, order control.Order) error {
	info, err := c.running()
	if err != nil {
		return err
	}
	result, err := control.Do(cmd.Context(), info.Control, order)
	if err != nil {
		return fmt.Errorf("%s: %w", order.Action, err)
	}
	if result != nil {
		_, err = fmt.Println(string(result))
	}
	return err
}

func (c *ctl) running() (*cluster.Info, error) {
	if c.dir == "" {
		return nil, errors.New("--dir is required")
	}
	return runningCluster(c.dir)
}

func (c *ctl) status() error {
	if c.dir == "" {
		return errors.New("--dir is required")
	}
	info, err := readCluster(c.dir)
	if err != nil {
		return err
	}
	return printStatus(info)
}

// readCluster reads the description of the cluster in dir, running or not.
func readCluster(dir string) (*cluster.Info, error) {
	info, err := cluster.ReadInfo(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no cluster in %s", dir)
	}
	return info, err
}

func runningCluster(dir string) (*cluster.Info, error) {
	info, err := readCluster(dir)
	if err == nil && (info.PID == 0 || syscall.Kill(info.PID, 0) != nil) {
		err = fmt.Errorf("no devcluster is running in %s", dir)
	}
	return info, err
}

func printStatus(info *cluster.Info) error {
	for _, c := range info.Components {
		if _, err := fmt.Printf("%-24s %-9s pid=%-8d port=%d log=%s\n", c.Name, c.State, c.PID, c.Port, filepath.Clean(c.Log)); err != nil {
			return err
		}
	}
	return nil
}
