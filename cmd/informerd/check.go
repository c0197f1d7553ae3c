package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/discovery"
)

func newCheckCommand() *cobra.Command {
	var s settings
	var offline bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration and show what its rules select",
		Long: `Checks a configuration file, or the built-in configuration if none is named. All
mistakes are printed with their line, and the exit code is 2.

If a cluster can be reached, it is asked what it serves, and each rule is shown
with the resources it decides. Rules that select nothing are warnings.

Each handler is shown with its sink and whose rights it acts with; and of a cluster
that can be reached with the resources that it follows, and how many objects there
are of each.`,
		Example: `  informerd check config.yaml
  informerd check config.yaml --offline
  informerd check config.yaml --kubeconfig dev.kubeconfig`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				s.file = args[0]
			}
			cfg, err := s.load()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok, %s\n", s.name(), contents(cfg))
			showHandlers(cmd.OutOrStdout(), cmd.ErrOrStderr(), cfg.Handlers)
			if !offline {
				checkClusters(cmd, cfg)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask a cluster")
	s.clusterFlags(cmd)
	return cmd
}

func contents(cfg *config.Config) string {
	rules := plural(len(cfg.Resources), "rule")
	if len(cfg.Handlers) == 0 {
		return rules
	}
	return rules + ", " + plural(len(cfg.Handlers), "handler")
}

// checkClusters shows what the rules and handlers select of each cluster. A cluster that does
// not answer makes no configuration invalid.
func checkClusters(cmd *cobra.Command, cfg *config.Config) {
	for _, c := range clustersNow(cfg, cmd.ErrOrStderr()) {
		a, err := loadAccess(c)
		if err == nil {
			var resources []discovery.Resource
			if resources, err = lookup(cmd.Context(), a, cfg.Resources); err == nil {
				showSelection(cmd.OutOrStdout(), cmd.ErrOrStderr(), cfg.Resources, c.Name, resources)
				showFollowed(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), cfg, c.Name, resources, a)
			}
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "cluster %s not asked what it serves: %v\n", c.Name, err)
		}
	}
}

// showSelection prints each rule with the resources it decides.
func showSelection(out, warnings io.Writer, rules []config.Rule, cluster string, resources []discovery.Resource) {
	selected := make([][]string, len(rules))
	var none []string
	for _, c := range plan.Choose(rules, cluster, resources) {
		name := c.Spec.Name()
		if c.Rule < 0 {
			none = append(none, name)
			continue
		}
		if v := rules[c.Rule].Match[c.Pattern].Version(); v != "" {
			name += " (" + v + ")"
		}
		selected[c.Rule] = append(selected[c.Rule], name)
	}
	fmt.Fprintf(out, "\ncluster %s serves %s:\n", cluster, plural(len(resources), "resource"))
	for i, rule := range rules {
		verb := "watched"
		if !rule.Watch {
			verb = "left out"
		}
		fmt.Fprintf(out, "\n%s [%s], %s: %s\n%s", ruleName(rules, i), rule.Patterns(), verb, plural(len(selected[i]), "resource"), columns(selected[i]))
	}
	if len(none) > 0 {
		fmt.Fprintf(out, "\nno rule, left out: %s\n%s", plural(len(none), "resource"), columns(none))
	}
	for _, w := range plan.Warnings(rules, resources) {
		fmt.Fprintf(warnings, "warning: %s: %s\n", ruleName(rules, w.Rule), w.Message)
	}
}

// ruleName is where a rule is found: by line in a file, by what it matches in
// the built-in configuration.
func ruleName(rules []config.Rule, i int) string {
	if line := rules[i].Line; line > 0 {
		return fmt.Sprintf("resources[%d] (line %d)", i, line)
	}
	return fmt.Sprintf("resources[%d]", i)
}

// columns wraps words into indented lines.
func columns(words []string) string {
	const width = 96
	var b strings.Builder
	at := 0
	for _, w := range words {
		if at > 0 && at+2+len(w) > width {
			b.WriteByte('\n')
			at = 0
		}
		b.WriteString("  " + w)
		at += 2 + len(w)
	}
	if at > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
