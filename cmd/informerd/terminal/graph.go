package terminal

import (
	"net/url"
	"strings"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// maxNodes is how many informerd answers with at most, and maxDepth how far it goes.
const (
	maxNodes = "5000"
	maxDepth = 5
)

// graphNode is an object in a graph, with those below it in a tree.
type graphNode struct {
	ID, Resource, Kind, Namespace, Name, UID, State string

	Depth    int
	Missing  bool
	Unknown  bool
	Hub      bool
	Children []graphEdge
}

// graphEdge leads from a node to one below it.
type graphEdge struct {
	Edge, Why, Direction string

	Node *graphNode
	Seen string
}

// graphTree is an answer with view=tree.
type graphTree struct {
	Truncated  bool
	Root       *graphNode
	Unanswered []unanswered
}

// graph asks what the object at steps is related to.
func (s *session) graph(steps []string, v url.Values) (*graphTree, error) {
	v.Set("view", "tree")
	v.Set("limit", maxNodes)
	var t graphTree
	if err := s.JSON(s.ctx, client.Path(append([]string{"graph"}, steps...)...), v, &t); err != nil {
		return nil, err
	}
	s.warnUnanswered(t.Unanswered)
	if t.Truncated {
		s.warn("there is more: only the nearest " + maxNodes + " objects are shown")
	}
	return &t, nil
}

// title is what a tree calls a node: Deployment/web.
func (n *graphNode) title() string {
	kind := n.Kind
	if kind == "" {
		kind = n.Resource
	}
	return kind + "/" + n.Name
}

// branch draws the lines before a node that is not the root.
func branch(before string, last bool) (line, below string) {
	if last {
		return before + "└─", before + "  "
	}
	return before + "├─", before + "│ "
}

// stepsOf are those of the path of an object, from its id. Of an owner that is gone the
// UID is left out.
func stepsOf(id string) []string {
	id, _, _ = strings.Cut(id, "@")
	return strings.SplitN(id, "/", 3)
}
