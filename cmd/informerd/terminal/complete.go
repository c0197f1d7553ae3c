package terminal

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// completeTime is how long a shell waits for proposals at most.
const completeTime = 2 * time.Second

// proposer proposes what begins with prefix, after args.
type proposer func(s *session, sel *selection, args []string, prefix string) []string

// complete asks informerd for proposals. Where it does not answer there are none: a line
// that is being typed is no place for errors.
func (s *selection) complete(propose proposer) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(contextOf(cmd)), completeTime)
		defer cancel()
		opened, err := s.open(cmd)
		if err != nil || s.settle() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer opened.Close()
		opened.ctx = ctx
		opened.Client.Quiet()
		// Of a list the last part is completed.
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		found := propose(opened, s, args, prefix[len(before):])
		// A shell shows them, and reads one a line.
		found = slices.DeleteFunc(found, func(text string) bool { return oneLine(text) != text })
		for i := range found {
			found[i] = before + found[i]
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// completeTargets completes kinds, and then names of objects: KIND NAME, KIND/NAME.
func (s *selection) completeTargets(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	kind, name, slash := strings.Cut(prefix, "/")
	switch {
	case slash:
		found, directive := s.complete((*session).names)(cmd, []string{kind}, name)
		for i := range found {
			found[i] = kind + "/" + found[i]
		}
		return found, directive
	case len(args) == 0:
		return s.complete((*session).kindNames)(cmd, args, prefix)
	}
	return s.complete((*session).names)(cmd, args, prefix)
}

// completeKinds completes the only argument.
func (s *selection) completeKinds(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.complete((*session).kindNames)(cmd, args, prefix)
}

// proposals asks /v1/complete.
func (s *session) proposals(sel *selection, prefix string, values ...string) []string {
	v := url.Values{"limit": {"200"}}
	if prefix != "" {
		v.Set("prefix", prefix)
	}
	for i := 0; i+1 < len(values); i += 2 {
		v.Set(values[i], values[i+1])
	}
	if len(sel.clusters) == 1 {
		v.Set("cluster", sel.clusters[0])
	}
	var found struct{ Items []struct{ Value string } }
	if err := s.JSON(s.ctx, client.Path("complete"), v, &found); err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil
	}
	var texts []string
	for _, item := range found.Items {
		texts = append(texts, item.Value)
	}
	return texts
}

func (s *session) kindNames(sel *selection, _ []string, prefix string) []string {
	return s.proposals(sel, prefix, "for", "resources")
}

// firstKind is the kind that paths and names are completed of.
func firstKind(args []string) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	kind, _, _ := strings.Cut(args[0], "/")
	kind, _, _ = strings.Cut(kind, ",")
	return kind, kind != "" && !isGlob(kind)
}

func (s *session) paths(sel *selection, args []string, prefix string) []string {
	kind, ok := firstKind(args)
	if !ok {
		return nil
	}
	return s.proposals(sel, prefix, "for", "paths", "resource", kind)
}

func (s *session) labelKeys(sel *selection, args []string, prefix string) []string {
	kind, ok := firstKind(args)
	if !ok {
		return nil
	}
	if key, value, ok := strings.Cut(prefix, "="); ok {
		values := s.proposals(sel, value, "for", "values", "resource", kind, "path", "metadata.labels['"+key+"']")
		for i := range values {
			values[i] = key + "=" + values[i]
		}
		return values
	}
	return s.proposals(sel, prefix, "for", "values", "resource", kind, "path", "metadata.labels")
}

func (s *session) namespacesKnown(sel *selection, _ []string, prefix string) []string {
	return s.proposals(sel, prefix, "for", "values", "resource", "namespaces", "path", "metadata.name")
}

func (s *session) clusterNames(_ *selection, _ []string, prefix string) []string {
	names, _ := s.clusters()
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// names are those of objects of a kind, in the namespaces that are meant.
func (s *session) names(sel *selection, args []string, prefix string) []string {
	kind, ok := firstKind(args)
	if !ok {
		return nil
	}
	questions, err := s.questions(sel, []target{{kinds: []string{kind}}})
	if err != nil {
		return nil
	}
	v := questions[0].values(sel)
	v.Set("fields", "metadata.name")
	v.Set("limit", "200")
	if prefix != "" {
		v.Set("filter", "object.metadata.name.startsWith("+quoteCEL(prefix)+")")
	}
	var found struct{ Items []partial }
	if err := s.JSON(s.ctx, client.Path("query"), v, &found); err != nil {
		return nil
	}
	var names []string
	for _, item := range found.Items {
		if !slices.Contains(args[1:], item.Metadata.Name) {
			names = append(names, item.Metadata.Name)
		}
	}
	return names
}
