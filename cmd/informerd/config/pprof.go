package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/server"
)

// pprof reads where profiles are served; "" is nowhere.
func (r *reader) pprof(n *yaml.Node, path string, c *Config) {
	addr, ok := r.text(n, path)
	if !ok || addr == "" {
		return
	}
	if err := server.CheckProfilesAddr(addr); err != nil {
		r.errorf(n, path, "%v", err)
		return
	}
	c.Pprof = addr
}
