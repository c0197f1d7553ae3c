package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server"
)

// settings are the flags that say what configuration to use. Flags win over the
// file, and go on doing so when the file changes.
type settings struct {
	file      string // "" is the built-in configuration
	read      []byte // what load read last; nil if that failed, or there is no file
	overrides []override
}

// override is one flag that stands for a key of the file.
type override struct {
	name  string
	cmd   *cobra.Command
	apply func(c *config.Config, value string) error
}

// load reads the configuration and puts the flags over it. One goroutine calls it.
func (s *settings) load() (*config.Config, error) {
	c := config.Default()
	if s.file != "" {
		var err error
		if s.read, err = config.Read(s.file); err != nil {
			return nil, err
		}
		if c, err = config.Parse(s.file, s.read); err != nil {
			return nil, err
		}
	}
	for _, o := range s.overrides {
		if !o.cmd.Flags().Changed(o.name) {
			continue
		}
		if err := o.apply(c, o.cmd.Flags().Lookup(o.name).Value.String()); err != nil {
			return nil, usagef("--%s: %w", o.name, err)
		}
	}
	if err := c.CheckHandlers(); err != nil { // the file has a path
		return nil, usagef("--snapshot: %w", err)
	}
	return c, nil
}

// name is what messages call the configuration.
func (s *settings) name() string {
	if s.file == "" {
		return "built-in configuration"
	}
	return s.file
}

func (s *settings) flag(cmd *cobra.Command, name, usage string, apply func(*config.Config, string) error) {
	cmd.Flags().String(name, "", usage)
	s.overrides = append(s.overrides, override{name: name, cmd: cmd, apply: apply})
}

func (s *settings) configFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "config", "", "configuration `file` (default: the built-in one)")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// clusterFlags choose the cluster; they are for one cluster only.
func (s *settings) clusterFlags(cmd *cobra.Command) {
	s.flag(cmd, "kubeconfig", "kubeconfig `file` (default: the configuration's, KUBECONFIG, ~/.kube/config, in-cluster)",
		onlyCluster(func(c *config.Cluster, v string) { c.Kubeconfig = v }))
	s.flag(cmd, "context", "`name` of a context in the kubeconfig (default: its current one)",
		onlyCluster(func(c *config.Cluster, v string) { c.Context = v }))
}

func onlyCluster(set func(*config.Cluster, string)) func(*config.Config, string) error {
	return func(c *config.Config, value string) error {
		if n := len(c.Clusters); n > 1 {
			return fmt.Errorf("the configuration has %d clusters: set it there, for each", n)
		}
		if len(c.Folders) > 0 {
			return errors.New("the configuration has a folder of clusters, of which each file says how its own is reached")
		}
		set(&c.Clusters[0], value)
		return nil
	}
}

func (s *settings) serveFlags(cmd *cobra.Command) {
	s.flag(cmd, "listen", "`address` to serve on, host:port; port 0 takes a free one", func(c *config.Config, v string) error {
		c.Listen = v
		return server.CheckAddr(v, c.Exposure())
	})
	s.flag(cmd, "pprof", "`address` of this machine to serve profiles on, such as 127.0.0.1:6060; \"\" is nowhere", func(c *config.Config, v string) error {
		c.Pprof = v
		if v == "" {
			return nil
		}
		return server.CheckProfilesAddr(v)
	})
	s.flag(cmd, "snapshot", "snapshot `file`; \"\" keeps everything in memory only", func(c *config.Config, v string) error {
		if v != "" && c.Snapshot.Postgres != nil {
			return errors.New("the configuration has its snapshot in a database: leave that out for a file")
		}
		c.Snapshot.Path, c.Snapshot.Postgres = v, nil
		return nil
	})
	s.flag(cmd, "replica-url", "`URL` at which the other replicas of the configuration reach this one", func(c *config.Config, v string) error {
		if c.Replicas == nil {
			return errors.New("the configuration has no replicas")
		}
		c.Replicas.URL = v
		return config.CheckReplicaURL(v)
	})
	s.flag(cmd, "log-format", "`format` of logs: text or json", func(c *config.Config, v string) error {
		c.Log.Format = v
		return oneOf(v, config.LogFormats())
	})
	s.flag(cmd, "log-level", "least `level` to log: debug, info, warn or error", func(c *config.Config, v string) error {
		c.Log.Level = v
		return oneOf(v, config.LogLevels())
	})
}

func oneOf(value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("bad value %q: known are %s", value, strings.Join(known, ", "))
}
