package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
)

const typeDOT = "text/vnd.graphviz"

// show is the form of a graph.
type show struct {
	tree, dot, pretty bool
}

func parseShow(p params) (show, error) {
	view, err := p.oneOf("view", "graph", "graph", "tree")
	if err != nil {
		return show{}, err
	}
	output, err := p.oneOf("output", "json", "json", "dot")
	if err != nil {
		return show{}, err
	}
	pretty, err := p.flag("pretty")
	if err == nil && output == "dot" {
		for _, name := range []string{"view", "pretty"} {
			if p.Has(name) {
				return show{}, invalid(name, "not possible together with output=dot")
			}
		}
	}
	return show{tree: view == "tree", dot: output == "dot", pretty: pretty}, err
}

func (s show) mediaType() string {
	if s.dot {
		return typeDOT
	}
	return typeJSON
}

func (s show) write(w http.ResponseWriter, r *http.Request, a *graphAnswer) error {
	switch {
	case s.tree:
		return writeTagged(w, r, treeOf(a), s.pretty)
	case !s.dot:
		return writeTagged(w, r, a, s.pretty)
	}
	body := dotOf(a)
	if notModified(w, r, bodyTag(r, body)) {
		return nil
	}
	return writeAs(w, r, typeDOT+"; charset=utf-8", body)
}

// graphTree is a graph as a tree: each node under the one it was first reached
// from.
type graphTree struct {
	Kind       string           `json:"kind"`
	APIVersion string           `json:"apiVersion"`
	Truncated  bool             `json:"truncated"`
	Root       *treeNode        `json:"root"`
	Unanswered []unansweredItem `json:"unanswered"`
}

type treeNode struct {
	graphNode
	Children []treeEdge `json:"children,omitempty"`
}

// treeEdge leads from a node to one below it. Direction is out where the edge
// does too, in where it leads up.
type treeEdge struct {
	Edge      string `json:"edge"`
	Why       string `json:"why"`
	Direction string `json:"direction"`
	// Node is shown below; Seen only names one that is shown elsewhere.
	Node *treeNode `json:"node,omitempty"`
	Seen string    `json:"seen,omitempty"`
}

// treeOf relies on the order of edges, which is that in which nodes were
// reached.
func treeOf(a *graphAnswer) *graphTree {
	nodes := map[string]*treeNode{}
	for _, n := range a.Nodes {
		nodes[n.ID] = &treeNode{graphNode: n}
	}
	placed := map[string]bool{a.Root: true}
	for _, e := range a.Edges {
		upper, lower, direction := nodes[e.From], nodes[e.To], "out"
		if lower.Depth < upper.Depth {
			upper, lower, direction = lower, upper, "in"
		}
		child := treeEdge{Edge: e.Edge, Why: e.Why, Direction: direction, Seen: lower.ID}
		if !placed[lower.ID] {
			placed[lower.ID] = true
			child.Node, child.Seen = lower, ""
		}
		upper.Children = append(upper.Children, child)
	}
	return &graphTree{Kind: "GraphTree", APIVersion: apiVersion, Truncated: a.Truncated, Root: nodes[a.Root], Unanswered: a.Unanswered}
}

// dotOf is a graph in the language of Graphviz.
func dotOf(a *graphAnswer) []byte {
	var b bytes.Buffer
	b.WriteString("digraph {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n")
	for _, n := range a.Nodes {
		title := n.Kind
		if title == "" {
			title = n.Resource
		}
		name := n.Name
		if n.Namespace != "" {
			name = n.Namespace + "/" + name
		}
		style := ""
		switch {
		case n.Missing:
			style = `, style="rounded,dashed", color=red`
		case n.Unknown:
			style = `, style="rounded,dotted"`
		case n.ID == a.Root:
			style = `, style="rounded,bold"`
		}
		fmt.Fprintf(&b, "  %s [label=%s%s];\n", strconv.Quote(n.ID), strconv.Quote(title+"\n"+name), style)
	}
	for _, e := range a.Edges {
		fmt.Fprintf(&b, "  %s -> %s [label=%s, tooltip=%s];\n",
			strconv.Quote(e.From), strconv.Quote(e.To), strconv.Quote(e.Edge), strconv.Quote(e.Why))
	}
	if a.Truncated {
		b.WriteString("  label=\"truncated: there is more\";\n")
	}
	for _, u := range a.Unanswered {
		fmt.Fprintf(&b, "  // %s is %s\n", u.Resource, u.State)
	}
	b.WriteString("}\n")
	return b.Bytes()
}
