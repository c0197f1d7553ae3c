package terminal

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// danglingCommand shows references to what is not there.
type danglingCommand struct {
	*selection
	output
	exitCode bool
}

func newDanglingCommand() *cobra.Command {
	c := &danglingCommand{selection: everywhere()}
	cmd := &cobra.Command{
		Use:   "dangling [KINDS]",
		Short: "Show references to what is not there, and selectors that select nothing",
		Long: `Shows every reference to an object that is not there, and every Service,
PodDisruptionBudget and NetworkPolicy that selects nothing, in all namespaces. KINDS are what
holds the reference, or what it names.`,
		Example: `  informerd dangling
  informerd dangling services
  informerd dangling configmaps,secrets -n 'team-*' --exit-code`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(c.selection.settle(), c.output.settle()); err != nil {
				return err
			}
			return c.run(cmd, func(s *session) error { return c.dangling(s, args) })
		},
	}
	c.placeFlags(cmd)
	c.limitFlag(cmd)
	c.output.flag(cmd, "table", "json", "name")
	cmd.Flags().BoolVar(&c.exitCode, "exit-code", false, "exit with 1 if there are any, with 3 if there are none and not all can be read")
	c.connection.flags(cmd)
	return cmd
}

type danglingAnswer struct {
	Metadata struct {
		Truncated bool
	}
	Items []struct {
		From                                   graphNode
		To                                     *graphNode
		Edge, Why, Selector, NamespaceSelector string
	}
	Unanswered []unanswered
}

func (c *danglingCommand) dangling(s *session, kinds []string) error {
	v, err := c.cluster(c.values(true))
	if err != nil {
		return err
	}
	if len(kinds) > 0 {
		v.Set("kinds", strings.Join(splitKinds(kinds[0]), ","))
	}
	var raw json.RawMessage
	if err := s.JSON(s.ctx, client.Path("graph", "dangling"), v, &raw); err != nil {
		return err
	}
	var a danglingAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	unknown := s.warnUnanswered(a.Unanswered)
	switch {
	case c.name == "json":
		if err := s.writeJSON(raw); err != nil {
			return err
		}
	case len(a.Items) == 0:
		s.note("Nothing dangles %s.", c.where())
	default:
		c.print(s, &a)
	}
	if a.Metadata.Truncated {
		s.note("There are more: --limit %d", c.limit)
	}
	if c.exitCode {
		return found(len(a.Items) > 0, unknown)
	}
	return nil
}

func (c *danglingCommand) print(s *session, a *danglingAnswer) {
	g := &grid{colour: s.colour}
	if !c.noHeaders && c.name != "name" {
		g.header = []string{"NAMESPACE", "NAME", "EDGE", "MISSING", "BY"}
	}
	for _, item := range a.Items {
		if c.name == "name" {
			g.row(item.From.ID)
			continue
		}
		missing := "no " + cmp.Or(item.Selector, item.NamespaceSelector)
		if item.To != nil {
			missing = item.To.title()
			if item.To.Namespace != item.From.Namespace && item.To.Namespace != "" {
				missing = item.To.ID
			}
		}
		g.row(item.From.Namespace, item.From.title(), item.Edge, missing, item.Why)
	}
	g.print(s.out)
}
