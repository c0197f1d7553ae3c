package terminal

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// explainCommand shows how a question is answered.
type explainCommand struct {
	*selection
	output
	sort string
}

func newExplainCommand() *cobra.Command {
	c := &explainCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "explain KINDS [NAME...]",
		Short: "Show how a question is answered: indexes, objects read, what would help",
		Long: `Runs a question, with the arguments and flags of get, and shows how it was answered: which
indexes were used, how many objects they left (CANDIDATES), of how many the JSON was read to
decide (SCANNED), and how many MATCHED. An index that would have helped is shown as the rule
for config.yaml that makes it. The last line is the same question as a URL.`,
		Example: `  informerd explain pods -A --field-selector spec.nodeName=node-1
  informerd explain pods -A --filter 'object.spec.priority > 100' --sort-by=-spec.priority
  informerd explain '*' -A -l app=web`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeTargets,
		RunE:              c.onTargets(&c.output, c.explain),
	}
	c.placeFlags(cmd)
	c.selectFlags(cmd)
	c.limitFlag(cmd)
	c.output.flag(cmd, "table", "json")
	cmd.Flags().StringVar(&c.sort, "sort-by", "", "`path` to order by, descending with a - before it; several with commas")
	_ = cmd.RegisterFlagCompletionFunc("sort-by", c.complete((*session).paths))
	c.connection.flags(cmd)
	return cmd
}

type explanation struct {
	Items []struct {
		Cluster, Resource            string
		Objects                      int
		Indexes                      []string
		Candidates, Scanned, Matched int
		SortedBy                     string
		Advice                       []struct{ Path, Config string }
	}
}

func (c *explainCommand) explain(s *session, targets []target) error {
	questions, err := s.questions(c.selection, targets)
	if err != nil {
		return err
	}
	g := &grid{colour: s.colour}
	if !c.noHeaders {
		g.header = []string{"KIND", "OBJECTS", "INDEXES", "CANDIDATES", "SCANNED", "MATCHED", "SORTED BY"}
	}
	var advice, urls []string
	for _, q := range questions {
		v := q.values(c.selection)
		if c.sort != "" {
			v.Set("sort", sortPaths(c.sort))
		}
		urls = append(urls, s.URL(client.Path("query"), v))
		v.Set("explain", "true")
		if c.name == "json" {
			v.Set("pretty", "true")
			if err := s.pass(client.Path("query"), v); err != nil {
				return err
			}
			continue
		}
		var e explanation
		if err := s.JSON(s.ctx, client.Path("query"), v, &e); err != nil {
			return err
		}
		for _, i := range e.Items {
			g.row(i.Resource, strconv.Itoa(i.Objects), orNone(strings.Join(i.Indexes, ",")), strconv.Itoa(i.Candidates),
				strconv.Itoa(i.Scanned), strconv.Itoa(i.Matched), orNone(i.SortedBy))
			for _, a := range i.Advice {
				advice = append(advice, a.Config)
			}
		}
	}
	if c.name == "json" {
		return nil
	}
	g.print(s.out)
	if len(advice) > 0 {
		s.out.WriteString("\nThis would help, under resources in config.yaml:\n\n")
		for _, a := range advice {
			for line := range strings.Lines(a) {
				s.out.WriteString("  " + oneLine(strings.TrimSuffix(line, "\n")) + "\n")
			}
		}
	}
	s.out.WriteString("\n" + strings.Join(urls, "\n") + "\n")
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
