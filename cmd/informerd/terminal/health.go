package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// healthCommand shows what is wrong.
type healthCommand struct {
	*selection
	output
	status   string
	all      bool
	exitCode bool
}

func newHealthCommand() *cobra.Command {
	c := &healthCommand{selection: everywhere()}
	cmd := &cobra.Command{
		Use:   "health [KINDS | KIND/NAME]",
		Short: "Show what is wrong, of all kinds, the worst first, and why",
		Long: `Shows what is bad or on its way, of all kinds and namespaces, the worst first, with the
reason. What is wrong with an object because of another, as a Deployment is because of its pods,
is told once, with the object that shows why under CAUSE; --all tells it of each. Of one object
it shows that one, in any state, and what it owns.`,
		Example: `  informerd health
  informerd health -n shop
  informerd health deploy/recommendations -n shop
  informerd health pods,nodes --status bad --all
  informerd health -n 'team-*' --status bad --exit-code`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: c.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			// An object is somewhere: kubectl's rule says where. A question is about all.
			c.wide = !namesObject(args)
			if err := errors.Join(c.selection.settle(), c.output.settle()); err != nil {
				return err
			}
			if c.wide {
				return c.run(cmd, func(s *session) error { return c.list(s, args) })
			}
			t, err := parseObject(args)
			if err != nil {
				return err
			}
			return c.run(cmd, func(s *session) error { return c.object(s, t) })
		},
	}
	c.placeFlags(cmd)
	c.limitFlag(cmd)
	c.output.flag(cmd, "table", "json", "name")
	cmd.Flags().StringVarP(&c.labels, "selector", "l", "", "label `selector`: app=web,tier in (a,b),!legacy")
	cmd.Flags().StringVar(&c.status, "status", "", "which to list: `bad,progressing,unknown,good` (default: bad,progressing)")
	cmd.Flags().BoolVar(&c.all, "all", false, "list also what is wrong because of something that is listed")
	cmd.Flags().BoolVar(&c.exitCode, "exit-code", false, "exit with 1 if anything that is asked about is bad, with 3 if nothing is and not all can be read")
	c.connection.flags(cmd)
	return cmd
}

// namesObject tells KIND/NAME and KIND NAME from KINDS.
func namesObject(args []string) bool {
	return len(args) == 2 || len(args) == 1 && strings.Contains(args[0], "/")
}

// verdict is the health of one object.
type verdict struct {
	ID, Resource, Kind, Namespace, Name string

	Status, Reason, Message, Since string
	Affected                       int
	Cause                          *struct{ ID string }
}

type healthCounts struct{ Good, Progressing, Bad, Unknown int }

type healthList struct {
	Metadata struct {
		Truncated          bool
		RemainingItemCount int
	}
	Summary    healthCounts
	Items      []verdict
	Unanswered []unanswered
}

func (c *healthCommand) list(s *session, kinds []string) error {
	v, err := c.cluster(c.values(true))
	if err != nil {
		return err
	}
	if len(kinds) > 0 {
		v.Set("resources", strings.Join(splitKinds(kinds[0]), ","))
	}
	if c.status != "" {
		v.Set("status", c.status)
	}
	if c.all {
		v.Set("all", "true")
	}
	var raw json.RawMessage
	var list healthList
	if err := s.JSON(s.ctx, client.Path("health"), v, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	unknown := s.warnUnanswered(list.Unanswered)
	if err := c.show(s, raw, list.Items); err != nil {
		return err
	}
	if c.table() {
		if list.Metadata.Truncated {
			s.note("%d more are not shown: --limit shows more, up to 5000", list.Metadata.RemainingItemCount)
		}
		s.note("%d bad, %d progressing, %d unknown, %d good", list.Summary.Bad, list.Summary.Progressing, list.Summary.Unknown, list.Summary.Good)
	}
	return c.exit(list.Summary.Bad > 0, unknown)
}

func (c *healthCommand) exit(bad, unanswered bool) error {
	if !c.exitCode {
		return nil
	}
	return found(bad, unanswered)
}

func (c *healthCommand) show(s *session, raw []byte, items []verdict) error {
	switch {
	case c.name == "json":
		return s.writeJSON(raw)
	case len(items) == 0:
		return nil
	}
	g := &grid{colour: s.colour}
	if !c.noHeaders && c.table() {
		g.header = []string{"HEALTH", "NAMESPACE", "NAME", "SINCE", "REASON", "CAUSE", "MESSAGE"}
	}
	now := time.Now()
	for _, i := range items {
		if c.name == "name" {
			g.row(i.ID)
		} else {
			g.row(i.Status, i.Namespace, i.Kind+"/"+i.Name, sinceText(i.Since, now), i.Reason, i.cause(), i.Message)
		}
	}
	g.print(s.out)
	return nil
}

// cause is the object that shows why; of several it is one, and they are counted.
func (v *verdict) cause() string {
	switch {
	case v.Cause == nil:
		return ""
	case v.Affected > 1:
		return fmt.Sprintf("%s (1 of %d)", v.Cause.ID, v.Affected)
	}
	return v.Cause.ID
}

// sinceText is how long something has been so; "" where nobody can say.
func sinceText(since string, now time.Time) string {
	if since == "" {
		return ""
	}
	return age(since, now)
}

// objectHealth is the health of one object and of what it owns.
type objectHealth struct {
	Item       verdict
	Children   []verdict
	Unanswered []unanswered
}

func (c *healthCommand) object(s *session, t target) error {
	if c.labels+c.status != "" || c.all {
		return usagef("-l, --status and --all choose among many: here one object is named")
	}
	steps, err := s.locate(c.selection, t)
	if err != nil {
		return err
	}
	v, err := s.graphValues(c.selection)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	var answer objectHealth
	if err := s.JSON(s.ctx, client.Path(append([]string{"health"}, steps...)...), v, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	unknown := s.warnUnanswered(answer.Unanswered)
	if err := c.show(s, raw, append([]verdict{answer.Item}, answer.Children...)); err != nil {
		return err
	}
	return c.exit(answer.Item.Status == "bad", unknown)
}
