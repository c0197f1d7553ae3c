package terminal

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// errNoContext is that there is no kubeconfig, or nothing in it is current.
var errNoContext = errors.New("the kubeconfig has no current context")

// loadContext reads the kubeconfig, as kubectl finds it, and names the context that counts.
func (c *connection) loadContext() (*clientcmdapi.Config, string, error) {
	raw, err := c.rules().Load()
	if err != nil {
		return nil, "", usagef("read kubeconfig: %w", err)
	}
	name := cmp.Or(c.context, raw.CurrentContext)
	if name == "" {
		return nil, "", errNoContext
	}
	if raw.Contexts[name] == nil {
		known := slices.Sorted(maps.Keys(raw.Contexts))
		return nil, "", usagef("the kubeconfig has no context %q, but %s", name, cmp.Or(strings.Join(known, ", "), "none at all"))
	}
	return raw, name, nil
}

func (c *connection) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	rules.WarnIfAllMissing = false
	return rules
}

func (c *connection) completeContexts(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	raw, err := c.rules().Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// defaultService is what deploy/ calls it.
const defaultService = "informerd/informerd"
