package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/server"
)

// prepare reads what is computed of all objects before anybody asks.
func (r *reader) prepare(n *yaml.Node, path string) (p server.Prepared) {
	r.list(n, path, func(n *yaml.Node, path string) {
		switch r.choice(n, path, "", "graph", "search") {
		case "graph":
			p.Graph = true
		case "search":
			p.Search = true
		}
	})
	return p
}
