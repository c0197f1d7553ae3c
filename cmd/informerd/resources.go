package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
)

func newResourcesCommand() *cobra.Command {
	var s settings
	var running string
	cmd := &cobra.Command{
		Use:   "resources",
		Short: "List what a cluster serves and what is watched of it",
		Long: `Asks the cluster which resources it serves and shows what the configuration makes
of each. With --server, asks a running informerd instead, which knows the state
and the number of objects of each.`,
		Example: `  informerd resources
  informerd resources --config config.yaml --context admin
  informerd resources --server http://127.0.0.1:8080`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if running != "" {
				return showRunning(cmd.Context(), cmd.OutOrStdout(), running)
			}
			cfg, err := s.load()
			if err != nil {
				return err
			}
			return showResources(cmd.Context(), cmd.OutOrStdout(), cfg, clustersNow(cfg, cmd.ErrOrStderr()))
		},
	}
	cmd.Flags().StringVar(&running, "server", "", "`URL` of a running informerd to ask instead of a cluster")
	s.configFlag(cmd)
	s.clusterFlags(cmd)
	return cmd
}

// showResources prints what the rules make of each resource of each cluster.
func showResources(ctx context.Context, out io.Writer, cfg *config.Config, clusters []config.Cluster) error {
	several := len(clusters) > 1
	t := newTable(out, several, "NAME", "VERSION", "KIND", "NAMESPACED", "WATCHED", "RULE", "INDEXES")
	for _, c := range clusters {
		a, err := loadAccess(c)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		resources, err := lookup(ctx, a, cfg.Resources)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		for _, choice := range plan.Choose(cfg.Resources, c.Name, resources) {
			spec := choice.Spec
			t.row(c.Name, spec.Name(), spec.GVR.Version, spec.Kind, strconv.FormatBool(spec.Namespaced),
				strconv.FormatBool(spec.Watch), decidedBy(cfg.Resources, choice.Rule),
				strings.Join(slices.Sorted(maps.Keys(spec.Indexes)), ","))
		}
	}
	return t.Flush()
}

func decidedBy(rules []config.Rule, i int) string {
	switch {
	case i < 0:
		return "none"
	case rules[i].Line > 0:
		return fmt.Sprintf("line %d", rules[i].Line)
	}
	return fmt.Sprintf("resources[%d]", i)
}

// runningResource is what is printed of an item of /v1/resources.
type runningResource struct {
	Cluster    string   `json:"cluster"`
	Group      string   `json:"group"`
	Version    string   `json:"version"`
	Resource   string   `json:"resource"`
	Kind       string   `json:"kind"`
	Namespaced bool     `json:"namespaced"`
	State      string   `json:"state"`
	Reason     string   `json:"reason"`
	Objects    int      `json:"objects"`
	Indexes    []string `json:"indexes"`
}

// showRunning prints what a running informerd says of its resources.
func showRunning(ctx context.Context, out io.Writer, server string) error {
	items, err := askRunning(ctx, server)
	if err != nil {
		return fmt.Errorf("ask %s: %w", server, err)
	}
	several := slices.ContainsFunc(items, func(r runningResource) bool { return r.Cluster != items[0].Cluster })
	t := newTable(out, several, "NAME", "VERSION", "KIND", "NAMESPACED", "STATE", "OBJECTS", "INDEXES", "REASON")
	for _, r := range items {
		name := r.Resource
		if r.Group != "" {
			name += "." + r.Group
		}
		t.row(r.Cluster, name, r.Version, r.Kind, strconv.FormatBool(r.Namespaced),
			r.State, strconv.Itoa(r.Objects), strings.Join(r.Indexes, ","), r.Reason)
	}
	return t.Flush()
}

func askRunning(ctx context.Context, server string) ([]runningResource, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	target, err := url.JoinPath(server, "/v1/resources")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lookupTimeout, errNoAnswer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answer is %s", resp.Status)
	}
	var list struct {
		Items []runningResource `json:"items"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return list.Items, nil
}

// table prints rows in columns, with the cluster first if there are several.
type table struct {
	*tabwriter.Writer
	clusters bool
}

func newTable(out io.Writer, clusters bool, header ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0), clusters}
	t.row("CLUSTER", header...)
	return t
}

func (t table) row(cluster string, cells ...string) {
	if t.clusters {
		cells = append([]string{cluster}, cells...)
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}
