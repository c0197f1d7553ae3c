package terminal

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// treeCommand shows what an object owns.
type treeCommand struct {
	*selection
	output
}

func newTreeCommand() *cobra.Command {
	c := &treeCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "tree KIND/NAME",
		Short: "Show what an object owns, and what that owns",
		Long: `Shows an object with all that it owns (metadata.ownerReferences, by UID), and what those
own in turn, of any kind. READY is the condition Ready of an object, or its ready replicas of
those wanted; REASON why it is not.`,
		Example: `  informerd tree deploy/web -n shop
  informerd tree deployments.apps/shop/web
  informerd tree cronjob backup -n data -o name`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeTargets,
		RunE:              c.onObject(&c.output, c.tree),
	}
	c.placeFlags(cmd)
	c.output.flag(cmd, "table", "name")
	c.connection.flags(cmd)
	return cmd
}

func (c *treeCommand) tree(s *session, t target) error {
	steps, err := s.locate(c.selection, t)
	if err != nil {
		return err
	}
	root, err := c.owned(s, steps)
	if err != nil {
		return err
	}
	g := &grid{colour: s.colour}
	if c.name == "name" {
		walk(root, func(n *graphNode) { g.row(n.ID) })
		g.print(s.out)
		return nil
	}
	states, err := s.statesOf(c.selection, root)
	if err != nil {
		return err
	}
	if !c.noHeaders {
		g.header = []string{"NAMESPACE", "NAME", "READY", "REASON", "AGE"}
	}
	addTree(g, states, root, "", "")
	g.print(s.out)
	return nil
}

// owned is the tree of what an object owns, as deep as it goes: informerd answers a few
// edges at a time.
func (c *treeCommand) owned(s *session, steps []string) (*graphNode, error) {
	v, err := s.graphValues(c.selection, "direction", "out", "edges", "owns", "depth", "5")
	if err != nil {
		return nil, err
	}
	t, err := s.graph(steps, v)
	if err != nil {
		return nil, err
	}
	var deepest []*graphNode
	walk(t.Root, func(n *graphNode) {
		if n.Depth == maxDepth {
			deepest = append(deepest, n)
		}
	})
	for _, n := range deepest {
		below, err := c.owned(s, stepsOf(n.ID))
		var refused *client.StatusError
		if errors.As(err, &refused) && refused.Code == 404 {
			continue // gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		n.Children = below.Children
	}
	return t.Root, nil
}

// walk calls each with every node, from the top down.
func walk(n *graphNode, each func(*graphNode)) {
	each(n)
	for _, e := range n.Children {
		if e.Node != nil {
			walk(e.Node, each)
		}
	}
}

func addTree(g *grid, states map[string]*objectState, n *graphNode, line, below string) {
	state := states[n.UID]
	if state == nil {
		state = &objectState{ready: "-"}
		if n.Missing || n.Unknown {
			state.reason = "not there"
		}
	}
	g.row(n.Namespace, line+n.title(), state.ready, state.reason, state.age)
	children := slices.DeleteFunc(slices.Clone(n.Children), func(e graphEdge) bool { return e.Node == nil })
	slices.SortStableFunc(children, func(a, b graphEdge) int {
		return cmp.Or(strings.Compare(a.Node.Kind, b.Node.Kind), strings.Compare(a.Node.Name, b.Node.Name))
	})
	for i, e := range children {
		line, next := branch(below, i == len(children)-1)
		addTree(g, states, e.Node, line, next)
	}
}

// objectState is how an object stands, in few words.
type objectState struct{ ready, reason, age string }

// stateFields are the paths that objectState is made from.
const stateFields = "metadata.uid,metadata.name,metadata.namespace,metadata.creationTimestamp,metadata.deletionTimestamp,metadata.resourceVersion,status.conditions," +
	"status.phase,status.reason,spec.replicas,status.readyReplicas,status.numberReady,status.desiredNumberScheduled," +
	"status.containerStatuses[*].state.waiting.reason,status.containerStatuses[*].state.terminated.reason"

// stateObject is an object of those fields.
type stateObject struct {
	partial
	Spec struct {
		Replicas *int
	}
	Status struct {
		Phase, Reason          string
		ReadyReplicas          int
		NumberReady            int
		DesiredNumberScheduled *int
		Conditions             []struct{ Type, Status, Reason string }
		ContainerStatuses      []struct {
			State struct{ Waiting, Terminated struct{ Reason string } }
		}
	}
}

// statesOf asks for the states of all objects of a tree, by UID: for those of each parent
// at once, from the index of owners.
func (s *session) statesOf(sel *selection, root *graphNode) (map[string]*objectState, error) {
	all := map[string]*objectState{}
	now := time.Now()
	ask := func(q question, index string) error {
		v := q.values(&selection{connection: sel.connection, clusters: sel.clusters})
		v.Set("fields", stateFields)
		if index != "" {
			v.Set("index", index)
		}
		var found struct{ Items []stateObject }
		if err := s.JSON(s.ctx, client.Path("query"), v, &found); err != nil {
			return err
		}
		for _, o := range found.Items {
			all[o.Metadata.UID] = o.state(now)
		}
		return nil
	}
	var failed error
	walk(root, func(n *graphNode) {
		if failed != nil {
			return
		}
		if n == root && !n.Missing && !n.Unknown {
			q := question{resources: []string{n.Resource}, namespaced: n.Namespace != "", names: []string{n.Name}}
			if q.namespaced {
				q.namespaces = []string{n.Namespace}
			}
			failed = ask(q, "")
		}
		if kinds := childKinds(n); failed == nil && len(kinds) > 0 && n.UID != "" {
			failed = ask(question{resources: kinds}, "owner:"+n.UID)
		}
	})
	return all, failed
}

// childKinds are the resources of what a node owns.
func childKinds(n *graphNode) []string {
	var kinds []string
	for _, e := range n.Children {
		if e.Node != nil && !slices.Contains(kinds, e.Node.Resource) {
			kinds = append(kinds, e.Node.Resource)
		}
	}
	return kinds
}

// state says in few words how the object stands.
func (o *stateObject) state(now time.Time) *objectState {
	state := &objectState{ready: "-", age: age(o.Metadata.CreationTimestamp, now)}
	for _, c := range o.Status.Conditions {
		if c.Type == "Ready" {
			state.ready, state.reason = c.Status, c.Reason
		}
	}
	switch {
	case state.ready != "-":
	case o.Spec.Replicas != nil:
		state.ready = ratio(o.Status.ReadyReplicas, *o.Spec.Replicas)
	case o.Status.DesiredNumberScheduled != nil:
		state.ready = ratio(o.Status.NumberReady, *o.Status.DesiredNumberScheduled)
	}
	for _, c := range o.Status.ContainerStatuses {
		if state.ready != "True" {
			state.reason = cmp.Or(c.State.Waiting.Reason, c.State.Terminated.Reason, state.reason)
		}
	}
	if state.ready != "True" {
		state.reason = cmp.Or(o.Status.Reason, state.reason)
	}
	if o.Metadata.DeletionTimestamp != "" {
		state.reason = "Terminating"
	}
	return state
}
