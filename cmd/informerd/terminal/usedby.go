package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// usedByCommand shows what needs an object.
type usedByCommand struct {
	*selection
	output
	depth int
	edges string
}

func newUsedByCommand() *cobra.Command {
	c := &usedByCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "used-by KIND/NAME",
		Short: "Show what uses an object: mounts, selects, routes to, owns it",
		Long: `Shows what needs an object, and what needs that, up to --depth edges away: who mounts a
ConfigMap, which Services select a pod, which Ingresses route to them. VIA is the kind of
relation and the field that makes it. Each object is shown once, where it is nearest. An object
that is not there can be asked for, too, by its id, if others name it. Exit code 1: nothing
uses it.`,
		Example: `  informerd used-by configmap/shop-config -n shop
  informerd used-by secret/shop-credentials -n shop --depth 1
  informerd used-by pvc/data-kafka-0 -n data -o name`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeTargets,
		RunE:              c.onObject(&c.output, c.usedBy),
	}
	c.placeFlags(cmd)
	c.output.flag(cmd, "table", "name")
	cmd.Flags().IntVar(&c.depth, "depth", 3, "how many edges away to go, 1 to 5")
	cmd.Flags().StringVar(&c.edges, "edges", "", "follow only these `kinds` of edges: mounts,env")
	c.connection.flags(cmd)
	return cmd
}

func (c *usedByCommand) usedBy(s *session, t target) error {
	steps, err := s.locateNamed(c.selection, t)
	if err != nil {
		return err
	}
	v, err := s.graphValues(c.selection, "direction", "in", "depth", strconv.Itoa(c.depth))
	if err != nil {
		return err
	}
	if c.edges != "" {
		v.Set("edges", c.edges)
	}
	tree, err := s.graph(steps, v)
	if err != nil {
		return err
	}
	if len(tree.Root.Children) == 0 && slices.ContainsFunc(tree.Unanswered, unanswered.matters) {
		return &outcome{ExitNoAnswer, fmt.Errorf("nothing that can be read uses %s, and that is not all", tree.Root.ID)}
	}
	if len(tree.Root.Children) == 0 {
		return no("nothing uses %s", tree.Root.ID)
	}
	g := &grid{colour: s.colour}
	if c.name == "name" {
		c.names(g, tree.Root)
	} else {
		if !c.noHeaders {
			g.header = []string{"NAMESPACE", "NAME", "VIA"}
		}
		g.row(tree.Root.Namespace, tree.Root.title(), missingText(tree.Root))
		addUsers(g, tree.Root, "")
	}
	g.print(s.out)
	return nil
}

// locateNamed is locate for an object that need not be there.
func (s *session) locateNamed(sel *selection, t target) ([]string, error) {
	if t.namespace != "" {
		return []string{t.kinds[0], t.namespace, t.names[0]}, nil
	}
	return s.locate(sel, t)
}

// names are the ids of all but the object itself.
func (c *usedByCommand) names(g *grid, root *graphNode) {
	walk(root, func(n *graphNode) {
		if n != root {
			g.row(n.ID)
		}
	})
}

func missingText(n *graphNode) string {
	switch {
	case n.Missing:
		return "(is not there)"
	case n.Unknown:
		return "(nobody can say whether it is there)"
	case n.Hub:
		return "(much uses it: ask for it itself)"
	}
	return ""
}

// addUsers adds what is below n, each object once: where it is nearest.
func addUsers(g *grid, n *graphNode, below string) {
	via := map[string][]string{}
	var children []*graphNode
	for _, e := range n.Children {
		id := e.Seen
		if e.Node != nil {
			id = e.Node.ID
			children = append(children, e.Node)
		}
		via[id] = append(via[id], e.Edge+" by "+e.Why)
	}
	for i, child := range children {
		line, next := branch(below, i == len(children)-1)
		text := strings.Join(via[child.ID], ", ")
		if missing := missingText(child); missing != "" {
			text += " " + missing
		}
		g.row(child.Namespace, line+child.title(), text)
		addUsers(g, child, next)
	}
}
