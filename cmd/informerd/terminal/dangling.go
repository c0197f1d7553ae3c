package terminal

import (
	"cmp"
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

// danglingAnswer is what is needed of an answer: its rows as they are printed.
type danglingAnswer struct {
	truncated  bool
	rows       [][]string
	unanswered []unanswered
}

func (c *danglingCommand) dangling(s *session, kinds []string) error {
	v, err := c.cluster(c.values(true))
	if err != nil {
		return err
	}
	if len(kinds) > 0 {
		v.Set("kinds", strings.Join(splitKinds(kinds[0]), ","))
	}
	raw, err := s.Value(s.ctx, client.Path("graph", "dangling"), v)
	if err != nil {
		return err
	}
	a, err := c.read(raw)
	if err != nil {
		return s.Broken(s.ctx, err)
	}
	unknown := s.warnUnanswered(a.unanswered)
	switch {
	case c.name == "json":
		text, err := raw.Raw()
		if err == nil {
			err = s.writeJSON([]byte(text))
		}
		if err != nil {
			return err
		}
	case len(a.rows) == 0:
		s.note("Nothing dangles %s.", c.where())
	default:
		c.print(s, a.rows)
	}
	if a.truncated {
		s.note("There are more: --limit %d", c.limit)
	}
	if c.exitCode {
		return found(len(a.rows) > 0, unknown)
	}
	return nil
}

// read walks through an answer, which may be of as many references as there are pods.
func (c *danglingCommand) read(raw client.Value) (*danglingAnswer, error) {
	a := &danglingAnswer{}
	return a, raw.Members(func(name string, value client.Value) error {
		switch name {
		case "metadata":
			var metadata struct{ Truncated bool }
			err := value.Decode(&metadata)
			a.truncated = metadata.Truncated
			return err
		case "items":
			return value.Elements(func(item client.Value) error {
				row, err := c.row(item)
				a.rows = append(a.rows, row)
				return err
			})
		case "unanswered":
			return value.Decode(&a.unanswered)
		}
		return nil
	})
}

// row is what is printed of one reference or selector.
func (c *danglingCommand) row(item client.Value) ([]string, error) {
	var from graphNode
	var to *graphNode
	var edge, why, selector, namespaces string
	err := item.Members(func(name string, value client.Value) error {
		switch name {
		case "from":
			return from.read(value)
		case "to":
			to = &graphNode{}
			return to.read(value)
		case "edge":
			edge = value.Text()
		case "why":
			why = value.Text()
		case "selector":
			selector = value.Text()
		case "namespaceSelector":
			namespaces = value.Text()
		}
		return nil
	})
	if c.name == "name" {
		return []string{from.ID}, err
	}
	missing := "no " + cmp.Or(selector, namespaces)
	if to != nil {
		missing = to.title()
		if to.Namespace != from.Namespace && to.Namespace != "" {
			missing = to.ID
		}
	}
	return []string{from.Namespace, from.title(), edge, missing, why}, err
}

// read takes from the JSON of a node what it is called by.
func (n *graphNode) read(v client.Value) error {
	return v.Members(func(name string, value client.Value) error {
		switch name {
		case "id":
			n.ID = value.Text()
		case "resource":
			n.Resource = value.Text()
		case "kind":
			n.Kind = value.Text()
		case "namespace":
			n.Namespace = value.Text()
		case "name":
			n.Name = value.Text()
		}
		return nil
	})
}

func (c *danglingCommand) print(s *session, rows [][]string) {
	g := &grid{colour: s.colour, rows: rows}
	if !c.noHeaders && c.name != "name" {
		g.header = []string{"NAMESPACE", "NAME", "EDGE", "MISSING", "BY"}
	}
	g.print(s.out)
}
