package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// watchCommand shows changes as they happen.
type watchCommand struct {
	*selection
	output
	changesOnly bool
	timeout     time.Duration
}

func newWatchCommand() *cobra.Command {
	c := &watchCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "watch KINDS [NAME...] | KIND/NAME...",
		Short: "Show objects and then what becomes of them, one line a change",
		Long: `Shows the objects selected and then each change of them, in a line with the kind of
event: ADDED, MODIFIED and DELETED, which is also said of what comes into the selection and
leaves it. When the connection breaks it goes on where it was, nothing is lost. Ctrl-C ends it.

With -o json each line is an event of the API, with the whole object.`,
		Example: `  informerd watch pods -n shop
  informerd watch pods,events -n shop --changes-only
  informerd watch '*' -A -l app=web
  informerd watch pods -A --filter 'object.?status.phase.orValue("") == "Failed"' -o json
  informerd watch nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeTargets,
		RunE:              c.onTargets(&c.output, c.watch),
	}
	c.placeFlags(cmd)
	c.selectFlags(cmd)
	c.output.flag(cmd, "table", "json", "name", "custom-columns")
	cmd.Flags().BoolVar(&c.changesOnly, "changes-only", false, "leave out the objects that are there at the beginning")
	cmd.Flags().DurationVar(&c.timeout, "timeout", 0, "end after so long; 0: never")
	c.connection.flags(cmd)
	return cmd
}

var errTimeOver = errors.New("time is over")

func (c *watchCommand) watch(s *session, targets []target) error {
	questions, err := s.questions(c.selection, targets)
	if err != nil {
		return err
	}
	p := &changePrinter{watchCommand: c, session: s, now: time.Now}
	if c.name == "custom-columns" {
		if p.custom, err = parseColumns(c.columns); err != nil {
			return err
		}
	}
	if len(c.clusters) != 1 {
		known, err := s.clusters()
		if err != nil {
			return err
		}
		p.clusters = len(known) > 1
	}
	p.begin()
	ctx := s.ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, errTimeOver)
		defer cancel()
	}
	g, ctx := errgroup.WithContext(ctx)
	s.ctx = ctx
	for _, q := range questions {
		initial := true
		g.Go(func() error {
			return s.follow(p.values(q), func(e *change, raw []byte) error { return p.print(e, raw, &initial) })
		})
	}
	switch err := g.Wait(); {
	case errors.Is(err, errTimeOver), errors.Is(err, context.Canceled):
		return nil // that is how a watch ends
	default:
		return err
	}
}

// changePrinter prints the events of all streams.
type changePrinter struct {
	*watchCommand
	session *session
	custom  []customColumn
	// clusters is that names have their cluster before them: there are several.
	clusters bool
	now      func() time.Time

	mu      sync.Mutex // guards the following, and session.out
	columns []int      // widths so far: what comes is not known
}

func (p *changePrinter) values(q question) url.Values {
	v := q.values(p.selection)
	switch p.name {
	case "table":
		v.Set("fields", stateFields)
	case "name":
		v.Set("fields", "metadata.name")
	case "custom-columns":
		if fields := fieldsOf(p.custom); fields != "" {
			v.Set("fields", fields)
		}
	}
	return v
}

func (p *changePrinter) begin() {
	var header []string
	switch p.name {
	case "table":
		p.columns = []int{8, 8, 12, 40, 6, 0}
		header = []string{"TIME", "EVENT", "NAMESPACE", "NAME", "READY", "REASON"}
	case "custom-columns":
		header = []string{"EVENT"}
		p.columns = []int{8}
		for _, c := range p.custom {
			header = append(header, c.name)
			p.columns = append(p.columns, 16)
		}
	}
	if header != nil && !p.noHeaders {
		p.line(header, false)
	}
}

// print prints one event. The events of a batch leave together, when a bookmark ends it.
func (p *changePrinter) print(e *change, raw []byte, initial *bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Type {
	case "BOOKMARK":
		*initial = *initial && !e.InitialEventsEnd
		return p.session.out.Flush()
	case "RESYNC":
		p.session.warn("changes of " + e.Resource + " were missed: all objects of it follow again")
		return nil
	case "STATE":
		if text := e.stateText(); text != "" {
			p.session.warn(text)
		}
		return nil
	case "WARNING":
		p.session.warn("the filter has no value for some objects, which are left out: " + string(e.FilterErrors))
		return nil
	case "ADDED", "MODIFIED", "DELETED":
		if *initial && p.changesOnly {
			return nil
		}
		return p.object(e, raw)
	}
	return nil
}

func (p *changePrinter) object(e *change, raw []byte) error {
	if p.name == "json" {
		_, err := p.session.out.Write(append(slices.Clone(p.session.shown(raw)), '\n'))
		return err
	}
	var o stateObject
	if err := json.Unmarshal(e.Object, &o); err != nil {
		return err
	}
	title := o.typeName() + "/" + o.Metadata.Name
	if cluster, _, ok := strings.Cut(e.Resource, "/"); ok && p.clusters {
		title = cluster + "/" + title
	}
	switch p.name {
	case "name":
		p.line([]string{title}, false)
	case "custom-columns":
		cells, err := newCellReader(p.custom).cells(e.Object)
		if err != nil {
			return err
		}
		p.line(append([]string{e.Type}, cells...), true)
	default:
		state := o.state(p.now())
		reason := state.reason
		if reason == "" {
			reason = o.Status.Phase
		}
		p.line([]string{p.now().Format(time.TimeOnly), e.Type, o.Metadata.Namespace, title, state.ready, reason}, true)
	}
	return nil
}

// line prints cells under those before.
func (p *changePrinter) line(cells []string, event bool) {
	out, colour := p.session.out, p.session.colour && event
	for i, c := range cells {
		c = oneLine(c)
		shown := c
		if colour && i < 2 {
			shown = paint(c, styleOf("EVENT", c))
		}
		out.WriteString(shown)
		if i == len(cells)-1 {
			break
		}
		p.columns[i] = max(p.columns[i], width(c))
		out.Write(appendSpaces(out.AvailableBuffer(), p.columns[i]-width(c)+2))
	}
	out.WriteByte('\n')
}
