package terminal

import (
	"bytes"
	"errors"
	"io"
	"net/url"
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
	text       bytes.Buffer // all of it, where that is printed
	truncated  bool
	rows       *grid
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
	a, err := c.ask(s, v)
	if err != nil {
		return err
	}
	unknown := s.warnUnanswered(a.unanswered)
	switch {
	case c.name == "json":
		if err := s.writeJSON(bytes.TrimSpace(a.text.Bytes())); err != nil {
			return err
		}
	case a.rows.count == 0:
		s.note("Nothing dangles %s.", c.where())
	default:
		a.rows.print(s.out)
	}
	if a.truncated {
		s.note("There are more: --limit %d", c.limit)
	}
	if c.exitCode {
		return found(a.rows.count > 0, unknown)
	}
	return nil
}

// ask reads an answer, which may be of as many references as there are pods.
func (c *danglingCommand) ask(s *session, v url.Values) (*danglingAnswer, error) {
	resp, err := s.Get(s.ctx, client.Path("graph", "dangling"), v, "Cache-Control", "no-store")
	if err != nil {
		return nil, err
	}
	a := &danglingAnswer{rows: &grid{colour: s.colour}}
	if !c.noHeaders && c.name != "name" {
		a.rows.header = []string{"NAMESPACE", "NAME", "EDGE", "MISSING", "BY"}
	}
	if c.name == "json" {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(resp.Body, &a.text), resp.Body}
	}
	return a, s.List(s.ctx, resp, a.member, func(item client.Value) error { return a.row(item, c.name == "name") })
}

func (a *danglingAnswer) member(name string, value client.Value) error {
	switch name {
	case "metadata":
		var metadata struct{ Truncated bool }
		err := value.Decode(&metadata)
		a.truncated = metadata.Truncated
		return err
	case "unanswered":
		return value.Decode(&a.unanswered)
	}
	return nil
}

// row adds what is printed of one reference or selector; only the holder's name, if named.
func (a *danglingAnswer) row(item client.Value, named bool) error {
	var from, to namedNode
	var edge, why, selector client.Value
	missing := false
	err := item.Members(func(name []byte, value client.Value) error {
		switch string(name) {
		case "from":
			return from.read(value)
		case "to":
			missing = true
			return to.read(value)
		case "edge":
			edge = value
		case "why":
			why = value
		case "selector":
			selector = value
		case "namespaceSelector":
			if selector.IsZero() {
				selector = value
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	g := a.rows
	defer g.endRow()
	if named {
		g.value(from.id)
		return nil
	}
	g.value(from.namespace)
	g.text = from.appendTitle(g.text)
	g.endCell()
	g.value(edge)
	if missing {
		g.text = to.appendMissing(g.text, &from)
	} else {
		g.text = selector.AppendText(append(g.text, "no "...))
	}
	g.endCell()
	g.value(why)
	return nil
}

// namedNode is what a node in JSON is called by.
type namedNode struct{ id, resource, kind, namespace, name client.Value }

func (n *namedNode) read(v client.Value) error {
	return v.Members(func(name []byte, value client.Value) error {
		switch string(name) {
		case "id":
			n.id = value
		case "resource":
			n.resource = value
		case "kind":
			n.kind = value
		case "namespace":
			n.namespace = value
		case "name":
			n.name = value
		}
		return nil
	})
}

// appendTitle appends what a tree calls the node, too.
func (n *namedNode) appendTitle(dst []byte) []byte {
	kind := n.kind
	if kind.IsZero() {
		kind = n.resource
	}
	return n.name.AppendText(append(kind.AppendText(dst), '/'))
}

// appendMissing says what is not there, for a holder in a namespace.
func (n *namedNode) appendMissing(dst []byte, holder *namedNode) []byte {
	if !n.namespace.IsZero() && !n.namespace.Equal(holder.namespace) {
		return n.id.AppendText(dst)
	}
	return n.appendTitle(dst)
}
