package terminal

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// selection are the flags that say which objects are meant.
type selection struct {
	*connection
	// wide is that a question which names no namespace is about all: it asks what there is,
	// not for what is known to be somewhere.
	wide bool

	namespaces    []string
	all           bool
	labels        string
	fields        string
	filter        string
	limit         int
	clusters      []string
	namespaceFrom string // where the namespace is from, if no flag says
}

// newSelection has the flags of a question that kubectl's rule for namespaces holds for.
func newSelection() *selection { return &selection{connection: &connection{}} }

// everywhere has those of a question about all namespaces, if it is not told otherwise.
func everywhere() *selection { return &selection{connection: &connection{}, wide: true} }

// placeFlags say where objects are.
func (s *selection) placeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	usage := "`namespace` to look in, globs allowed (team-*); may be repeated (default: that of the kubeconfig's context; all where there is none)"
	if s.wide {
		usage = "`namespace` to look in, globs allowed (team-*); may be repeated (default: all)"
	}
	f.StringSliceVarP(&s.namespaces, "namespace", "n", nil, usage)
	f.BoolVarP(&s.all, "all-namespaces", "A", false, "look in all namespaces")
	f.StringSliceVar(&s.clusters, "cluster", nil, "`name` of a cluster, where informerd holds several")
	_ = cmd.RegisterFlagCompletionFunc("namespace", s.complete((*session).namespacesKnown))
	_ = cmd.RegisterFlagCompletionFunc("cluster", s.complete((*session).clusterNames))
}

// selectFlags say which of the objects there.
func (s *selection) selectFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.labels, "selector", "l", "", "label `selector`: app=web,tier in (a,b),!legacy")
	f.StringVar(&s.fields, "field-selector", "", "the same of any `path`: status.phase!=Running,spec.nodeName in (a,b)")
	f.StringVar(&s.filter, "filter", "", "`expression` in CEL that is true for the objects wanted: 'object.spec.replicas > 3'")
	_ = cmd.RegisterFlagCompletionFunc("selector", s.complete((*session).labelKeys))
	_ = cmd.RegisterFlagCompletionFunc("field-selector", s.complete((*session).paths))
}

func (s *selection) limitFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&s.limit, "limit", 0, "show at most so `many`; 0: all")
}

// settle decides which namespaces are meant, where no flag says. Nobody is asked.
func (s *selection) settle() error {
	switch {
	case s.all && len(s.namespaces) > 0:
		return usagef("-A looks in all namespaces, -n in %s: give one of them", strings.Join(s.namespaces, ", "))
	case s.limit < 0:
		return usagef("--limit: %d is not a number from 0 on", s.limit)
	case s.all || s.wide && len(s.namespaces) == 0:
		s.all, s.namespaces = true, nil
		return nil
	case len(s.namespaces) > 0:
		return nil
	}
	namespace, from, ok, err := s.currentNamespace()
	if err != nil {
		return err
	}
	if !ok {
		s.all = true
		return nil
	}
	s.namespaces, s.namespaceFrom = []string{namespace}, from
	return nil
}

// single is the namespace, if one is meant and not several.
func (s *selection) single() (string, bool) {
	if len(s.namespaces) != 1 || strings.ContainsAny(s.namespaces[0], "*?[") {
		return "", false
	}
	return s.namespaces[0], true
}

// values are the parameters of the API that say the same.
func (s *selection) values(namespaced bool) url.Values {
	v := url.Values{}
	if namespaced {
		v["namespace"] = s.namespaces
	}
	s.put(v)
	return v
}

func (s *selection) put(v url.Values) {
	for name, value := range map[string]string{"labelSelector": s.labels, "fieldSelector": s.fields, "filter": s.filter} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if s.limit > 0 {
		v.Set("limit", strconv.Itoa(s.limit))
	}
	if len(s.clusters) > 0 {
		v["cluster"] = s.clusters
	}
}

// where says where was looked, for people.
func (s *selection) where() string {
	if s.all {
		return "in any namespace"
	}
	text := "in namespace " + strings.Join(s.namespaces, ", ")
	if s.namespaceFrom != "" {
		text += fmt.Sprintf(" (%s; -A looks in all)", s.namespaceFrom)
	}
	return text
}

// cluster is the parameter of questions about one cluster.
func (s *selection) cluster(v url.Values) (url.Values, error) {
	switch len(s.clusters) {
	case 0:
	case 1:
		v.Set("cluster", s.clusters[0])
	default:
		return nil, usagef("--cluster: this question is about one cluster, not %d", len(s.clusters))
	}
	return v, nil
}

// onTargets runs ask with the objects that the arguments of a command name.
func (s *selection) onTargets(form *output, ask func(*session, []target) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		targets, err := parseTargets(args)
		if err = errors.Join(err, s.settle(), form.settle(), checkNames(targets)); err != nil {
			return err
		}
		return s.run(cmd, func(session *session) error { return ask(session, targets) })
	}
}

// onObject runs ask with the one object that the arguments of a command name.
func (s *selection) onObject(form *output, ask func(*session, target) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t, err := parseObject(args)
		if err = errors.Join(err, s.settle(), form.settle()); err != nil {
			return err
		}
		return s.run(cmd, func(session *session) error { return ask(session, t) })
	}
}
