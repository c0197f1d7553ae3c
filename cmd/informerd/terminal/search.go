package terminal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// searchCommand finds objects of all kinds by words.
type searchCommand struct {
	*selection
	output
	matches bool
}

func newSearchCommand() *cobra.Command {
	c := &searchCommand{selection: everywhere()}
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Find objects of all kinds by words",
		Long: `Finds objects of all kinds and namespaces whose names, labels, images or annotations have
the words, the best first. All words must be there; key:word looks in one place only: name:,
label:, image:, annotation:, text:, kind:, ns:. Exit code 1: nothing was found.`,
		Example: `  informerd search checkout
  informerd search cart kind:deploy
  informerd search image:nginx ns:team-* -o name
  informerd search label:team=storefront --matches --limit 5`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(c.selection.settle(), c.output.settle()); err != nil {
				return err
			}
			return c.run(cmd, func(s *session) error { return c.search(s, args) })
		},
	}
	c.placeFlags(cmd)
	c.selectFlags(cmd)
	c.limitFlag(cmd)
	c.output.flag(cmd, "table", "json", "name")
	cmd.Flags().BoolVar(&c.matches, "matches", false, "a column with the texts that have the words")
	c.connection.flags(cmd)
	return cmd
}

// searchAnswer is what a search is answered with.
type searchAnswer struct {
	Items []struct {
		ID, Resource, Kind, Namespace, Name string
		Matches                             []struct{ Field, Text string }
	}
	Total      int
	Unanswered []unanswered
}

// unanswered is a resource that an answer has nothing of.
type unanswered struct{ Resource, State, Reason string }

func (u unanswered) matters() bool { return u.State != "unwatched" }

// warnUnanswered names what cannot be read, and reports whether there is any. What the
// configuration leaves out is meant to be left out.
func (s *session) warnUnanswered(all []unanswered) bool {
	for _, u := range all {
		if u.matters() {
			s.warn(strings.TrimSuffix(fmt.Sprintf("nothing of %s is in this answer, it is %s: %s", u.Resource, u.State, u.Reason), ": "))
		}
	}
	return slices.ContainsFunc(all, unanswered.matters)
}

// found is the exit code where one is wanted: what cannot be read is not known to be well.
func found(wrong, unanswered bool) error {
	switch {
	case wrong:
		return silently(ExitNo)
	case unanswered:
		return &outcome{ExitNoAnswer, errors.New("nothing is wrong with what can be read, and that is not all")}
	}
	return nil
}

func (c *searchCommand) search(s *session, words []string) error {
	v, err := c.cluster(c.values(true))
	if err != nil {
		return err
	}
	v.Set("q", strings.Join(words, " "))
	if c.matches {
		v.Set("highlights", "true")
	}
	if c.name == "json" {
		v.Set("pretty", "true")
		return s.pass(client.Path("search"), v)
	}
	var a searchAnswer
	if err := s.JSON(s.ctx, client.Path("search"), v, &a); err != nil {
		return err
	}
	unknown := s.warnUnanswered(a.Unanswered)
	switch {
	case len(a.Items) == 0 && unknown:
		return &outcome{ExitNoAnswer, fmt.Errorf("nothing that can be read matches %q, and that is not all", strings.Join(words, " "))}
	case len(a.Items) == 0:
		return no("nothing matches %q %s", strings.Join(words, " "), c.where())
	}
	c.print(s, &a)
	if more := a.Total - len(a.Items); more > 0 {
		s.note("%d of %d are shown: --limit shows more, up to 1000", len(a.Items), a.Total)
	}
	return nil
}

func (c *searchCommand) print(s *session, a *searchAnswer) {
	g := &grid{colour: s.colour}
	if !c.noHeaders && c.name != "name" {
		g.header = []string{"KIND", "NAMESPACE", "NAME"}
		if c.matches {
			g.header = append(g.header, "MATCHES")
		}
	}
	for _, item := range a.Items {
		if c.name == "name" {
			g.row(item.ID)
			continue
		}
		row := []string{item.Resource, item.Namespace, item.Name}
		if c.matches {
			var texts []string
			for _, m := range item.Matches {
				texts = append(texts, m.Field+": "+m.Text)
			}
			row = append(row, strings.Join(texts, ", "))
		}
		g.row(row...)
	}
	g.print(s.out)
}
