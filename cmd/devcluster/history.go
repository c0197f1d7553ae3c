package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/grpclog"

	"github.com/informerd/informerd/cmd/devcluster/internal/history"
)

func newHistoryCommand() *cobra.Command {
	var dir string
	var opts history.Options
	cmd := &cobra.Command{
		Use:   "history --dir DIR",
		Short: "Tell every change that etcd has seen, one line of JSON each",
		Long: `history tells every change of every object of the cluster that runs in DIR, from
the beginning of etcd's history on and until it is ended: a line of JSON each,
with the key, the revision and the object. A line with "progress" says that
everything up to that revision has been told. It outlives restarts of etcd, but
not a restored backup, which has another history: start it again.`,
		Example: `  devcluster history --dir /tmp/dc --prefix /registry/configmaps/`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return errors.New("--dir is required")
			}
			etcd, err := etcdOf(cmd.Context(), dir)
			if err != nil {
				return err
			}
			defer etcd.Close()
			return history.Follow(cmd.Context(), etcd, opts, os.Stdout)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the cluster")
	cmd.Flags().StringArrayVar(&opts.Prefixes, "prefix", nil, "tell only of `KEYS` that begin so; repeatable")
	return cmd
}

// etcdOf is a client of the etcd of the cluster that runs in dir.
func etcdOf(ctx context.Context, dir string) (*clientv3.Client, error) {
	info, err := runningCluster(dir)
	if err != nil {
		return nil, err
	}
	// The client calls every closed connection a failure.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	return clientv3.New(clientv3.Config{Endpoints: []string{info.EtcdURL()}, Context: ctx})
}
