// Command devcluster runs a real Kubernetes control plane on loopback: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kwok, which
// simulates nodes. All of them are linked into this one binary, which starts
// itself once more for each: one link is cheaper than five, and each component
// is still a process that can be stopped and killed alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"
	"k8s.io/component-base/version"

	"github.com/informerd/informerd/cmd/devcluster/internal/churn"
	"github.com/informerd/informerd/cmd/devcluster/internal/cluster"
)

func main() {
	if len(os.Args) > 1 {
		switch {
		case os.Args[1] == "component" && len(os.Args) > 2:
			runApplet(os.Args[2], os.Args[3:])
		case os.Args[1] == "kubectl":
			runApplet("kubectl", os.Args[2:])
		}
	}
	// The linked components register flags that are not ours.
	pflag.CommandLine = pflag.NewFlagSet("devcluster", pflag.ContinueOnError)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := newStartCommand("devcluster --dir DIR")
	root.Long = `devcluster runs a real Kubernetes ` + version.Get().GitVersion + ` control plane on loopback: etcd,
kube-apiserver, kube-controller-manager, kube-scheduler, and nodes and pods
simulated by kwok. It keeps everything in one directory, prints one line on
stdout when it is ready, and runs until SIGTERM or SIGINT. Started again on the
same directory it continues with the same data, keys and ports.`
	root.Example = `  devcluster --dir /tmp/dc --seed demo
  devcluster --dir /tmp/bench --pods 20000
  devcluster --dir /tmp/small --components etcd,kube-apiserver
  devcluster ctl --dir /tmp/dc restart kube-apiserver
  devcluster kubectl --kubeconfig /tmp/dc/kubeconfig get pods -A`
	root.SilenceUsage = true
	root.SilenceErrors = true
	root.CompletionOptions.DisableDefaultCmd = true
	root.Version = version.Get().GitVersion
	root.AddCommand(
		newStartCommand("start --dir DIR"),
		newControlCommand(),
		newChurnCommand(),
		newHistoryCommand(),
		newAuthorizeCommand(),
		// These two never get here, see main; they are listed for --help.
		&cobra.Command{Use: "kubectl ARGS...", Short: "Run kubectl " + version.Get().GitVersion, DisableFlagParsing: true, Run: func(*cobra.Command, []string) {}},
		&cobra.Command{Use: "component NAME FLAGS...", Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error {
			return errors.New("which component?")
		}},
	)
	return root
}

func newStartCommand(use string) *cobra.Command {
	opts := cluster.Options{
		Version: version.Get().GitVersion,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
	}
	cmd := &cobra.Command{
		Use:   use,
		Short: "Start a cluster and run it until SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Dir == "" {
				return errors.New("--dir is required; see devcluster --help")
			}
			if opts.Seed == "demo" && !cmd.Flags().Changed("nodes") {
				opts.Nodes = 12
			}
			// etcd's client closes connections it has just begun, and calls
			// that a failure.
			grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
			var err error
			if opts.Program, err = os.Executable(); err != nil {
				return err
			}
			return cluster.Run(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.Dir, "dir", "", "directory of the cluster: data, keys, kubeconfigs, logs; created if missing")
	f.StringVar(&opts.Seed, "seed", "", `data to create: "demo" is a small company's cluster`)
	f.IntVar(&opts.Pods, "pods", 0, "create `N` quiet pods of about 7 KB, with 500 nodes, 20 namespaces and 300 ReplicaSets of their own")
	f.IntVar(&opts.Nodes, "nodes", 0, "simulate `N` nodes that pods can be scheduled to (default 12 with --seed demo)")
	f.StringSliceVar(&opts.Components, "components", cluster.Components, "components to start; the others can be started later by ctl")
	f.StringArrayVar(&opts.APIServerArgs, "apiserver-arg", nil, "extra `FLAG` of kube-apiserver, like --request-timeout=10s; repeatable")
	f.StringArrayVar(&opts.ControllerManagerArgs, "controller-manager-arg", nil, "extra `FLAG` of kube-controller-manager; repeatable")
	f.StringArrayVar(&opts.EtcdArgs, "etcd-arg", nil, "extra `FLAG` of etcd; repeatable")
	f.IntVar(&opts.APIServers, "apiservers", 1, "run `N` API servers, at most 3, over one etcd and behind a balancer")
	f.BoolVar(&opts.Balancer, "balancer", false, "put a balancer before a single API server too")
	f.StringArrayVar(&opts.Programs, "apiserver-program", nil, "start a component from another devcluster binary, `NAME=PATH`; repeatable")
	f.BoolVar(&opts.Proxy, "proxy", false, "run a proxy before the API server that can be made to lie by ctl")
	f.DurationVar(&opts.StartTimeout, "start-timeout", time.Minute, "how long each component may take to become ready")
	return cmd
}

func newChurnCommand() *cobra.Command {
	var dir, namespace string
	cmd := &cobra.Command{
		Use:   "churn --dir DIR --namespace NAMESPACE",
		Short: "Change pods at a steady rate, past the API server",
		Long: `churn changes the pods of a namespace of the cluster that runs in DIR, one after
the other: it counts up their annotation ` + churn.Annotation + `.
It writes to etcd itself, where a change costs a tenth of what it costs through
the API server, and keeps what others change meanwhile.

It reads orders from stdin, lines of changes a second and a duration, and answers
each with a line of JSON when it is carried out: changes and seconds. A line
before the first says how many pods there are.`,
		Example: `  echo 200 10s | devcluster churn --dir /tmp/dc --namespace shop`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" || namespace == "" {
				return errors.New("--dir and --namespace are required")
			}
			etcd, err := etcdOf(cmd.Context(), dir)
			if err != nil {
				return err
			}
			defer etcd.Close()
			c, err := churn.New(cmd.Context(), etcd, namespace)
			if err != nil {
				return err
			}
			return c.Serve(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the cluster")
	cmd.Flags().StringVar(&namespace, "namespace", "", "namespace whose pods are changed")
	return cmd
}
