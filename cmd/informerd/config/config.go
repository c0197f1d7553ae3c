// Package config reads config.yaml. It is strict: an unknown key, a duplicate, a
// value of the wrong type or one that could never work is an error that names
// its line, its path and what would be right; all of them are reported at once,
// and a file with any is refused whole.
//
// The package knows no cluster. What the rules select of what a cluster serves
// is decided by package plan.
package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/server"
	"github.com/informerd/informerd/server/kubeapi"
)

// Config is one valid configuration. It is a value: once read it must not be
// modified.
type Config struct {
	// Listen is the host:port to serve on.
	Listen string
	// TLS is what to serve with; its zero value is plain HTTP.
	TLS server.TLS
	// PlainHTTP serves addresses beyond this machine without TLS.
	PlainHTTP bool
	// Authentication is nil where everybody who reaches informerd sees everything.
	Authentication *Authentication
	Authorization  Authorization
	// Audit says where it is recorded who asked for what.
	Audit Audit
	// Pprof is the host:port to serve profiles on; "" is nowhere.
	Pprof string
	// Clusters are those that are named; their names differ. They are empty only if there
	// are Folders.
	Clusters []Cluster
	// Folders hold the kubeconfigs of further clusters.
	Folders  []Folder
	Snapshot Snapshot
	// Replicas is nil for one that is alone.
	Replicas *Replicas
	Verify   Verify
	// Syncs is how many resources are listed from a cluster at the same time.
	Syncs int
	// Kubernetes says how the Kubernetes API answers.
	Kubernetes kubeapi.Modes
	Log        Log
	// References are edges of the graph beside the built-in ones.
	References []graph.Rule
	Search     Search
	// Prepare is what is computed of all objects before anybody asks.
	Prepare server.Prepared
	// Resources are the rules: the first that matches a resource decides. They
	// are never empty.
	Resources []Rule
	// Handlers are what changes are delivered to; their names differ.
	Handlers []Handler
}

// Cluster is one cluster to replicate.
type Cluster struct {
	Name string
	// Kubeconfig is a path; "" means KUBECONFIG, ~/.kube/config or in-cluster.
	Kubeconfig string
	// Context is a context of the kubeconfig; "" means its current one.
	Context string
	// Namespaces are tried where a whole resource may not be read; none means
	// the namespace of the context.
	Namespaces []string
	// Follows says that the kubeconfig is this cluster's alone, as one of a Folder is: a
	// change of it is taken over at once. Another one may only have got another current
	// context, which is no reason to replicate another cluster while this one answers.
	Follows bool
}

// Folder is one of kubeconfigs. Each file in it, but for those whose name begins with a
// dot, is of one cluster, which is called like the file without its last extension.
type Folder struct {
	Path string
	// Namespaces are those of each of its clusters.
	Namespaces []string
}

// Snapshot says where the copy outlives the process.
type Snapshot struct {
	// Path is the file; "" keeps everything in memory only, unless there is Postgres.
	Path string
	// Postgres is a database in the place of the file; nil for none.
	Postgres *Postgres
	// KeyFile has the keys that it is encrypted with; "" leaves it as it is.
	KeyFile string
	// Interval is the time between two commits.
	Interval time.Duration
}

// Kept reports whether there is anything that outlives the process.
func (s Snapshot) Kept() bool { return s.Path != "" || s.Postgres != nil }

// Postgres says where a PostgreSQL database is.
type Postgres struct {
	// URL is without a password.
	URL string
	// PasswordFile holds it; "" for none.
	PasswordFile string
	// Schema is where the tables are.
	Schema string
}

// Verify says how often the copy is compared with the cluster.
type Verify struct {
	// Interval is the time between two comparisons of one resource; 0 is never.
	Interval time.Duration
}

// Log says what is logged, and how.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Search says what can be found beside names, labels, images and annotations.
type Search struct {
	// Texts are paths by the resource they are of.
	Texts map[string][]string
}

// Rule says what is done with the resources its patterns match.
type Rule struct {
	// Match is never empty.
	Match []Pattern
	// Watch is false for resources that are left out.
	Watch bool
	// Namespaces are globs; none means all.
	Namespaces    []string
	LabelSelector string
	FieldSelector string
	ShardSelector string
	// Indexes are paths by the name of their index.
	Indexes map[string]string
	// Drop are paths cut out of objects.
	Drop []string
	// Redact are paths whose values are emptied. Nil and empty differ: nil means
	// that the file does not say, which redacts Secrets all the same.
	Redact []string
	// Columns says what is kept for questions that no index answers.
	Columns cache.ColumnRules
	// Mirror says how objects are mirrored for SQL: MirrorJSONB, or "" for not at all.
	Mirror string
	// Line is where the rule starts in its file, 0 in the built-in default.
	Line int
}

// MirrorJSONB mirrors objects as jsonb.
const MirrorJSONB = "jsonb"

// Patterns are what r matches, for people.
func (r Rule) Patterns() string {
	texts := make([]string, len(r.Match))
	for i, p := range r.Match {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// DefaultDrop is what a rule drops that does not say.
func DefaultDrop() []string { return []string{"metadata.managedFields"} }

// Default is the configuration without a file. The shipped config.yaml says the
// same.
func Default() *Config {
	c := defaults()
	c.Resources = []Rule{
		{
			Match: mustPatterns("leases.coordination.k8s.io", "events", "events.events.k8s.io"),
			Watch: false,
			Drop:  DefaultDrop(),
		},
		{
			Match:  mustPatterns("secrets"),
			Watch:  true,
			Drop:   DefaultDrop(),
			Redact: []string{"data", "stringData"},
		},
		{
			Match: mustPatterns("pods"),
			Watch: true,
			Indexes: map[string]string{
				"node":  "spec.nodeName",
				"phase": "status.phase",
				"image": "spec.containers[*].image",
			},
			Drop: DefaultDrop(),
		},
		{
			Match: mustPatterns("*"),
			Watch: true,
			Drop:  DefaultDrop(),
		},
	}
	return c
}

// defaults is what holds for every key a file leaves out, but for the rules.
func defaults() *Config {
	return &Config{
		Listen:        "127.0.0.1:8080",
		Clusters:      []Cluster{{Name: "default"}},
		Snapshot:      Snapshot{Path: "data/informerd.db", Interval: time.Second},
		Verify:        Verify{Interval: time.Hour},
		Syncs:         8,
		Authorization: Authorization{Mode: Review},
		Audit:         defaultAudit(),
		Kubernetes:    kubeapi.Modes{Reads: kubeapi.Cached, Passthrough: kubeapi.PassNone, Lists: kubeapi.Strict},
		Log:           Log{Level: "info", Format: "text"},
	}
}

// NeedsRestart names the settings that differ between c and next and that a
// running process cannot take over.
func (c *Config) NeedsRestart(next *Config) []string {
	var names []string
	for _, s := range []struct {
		name    string
		differs bool
	}{
		{"listen", c.Listen != next.Listen},
		{"tls", c.TLS != next.TLS || c.PlainHTTP != next.PlainHTTP},
		{"authentication", !reflect.DeepEqual(c.Authentication, next.Authentication)},
		{"authorization", c.Authorization != next.Authorization},
		{"audit", !reflect.DeepEqual(c.Audit, next.Audit)},
		{"pprof", c.Pprof != next.Pprof},
		{"prepare", c.Prepare != next.Prepare},
		{"snapshot.path", c.Snapshot.Path != next.Snapshot.Path},
		{"snapshot.postgres", !reflect.DeepEqual(c.Snapshot.Postgres, next.Snapshot.Postgres)},
		{"snapshot.encryption", c.Snapshot.KeyFile != next.Snapshot.KeyFile},
		{"snapshot.interval", c.Snapshot.Interval != next.Snapshot.Interval},
		{"replicas", !reflect.DeepEqual(c.Replicas, next.Replicas)},
		{"verify.interval", c.Verify != next.Verify},
		{"syncs", c.Syncs != next.Syncs},
		{"log.format", c.Log.Format != next.Log.Format},
	} {
		if s.differs {
			names = append(names, s.name)
		}
	}
	return names
}

// Equal reports whether nothing differs.
func (c Cluster) Equal(o Cluster) bool {
	return c.Name == o.Name && c.Kubeconfig == o.Kubeconfig && c.Context == o.Context &&
		slices.Equal(c.Namespaces, o.Namespaces) && c.Follows == o.Follows
}

// Equal reports whether nothing differs.
func (f Folder) Equal(o Folder) bool {
	return f.Path == o.Path && slices.Equal(f.Namespaces, o.Namespaces)
}
