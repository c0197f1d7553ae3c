package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/persist"
	"github.com/informerd/informerd/server"
	"github.com/informerd/informerd/server/kubeapi"
)

// maxSize is far more than anyone writes and keeps a file given by mistake, such
// as a snapshot, from being parsed.
const maxSize = 1 << 20

// Read returns what is in a file of reasonable size.
func Read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("read configuration: %s is larger than 1 MiB: is it a configuration?", file)
	}
	return data, nil
}

// Parse reads data, which errors call file. What is not given has its default.
// Its error is always Errors.
func Parse(file string, data []byte) (*Config, error) {
	r := &reader{file: file}
	c := defaults()
	c.Resources = Default().Resources
	if n := r.document(data); n != nil && !isNull(n) {
		r.config(n, c)
	}
	if len(r.errs) > 0 {
		r.errs.sort()
		return nil, r.errs
	}
	return c, nil
}

// document parses the only document of data; nil means that there is none.
func (r *reader) document(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		if !errors.Is(err, io.EOF) {
			r.syntax(err)
		}
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.errorf(&second, "", "a second document starts here: one file is one configuration")
	case !errors.Is(err, io.EOF):
		r.syntax(err)
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) == 0 {
		return nil
	}
	return resolve(first.Content[0])
}

var syntaxError = regexp.MustCompile(`(?s)^yaml: (?:line ([0-9]+): )?(.*)$`)

// syntax reports an error of the YAML parser, which knows its line at best.
func (r *reader) syntax(err error) {
	e := &Error{File: r.file, Message: "not YAML: " + err.Error()}
	if m := syntaxError.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Message = "not YAML: " + m[2]
	}
	r.errs = append(r.errs, e)
}

func (r *reader) config(n *yaml.Node, c *Config) {
	var listen, audit *yaml.Node
	r.mapping(n, "", fieldsOf{
		"listen": func(n *yaml.Node, path string) {
			c.Listen, _ = r.text(n, path)
			listen = n
		},
		"tls":            func(n *yaml.Node, path string) { r.tls(n, path, c) },
		"authentication": func(n *yaml.Node, path string) { c.Authentication = r.authentication(n, path) },
		"authorization":  func(n *yaml.Node, path string) { r.authorization(n, path, &c.Authorization) },
		"audit": func(n *yaml.Node, path string) {
			r.audit(n, path, &c.Audit)
			audit = n
		},
		"pprof": func(n *yaml.Node, path string) { r.pprof(n, path, c) },
		"clusters": func(n *yaml.Node, path string) {
			if named, folders := r.clusters(n, path); len(named)+len(folders) > 0 {
				c.Clusters, c.Folders = named, folders
			}
		},
		"snapshot": func(n *yaml.Node, path string) { r.snapshot(n, path, &c.Snapshot) },
		"replicas": func(n *yaml.Node, path string) { c.Replicas = r.replicas(n, path) },
		"verify": func(n *yaml.Node, path string) {
			r.mapping(n, path, fieldsOf{"interval": func(n *yaml.Node, path string) {
				c.Verify.Interval = r.duration(n, path, true, time.Minute, 7*24*time.Hour, c.Verify.Interval)
			}})
		},
		"syncs":      func(n *yaml.Node, path string) { c.Syncs = r.integer(n, path, 1, 256, c.Syncs) },
		"kubernetes": func(n *yaml.Node, path string) { r.kubernetes(n, path, &c.Kubernetes) },
		"log":        func(n *yaml.Node, path string) { r.log(n, path, &c.Log) },
		"references": func(n *yaml.Node, path string) { c.References = r.references(n, path) },
		"search": func(n *yaml.Node, path string) {
			r.mapping(n, path, fieldsOf{"texts": func(n *yaml.Node, path string) { c.Search.Texts = r.searchTexts(n, path) }})
		},
		"prepare": func(n *yaml.Node, path string) { c.Prepare = r.prepare(n, path) },
		"resources": func(n *yaml.Node, path string) {
			c.Resources = r.rules(n, path)
		},
		"handlers": func(n *yaml.Node, path string) { c.Handlers = r.handlers(n, path) },
	})
	r.checkAudit(audit, c)
	for _, check := range r.later {
		check(c)
	}
	if listen == nil || len(r.errs) > 0 && c.Listen == "" {
		return
	}
	// What else is configured decides where it is safe to listen.
	if err := server.CheckAddr(c.Listen, c.Exposure()); err != nil {
		r.errorf(listen, "listen", "%v", err)
	}
}

// tls reads the files of a certificate: both, or none.
func (r *reader) tls(n *yaml.Node, path string, c *Config) {
	t := &c.TLS
	r.mapping(n, path, fieldsOf{
		"certFile":  r.path(&t.CertFile),
		"keyFile":   r.path(&t.KeyFile),
		"plainHTTP": func(n *yaml.Node, path string) { c.PlainHTTP = r.boolean(n, path, c.PlainHTTP) },
	})
	if n.Kind == yaml.MappingNode && (t.CertFile == "") != (t.KeyFile == "") {
		r.errorf(n, path, "needs both certFile and keyFile, or none for plain HTTP")
	}
}

// path reads the name of a file.
func (r *reader) path(to *string) func(n *yaml.Node, path string) {
	return func(n *yaml.Node, path string) {
		name, _ := r.text(n, path)
		*to = expandHome(name)
	}
}

func (r *reader) snapshot(n *yaml.Node, path string, s *Snapshot) {
	var file, encryption *yaml.Node
	r.mapping(n, path, fieldsOf{
		"path": func(n *yaml.Node, path string) {
			name, _ := r.text(n, path)
			s.Path, file = expandHome(name), n
		},
		"postgres": func(n *yaml.Node, path string) { s.Postgres = r.postgres(n, path) },
		"encryption": func(n *yaml.Node, path string) {
			encryption = n
			r.encryption(n, path, s)
		},
		"interval": func(n *yaml.Node, path string) {
			s.Interval = r.duration(n, path, false, 100*time.Millisecond, time.Hour, s.Interval)
		},
	})
	if s.Postgres == nil {
		return
	}
	if file != nil && s.Path != "" {
		r.errorf(file, join(path, "path"), "a snapshot is in a file or in a database: leave path out beside postgres")
	}
	if encryption != nil {
		r.errorf(encryption, join(path, "encryption"), "only a file is encrypted: leave it out beside postgres, and see to the database's own")
	}
	s.Path = ""
}

// postgres reads where the database is; a problem is told where it is. Nil if it is none.
func (r *reader) postgres(n *yaml.Node, path string) *Postgres {
	p := &Postgres{Schema: persist.DefaultSchema}
	said := len(r.errs)
	var url *yaml.Node
	r.mapping(n, path, fieldsOf{
		"url":          func(n *yaml.Node, path string) { p.URL, _ = r.text(n, path); url = n },
		"passwordFile": r.path(&p.PasswordFile),
		"schema":       func(n *yaml.Node, path string) { p.Schema, _ = r.text(n, path) },
	})
	if len(r.errs) > said {
		return nil
	}
	at := n
	if url != nil {
		at, path = url, join(path, "url")
	}
	if err := persist.CheckPostgres(persist.PostgresOptions{URL: p.URL, Schema: p.Schema}); err != nil {
		r.errorf(at, path, "%v", err)
		return nil
	}
	return p
}

// encryption reads where the keys are. An empty name is no way to say that there is no
// encryption: who wrote it may believe that there is.
func (r *reader) encryption(n *yaml.Node, path string, s *Snapshot) {
	said := len(r.errs)
	r.mapping(n, path, fieldsOf{"keyFile": r.path(&s.KeyFile)})
	if s.KeyFile == "" && len(r.errs) == said {
		r.errorf(n, path, "needs keyFile; leave encryption out for a snapshot that is not encrypted")
	}
}

func (r *reader) kubernetes(n *yaml.Node, path string, m *kubeapi.Modes) {
	r.mapping(n, path, fieldsOf{
		"reads": func(n *yaml.Node, path string) {
			m.Reads = kubeapi.Reads(r.choice(n, path, string(m.Reads), string(kubeapi.Cached), string(kubeapi.Consistent)))
		},
		"passthrough": func(n *yaml.Node, path string) {
			m.Passthrough = kubeapi.Passthrough(r.choice(n, path, string(m.Passthrough),
				string(kubeapi.PassNone), string(kubeapi.PassReads), string(kubeapi.PassAll)))
		},
		"lists": func(n *yaml.Node, path string) {
			m.Lists = kubeapi.Lists(r.choice(n, path, string(m.Lists), string(kubeapi.Strict), string(kubeapi.Visible)))
		},
	})
}

func (r *reader) log(n *yaml.Node, path string, l *Log) {
	r.mapping(n, path, fieldsOf{
		"level": func(n *yaml.Node, path string) {
			l.Level = r.choice(n, path, l.Level, LogLevels()...)
		},
		"format": func(n *yaml.Node, path string) {
			l.Format = r.choice(n, path, l.Format, LogFormats()...)
		},
	})
}

// LogLevels are the levels there are, the most talkative first.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// LogFormats are the formats there are.
func LogFormats() []string { return []string{"text", "json"} }

func (r *reader) clusters(n *yaml.Node, path string) (named []Cluster, folders []Folder) {
	named = []Cluster{}
	lines := map[string]int{}
	r.list(n, path, func(n *yaml.Node, path string) {
		c, f := r.cluster(n, path)
		key, what := "cluster "+c.Name, fmt.Sprintf("name %q is taken by the cluster", c.Name)
		if f.Path != "" {
			key, what = "folder "+f.Path, fmt.Sprintf("folder %q is taken by the entry", f.Path)
		}
		switch line, twice := lines[key]; {
		case c.Name == "" && f.Path == "":
		case twice:
			r.errorf(n, path, "the %s on line %d", what, line)
		case f.Path != "":
			lines[key] = n.Line
			folders = append(folders, f)
		default:
			lines[key] = n.Line
			named = append(named, c)
		}
	})
	return named, folders
}

// cluster reads an entry: a cluster, or a folder of them. What cannot be read of it has
// neither a name nor a path.
func (r *reader) cluster(n *yaml.Node, path string) (Cluster, Folder) {
	var c Cluster
	var f Folder
	given := map[string]*yaml.Node{}
	note := func(key string, read func(n *yaml.Node, path string)) func(n *yaml.Node, path string) {
		return func(n *yaml.Node, path string) {
			given[key] = n
			read(n, path)
		}
	}
	r.mapping(n, path, fieldsOf{
		"name": note("name", func(n *yaml.Node, path string) { c.Name, _ = r.checked(n, path, CheckClusterName) }),
		"folder": note("folder", func(n *yaml.Node, path string) {
			file, ok := r.text(n, path)
			if ok && file == "" {
				r.errorf(n, path, "must be the path of a folder with kubeconfigs")
			}
			f.Path = expandHome(file)
		}),
		"kubeconfig": note("kubeconfig", r.path(&c.Kubeconfig)),
		"context":    note("context", func(n *yaml.Node, path string) { c.Context, _ = r.text(n, path) }),
		"namespaces": func(n *yaml.Node, path string) { c.Namespaces = r.texts(n, path, checkNamespace) },
	})
	if given["folder"] == nil {
		if given["name"] == nil && n.Kind == yaml.MappingNode {
			r.errorf(n, path, "needs a name, or the folder of kubeconfigs that it stands for")
		}
		return c, Folder{}
	}
	for _, key := range []string{"name", "kubeconfig", "context"} {
		if given[key] != nil {
			r.errorf(given[key], join(path, key), "each file of a folder has its own: leave it out beside folder")
		}
	}
	f.Namespaces = c.Namespaces
	return Cluster{}, f
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// CheckClusterName says what is wrong with the name of a cluster.
func CheckClusterName(name string) error {
	if !dnsLabel.MatchString(name) {
		return fmt.Errorf("bad name %q: lower-case letters, digits and -, at most 63 of them", name)
	}
	return nil
}

func checkNamespace(name string) error {
	switch {
	case dnsLabel.MatchString(name):
		return nil
	case strings.ContainsAny(name, "*?["):
		return fmt.Errorf("bad namespace %q: globs cannot be tried here: name each namespace", name)
	}
	return fmt.Errorf("bad namespace %q: lower-case letters, digits and -, at most 63 of them", name)
}

// expandHome replaces a leading ~/ by the home directory, as shells do.
func expandHome(file string) string {
	rest, ok := strings.CutPrefix(file, "~/")
	if !ok {
		return file
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return file
	}
	return filepath.Join(home, rest)
}
