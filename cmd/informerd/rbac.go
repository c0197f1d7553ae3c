package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/cmd/informerd/rbac"
)

// rbacFlags say which rights are printed, and how.
type rbacFlags struct {
	settings
	names          rbac.Names
	cluster        string
	authentication bool
	offline        bool
	output         string
}

func newRBACCommand() *cobra.Command {
	var f rbacFlags
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Print the least rights that a configuration needs",
		Long: `Prints the roles that let informerd read what its configuration selects, and
nothing more, with their bindings to a service account.

If a cluster can be reached, it is asked what it serves, and the resources that
the rules select are granted by name. Otherwise, or with --offline, globs become
wildcards, which is said in the output.

What informerd writes is the Lease of its replicas, if the configuration has
several and that Lease is in this cluster.`,
		Example: `  informerd rbac --config config.yaml | kubectl apply -f -
  informerd rbac --config config.yaml --authentication --namespace platform
  informerd rbac --offline --output values > rbac.yaml     # helm install -f rbac.yaml`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return printRBAC(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.names.Role, "name", "informerd", "`name` of the roles and their bindings")
	flags.StringVar(&f.names.Namespace, "namespace", "informerd", "`namespace` of the service account")
	flags.StringVar(&f.names.ServiceAccount, "service-account", "informerd", "`name` of the service account")
	flags.StringVar(&f.cluster, "cluster", "", "`name` of the cluster in the configuration, if it has several")
	flags.BoolVar(&f.authentication, "authentication", false, "with the rights to serve others with theirs")
	flags.BoolVar(&f.offline, "offline", false, "do not ask a cluster what it serves")
	flags.StringVarP(&f.output, "output", "o", "manifest", "`format`: manifest, or values for the Helm chart")
	f.configFlag(cmd)
	f.clusterFlags(cmd)
	return cmd
}

func printRBAC(cmd *cobra.Command, f *rbacFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	cfg, err := f.load()
	if err != nil {
		return err
	}
	c, err := oneCluster(clustersNow(cfg, cmd.ErrOrStderr()), f.cluster)
	if err != nil {
		return err
	}
	options := f.options(cmd, cfg, c)
	needs := f.needs(cmd, cfg, c, options)
	if r := cfg.Replicas; r != nil && options.LeaseName == "" {
		needs.Remarks = append(needs.Remarks, fmt.Sprintf("The Lease %s/%s of the replicas is taken to be in another cluster, as the configuration reaches it in another way: "+
			"to get, update and create it is not granted here.", r.Namespace, r.Name))
	}
	for _, remark := range needs.Remarks {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", remark)
	}
	if f.output == "values" {
		return needs.WriteValues(cmd.OutOrStdout())
	}
	return needs.WriteManifest(cmd.OutOrStdout(), f.names)
}

// check finds what would not be an object's name.
func (f *rbacFlags) check() error {
	for _, flag := range []struct {
		name, value string
		mistakes    []string
	}{
		{"namespace", f.names.Namespace, validation.IsDNS1123Label(f.names.Namespace)},
		{"service-account", f.names.ServiceAccount, validation.IsDNS1123Subdomain(f.names.ServiceAccount)},
		{"name", f.names.Role, validation.IsDNS1123Subdomain(f.names.Role)},
	} {
		if len(flag.mistakes) > 0 {
			return usagef("--%s: bad name %q: %s", flag.name, flag.value, strings.Join(flag.mistakes, "; "))
		}
	}
	if err := oneOf(f.output, []string{"manifest", "values"}); err != nil {
		return usagef("--output: %w", err)
	}
	return nil
}

// needs are by name if the cluster says what it serves.
func (f *rbacFlags) needs(cmd *cobra.Command, cfg *config.Config, c config.Cluster, options rbac.Options) *rbac.Needs {
	if f.offline {
		return rbac.Offline(cfg.Resources, options)
	}
	a, err := loadAccess(c)
	if err == nil {
		resources, failed := lookup(cmd.Context(), a, cfg.Resources)
		if failed == nil {
			return rbac.Of(plan.Choose(cfg.Resources, c.Name, resources), options)
		}
		err = failed
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "note: cluster %s was not asked what it serves: %v\n", c.Name, err)
	return rbac.Offline(cfg.Resources, options)
}

// options are what is needed beside the copy of c.
func (f *rbacFlags) options(cmd *cobra.Command, cfg *config.Config, c config.Cluster) rbac.Options {
	options := rbac.Options{Authentication: f.authentication}
	if r := cfg.Replicas; r != nil && hasLease(cmd, r, c) {
		options.LeaseNamespace, options.LeaseName = r.Namespace, r.Name
	}
	return options
}

// hasLease reports whether the Lease of replicas is in c. Flags say how the cluster is reached
// from here, and not how informerd will: then there is one cluster, which the Lease is in
// unless the configuration names another place for it.
func hasLease(cmd *cobra.Command, r *config.Replicas, c config.Cluster) bool {
	if cmd.Flags().Changed("kubeconfig") || cmd.Flags().Changed("context") {
		return r.Kubeconfig == "" && r.Context == ""
	}
	return r.Kubeconfig == c.Kubeconfig && r.Context == c.Context
}

// oneCluster finds the one that is named, or the only one.
func oneCluster(all []config.Cluster, name string) (config.Cluster, error) {
	var names []string
	for _, c := range all {
		if c.Name == name || name == "" && len(all) == 1 {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return config.Cluster{}, usagef("the configuration has no cluster now: its folders hold none")
	}
	if name == "" {
		return config.Cluster{}, usagef("the configuration has several clusters: name one with --cluster: %s", strings.Join(names, ", "))
	}
	return config.Cluster{}, usagef("--cluster: the configuration has no cluster %q, but %s", name, strings.Join(names, ", "))
}
