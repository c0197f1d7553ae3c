package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/server/audit"
)

// Audit says where it is recorded who asked for what.
type Audit struct {
	// File is a path, or audit.Standard for the standard output; "" records nothing.
	File string
	// MaxSizeMB is the size in MiB at which the file is rotated; 0 leaves that to others.
	MaxSizeMB int
	// MaxBackups is how many rotated files are kept.
	MaxBackups int
	// Omit are paths of requests that are not recorded.
	Omit []string
}

func defaultAudit() Audit {
	return Audit{MaxSizeMB: 100, MaxBackups: 5, Omit: []string{"/livez", "/healthz", "/readyz"}}
}

func (r *reader) audit(n *yaml.Node, path string, a *Audit) {
	r.mapping(n, path, fieldsOf{
		"file":       r.path(&a.File),
		"maxSizeMB":  func(n *yaml.Node, path string) { a.MaxSizeMB = r.integer(n, path, 0, 1<<16, a.MaxSizeMB) },
		"maxBackups": func(n *yaml.Node, path string) { a.MaxBackups = r.integer(n, path, 1, 1000, a.MaxBackups) },
		"omit":       func(n *yaml.Node, path string) { a.Omit = r.texts(n, path, checkOmitted) },
	})
}

// checkOmitted refuses what would not be the path of any request.
func checkOmitted(path string) error {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?*") {
		return fmt.Errorf("bad path %q: write one such as /readyz, whole and without parameters", path)
	}
	return nil
}

// checkAudit refuses a file that is already used for something else.
func (r *reader) checkAudit(n *yaml.Node, c *Config) {
	if n != nil && c.Audit.File != "" && c.Audit.File != audit.Standard && c.Audit.File == c.Snapshot.Path {
		r.errorf(n, "audit.file", "%s is the file of the snapshot", c.Audit.File)
	}
}
