package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// countCommand groups objects and counts them.
type countCommand struct {
	*selection
	output
	by   []string
	agg  []string
	sort string
}

// counted is what groups are counted by if nothing else is said.
const counted = "count()"

func newCountCommand() *cobra.Command {
	c := &countCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "count [KINDS] [--by PATHS]",
		Short: "Count objects, by the values at paths of them",
		Long: `Counts objects by the values that they have at one or more paths, the most frequent
first; without --by, by kind. An object with several values at a path, such as the images of a
pod, is counted for each. --agg adds up, or finds the least, the greatest or the mean, instead.`,
		Example: `  informerd count pods -A --by status.phase
  informerd count pods -A --by status.phase,spec.nodeName
  informerd count pods -A --by spec.containers[*].image --limit 10
  informerd count pods -A --by metadata.namespace --agg 'sum(spec.containers[*].resources.requests.cpu)'
  informerd count '*' -A`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"*"}
			}
			targets, err := parseTargets(args)
			if err = errors.Join(err, c.selection.settle(), c.output.settle()); err != nil {
				return err
			}
			return c.run(cmd, func(s *session) error { return c.count(s, targets) })
		},
	}
	c.placeFlags(cmd)
	c.selectFlags(cmd)
	c.limitFlag(cmd)
	c.output.flag(cmd, "table", "json", "yaml", "csv", "ndjson")
	cmd.Flags().StringSliceVar(&c.by, "by", nil, "`paths` to group by (default: apiVersion,kind)")
	cmd.Flags().StringArrayVar(&c.agg, "agg", nil, "what to compute of each group instead: count(path), sum(path), min(path), max(path), avg(path); may be repeated")
	cmd.Flags().StringVar(&c.sort, "sort-by", "", "`columns` to order by, descending with a - before (default: the greatest first)")
	_ = cmd.RegisterFlagCompletionFunc("by", c.complete((*session).paths))
	_ = cmd.RegisterFlagCompletionFunc("sort-by", c.complete((*session).paths))
	c.connection.flags(cmd)
	return cmd
}

// group is an item of a GroupList.
type groupItem struct {
	Group  map[string]any
	Values map[string]any
}

// groupList is what a question with groupBy is answered with.
type groupList struct {
	Metadata struct {
		RemainingItemCount int
		AggErrors          map[string]int
	}
	Items []groupItem
}

func (c *countCommand) count(s *session, targets []target) error {
	questions, err := s.questions(c.selection, targets)
	if err != nil {
		return err
	}
	if len(questions) > 1 {
		return c.scopes(questions)
	}
	v := questions[0].values(c.selection)
	c.put(v)
	if !c.table() {
		v.Set("output", c.name)
		if c.name == "json" {
			v.Set("pretty", "true")
		}
		return s.pass(client.Path("query"), v)
	}
	list, err := s.groups(v)
	if err != nil {
		return err
	}
	c.print(s, list)
	return nil
}

// scopes is why kinds in namespaces and others are not counted together.
func (c *countCommand) scopes(questions []question) error {
	return usagef("%s are in namespaces and %s are not: count them with -A, or one after the other",
		strings.Join(questions[0].resources, ","), strings.Join(questions[1].resources, ","))
}

// paths are those to group by.
func (c *countCommand) paths() []string {
	if len(c.by) > 0 {
		return c.by
	}
	return []string{"apiVersion", "kind"}
}

func (c *countCommand) columns() []string {
	if len(c.agg) > 0 {
		return c.agg
	}
	return []string{counted}
}

func (c *countCommand) put(v url.Values) {
	v.Set("groupBy", strings.Join(c.paths(), ","))
	v.Set("agg", strings.Join(c.columns(), ","))
	v.Set("sort", "-"+c.columns()[0])
	if c.sort != "" {
		v.Set("sort", sortPaths(c.sort))
	}
}

// groups asks for groups. Numbers stay as they are written.
func (s *session) groups(v url.Values) (*groupList, error) {
	resp, err := s.Get(s.ctx, client.Path("query"), v)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	decoder := json.NewDecoder(resp.Body)
	decoder.UseNumber()
	var list groupList
	if err := decoder.Decode(&list); err != nil {
		return nil, s.Broken(s.ctx, err)
	}
	for agg, n := range list.Metadata.AggErrors {
		s.warn(fmt.Sprintf("%s: %d values are neither numbers nor quantities, and not in it", agg, n))
	}
	return &list, nil
}

func (c *countCommand) print(s *session, list *groupList) {
	if len(list.Items) == 0 {
		s.note("Nothing found %s.", c.where())
		return
	}
	g := &grid{colour: s.colour}
	if !c.noHeaders {
		for _, p := range slices.Concat(c.paths(), c.columns()) {
			g.header = append(g.header, strings.TrimSuffix(strings.ToUpper(p), "()"))
		}
	}
	for _, item := range list.Items {
		var row []string
		for _, p := range c.paths() {
			row = append(row, valueText(item.Group[p]))
		}
		for _, agg := range c.columns() {
			row = append(row, valueText(item.Values[agg]))
		}
		g.row(row...)
	}
	g.print(s.out)
	if n := list.Metadata.RemainingItemCount; n > 0 {
		s.note("%d more groups are not shown: --limit %d", n, c.limit)
	}
}

// valueText is a value of JSON as a cell.
func valueText(v any) string {
	if v == nil {
		return "<none>"
	}
	return fmt.Sprint(v)
}
