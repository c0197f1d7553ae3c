package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/filter"
	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/kafkasink"
	"github.com/informerd/informerd/server/handlers/natssink"
)

// Handler is one handler as the file declares it. What is made of it while informerd runs,
// its Sink and As, is nil in it.
type Handler struct {
	handlers.Handler
	// Match are the Resources, parsed.
	Match []Pattern
	// Filter is the expression of Query.Filter or Change, as it was written.
	Filter string
	// Identity is whose rights it acts with; nil: informerd's.
	Identity *Identity
	// At most one of these is given; none: it is claimed.
	Webhook *Webhook
	NATS    *natssink.Config
	Kafka   *kafkasink.Config
	// Line is where it starts in its file.
	Line int
}

// Identity is somebody whose rights a handler acts with.
type Identity struct {
	User   string
	Groups []string
}

const (
	defaultConcurrency = 8
	defaultMaxLease    = 5 * time.Minute
)

func defaultRetry() handlers.Retry {
	return handlers.Retry{Base: time.Second, Max: 5 * time.Minute, Attempts: 15}
}

// handlers reads the list of handlers.
func (r *reader) handlers(n *yaml.Node, path string) (all []Handler) {
	r.later = append(r.later, func(c *Config) {
		if err := c.CheckHandlers(); err != nil {
			r.errorf(n, path, "%v", err)
		}
	})
	lines := map[string]int{}
	r.list(n, path, func(n *yaml.Node, path string) {
		h := r.handler(n, path)
		switch line, twice := lines[h.Name]; {
		case h.Name == "":
		case twice:
			r.errorf(n, path, "the name %q is taken by the handler on line %d", h.Name, line)
		default:
			lines[h.Name] = n.Line
			all = append(all, h)
		}
	})
	return all
}

// handlerReader reads one handler: what of it was given, for what makes sense only together.
type handlerReader struct {
	*reader
	Handler
	given map[string]*yaml.Node
}

func (r *reader) handler(n *yaml.Node, path string) Handler {
	h := &handlerReader{reader: r, given: map[string]*yaml.Node{}, Handler: Handler{Line: n.Line, Handler: handlers.Handler{
		On: handlers.Transitions, From: handlers.FromNow, Retry: defaultRetry(),
	}}}
	known := fieldsOf{
		"name":      func(n *yaml.Node, path string) { h.Name, _ = h.checked(n, path, CheckClusterName) },
		"clusters":  h.clusters,
		"resources": h.resources,
		"namespaces": func(n *yaml.Node, path string) {
			h.Query.Namespaces = h.texts(n, path, checkNamespaceGlob)
		},
		"labelSelector": h.labels,
		"fieldSelector": h.fields,
		"filter":        h.filter,
		"on":            h.on,
		"from": func(n *yaml.Node, path string) {
			h.From = handlers.Start(h.choice(n, path, string(h.From), string(handlers.FromNow), string(handlers.FromBeginning)))
		},
		"fields":      func(n *yaml.Node, path string) { h.Fields = h.texts(n, path, checkPath) },
		"retry":       h.retry,
		"as":          h.as,
		"webhook":     func(n *yaml.Node, path string) { h.Webhook = h.webhook(n, path) },
		"nats":        func(n *yaml.Node, path string) { h.NATS = h.nats(n, path) },
		"kafka":       func(n *yaml.Node, path string) { h.Kafka = h.kafka(n, path) },
		"concurrency": func(n *yaml.Node, path string) { h.Concurrency = h.integer(n, path, 1, 256, 0) },
		"rate":        func(n *yaml.Node, path string) { h.Rate = h.number(n, path, 0.001, 100000) },
		"maxLease": func(n *yaml.Node, path string) {
			h.MaxLease = h.duration(n, path, false, time.Second, 24*time.Hour, defaultMaxLease)
		},
	}
	r.mapping(n, path, noting(h.given, known))
	if n.Kind == yaml.MappingNode {
		h.whole(n, path)
	}
	h.digests()
	return h.Handler
}

// noting keeps the node of each key that is given.
func noting(given map[string]*yaml.Node, known fieldsOf) fieldsOf {
	for key, read := range known {
		known[key] = func(n *yaml.Node, path string) {
			given[key] = n
			read(n, path)
		}
	}
	return known
}

// sinks are the keys that say where a handler delivers to.
var sinks = []string{"webhook", "nats", "kafka"}

// whole checks what shows only when all of a handler is known, and fills in what depends on
// whether it has a sink.
func (h *handlerReader) whole(n *yaml.Node, path string) {
	for _, key := range []struct{ name, example string }{
		{"name", "name: shop, by which it is asked for and its state is saved"},
		{"resources", "resources: [pods], whose changes it delivers"},
		{"as", "as: informerd, to see all that informerd holds, or as: {user: jane, groups: [ops]}, to see what they may"},
	} {
		if h.given[key.name] == nil {
			h.errorf(n, path, "needs %s: write %s", key.name, key.example)
		}
	}
	var has []string
	for _, key := range sinks {
		if h.given[key] != nil {
			has = append(has, key)
		}
	}
	if len(has) > 1 {
		h.errorf(h.given[has[1]], join(path, has[1]), "a handler has one sink, and this one has %s: write a handler for each", has[0])
		return
	}
	if len(has) == 0 {
		h.only(path, "is for a handler with a sink, and this one has none of webhook, nats and kafka: what it has is claimed", "concurrency", "rate")
		if h.given["maxLease"] == nil {
			h.MaxLease = defaultMaxLease
		}
		return
	}
	h.only(path, "is for a handler without a sink, whose keys are claimed, and this one has "+has[0], "maxLease")
	h.SinkKind = has[0]
	if h.given["concurrency"] == nil {
		h.Concurrency = defaultConcurrency
	}
}

// only refuses keys that mean nothing here.
func (h *handlerReader) only(path, why string, keys ...string) {
	for _, key := range keys {
		if n := h.given[key]; n != nil {
			h.errorf(n, join(path, key), "%s", why)
		}
	}
}

// clusters reads names of clusters, which may be declared further down.
func (h *handlerReader) clusters(n *yaml.Node, path string) {
	h.list(n, path, func(n *yaml.Node, path string) {
		name, ok := h.text(n, path)
		if !ok {
			return
		}
		if slices.Contains(h.Clusters, name) {
			h.errorf(n, path, "%q is given twice", name)
			return
		}
		h.Clusters = append(h.Clusters, name)
		h.later = append(h.later, func(c *Config) {
			if len(c.Folders) > 0 {
				return // of what is in them nothing is known before it is there
			}
			names := make([]string, len(c.Clusters))
			for i, cluster := range c.Clusters {
				names[i] = cluster.Name
			}
			if !slices.Contains(names, name) {
				h.errorf(n, path, "there is no cluster %q: %s", name, didYouMean(name, names))
			}
		})
	})
}

// resources reads patterns as the rules have them, but for versions: a copy is of one.
func (h *handlerReader) resources(n *yaml.Node, path string) {
	h.list(n, path, func(n *yaml.Node, path string) {
		text, ok := h.text(n, path)
		if !ok {
			return
		}
		p, err := ParsePattern(text)
		switch {
		case err != nil:
			h.errorf(n, path, "%v", err)
		case p.Version() != "":
			h.errorf(n, path, "%q names a version: a handler takes the one that is watched, so write %s", text, strings.TrimSuffix(p.Resource()+"."+p.Group(), "."))
		case slices.Contains(h.Resources, text):
			h.errorf(n, path, "%q is given twice", text)
		default:
			h.Resources, h.Match = append(h.Resources, text), append(h.Match, p)
		}
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		h.errorf(n, path, `is empty: name the resources whose changes are delivered, such as [pods] or ["*.apps"]`)
	}
}

func (h *handlerReader) labels(n *yaml.Node, path string) {
	text, ok := h.checked(n, path, checkLabelSelector)
	if ok && text != "" {
		h.Query.Labels, _ = labels.Parse(text)
	}
}

func (h *handlerReader) fields(n *yaml.Node, path string) {
	text, _ := h.text(n, path)
	selector, err := cache.ParseFieldSelector(text)
	if err != nil {
		h.errorf(n, path, "bad field selector %q: %s: write one such as spec.nodeName=n1,status.phase!=Failed", text, told(err))
		return
	}
	h.Query.Fields = selector
}

// filter compiles an expression over object, or over object and old.
func (h *handlerReader) filter(n *yaml.Node, path string) {
	text, ok := h.text(n, path)
	if !ok {
		return
	}
	var compiled cache.Filter
	var err error
	if filter.UsesOld(text) {
		h.Change, err = filter.CompileChange(text, time.Now())
	} else {
		compiled, err = filter.Compile(text, time.Now())
	}
	switch {
	case err != nil:
		h.errorf(n, path, "%s", told(err))
	case compiled != nil && compiled.Clock():
		h.errorf(n, path, "depends on the time: what a handler selects may change only when an object does, so leave out now and age()")
	default:
		h.Filter, h.Query.Filter = text, compiled
	}
}

// told is what an error says of a parameter, without its name.
func told(err error) string {
	if invalid, ok := errors.AsType[*cache.InvalidError](err); ok {
		return invalid.Message
	}
	return err.Error()
}

func (h *handlerReader) on(n *yaml.Node, path string) {
	words := make([]string, len(handlers.Transitions))
	for i, t := range handlers.Transitions {
		words[i] = string(t)
	}
	given := h.texts(n, path, func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return fmt.Errorf("bad value %q: %s", s, didYouMean(s, words))
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		h.errorf(n, path, "is empty and nothing would be delivered: leave it out for all of %s", strings.Join(words, ", "))
	}
	h.On = nil
	for _, t := range handlers.Transitions { // in their order, whichever was written
		if slices.Contains(given, string(t)) {
			h.On = append(h.On, t)
		}
	}
}

func (h *handlerReader) retry(n *yaml.Node, path string) {
	said := len(h.errs)
	h.mapping(n, path, fieldsOf{
		"base": func(n *yaml.Node, path string) {
			h.Retry.Base = h.duration(n, path, false, 10*time.Millisecond, time.Hour, h.Retry.Base)
		},
		"max": func(n *yaml.Node, path string) {
			h.Retry.Max = h.duration(n, path, false, 10*time.Millisecond, 24*time.Hour, h.Retry.Max)
		},
		"attempts": func(n *yaml.Node, path string) { h.Retry.Attempts = h.integer(n, path, 1, 1000, h.Retry.Attempts) },
	})
	if h.Retry.Max < h.Retry.Base && len(h.errs) == said {
		h.errorf(n, path, "max is %s and base %s: the first wait is base, the longest max", short(h.Retry.Max), short(h.Retry.Base))
	}
}

// as reads whose rights a handler acts with: there is no default, since who reads the file
// must see it.
func (h *handlerReader) as(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		h.choice(n, path, "", "informerd")
		return
	}
	h.Identity = &Identity{}
	h.mapping(n, path, fieldsOf{
		"user":   func(n *yaml.Node, path string) { h.Identity.User, _ = h.checked(n, path, notEmpty) },
		"groups": func(n *yaml.Node, path string) { h.Identity.Groups = h.texts(n, path, notEmpty) },
	})
	if !slices.ContainsFunc(n.Content, func(key *yaml.Node) bool { return key.Value == "user" }) {
		h.errorf(n, path, "needs user: write {user: jane, groups: [ops]}, or informerd instead of it")
	}
	h.later = append(h.later, func(c *Config) {
		if c.Authentication == nil {
			h.errorf(n, path, "what a user may see is known only with authentication: configure it, or write as: informerd")
		}
	})
}

// number reads a number that need not be whole.
func (r *reader) number(n *yaml.Node, path string, least, most float64) float64 {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		r.errorf(n, path, "is %s, needs a number from %v to %v", describe(n), least, most)
		return 0
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || !(f >= least && f <= most) {
		r.errorf(n, path, "%s is out of range: from %v to %v", n.Value, least, most)
		return 0
	}
	return f
}

// CheckHandlers says why handlers cannot be run with the rest of c.
func (c *Config) CheckHandlers() error {
	if len(c.Handlers) > 0 && !c.Snapshot.Kept() {
		return errors.New("handlers need snapshot.path or snapshot.postgres: what was delivered is saved with the copy, and without it a restart would deliver everything again or lose what changed")
	}
	return nil
}
