package terminal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// waitCommand waits until something is so.
type waitCommand struct {
	*selection
	condition string
	timeout   time.Duration
	quiet     bool
}

func newWaitCommand() *cobra.Command {
	c := &waitCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "wait KINDS [NAME...] | KIND/NAME... --for CONDITION",
		Short: "Wait until objects are as they should be, or gone",
		Long: `Waits until a condition holds for all objects that are named or selected, of one kind or
of several, and ends at the event that makes it so. The condition is

  EXPRESSION              in CEL: object.status.phase == "Running"
  condition=TYPE[=VALUE]  the condition in the object's status has the value, True if none is
                          given, and is about the latest generation
  create                  there are such objects
  delete                  there are none

What is named and not there yet is waited for; of what a selector selects there must be one at
least. Exit code 1: it was not so in time; what was still missing is said.`,
		Example: `  informerd wait pods/web-1 -n shop --for 'object.status.phase == "Running"' --timeout 30s
  informerd wait deploy -n shop -l app=web --for condition=Available
  informerd wait deploy/web sts/db -n shop --for 'object.?status.readyReplicas.orValue(0) == object.spec.replicas'
  informerd wait jobs -A -l run=nightly --for condition=Complete --timeout 10m
  informerd wait pod/web-1 -n shop --for delete`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := parseTargets(args)
			if err = errors.Join(err, c.selection.settle(), checkNames(targets)); err != nil {
				return err
			}
			goal, err := parseGoal(c.condition)
			if err != nil {
				return err
			}
			return c.run(cmd, func(s *session) error { return c.wait(s, goal, targets) })
		},
	}
	c.placeFlags(cmd)
	c.selectFlags(cmd)
	cmd.Flags().StringVar(&c.condition, "for", "", "what to wait for: `CONDITION` as above")
	cmd.Flags().DurationVar(&c.timeout, "timeout", 30*time.Second, "how long to wait; 0: look once; below 0: for ever")
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "say nothing when it is so")
	c.connection.flags(cmd)
	return cmd
}

// goal is what is waited for.
type goal struct {
	text   string // for people
	filter string // true for an object that is so; "" where there being any decides
	gone   bool
}

func parseGoal(text string) (goal, error) {
	kind, rest, assigned := strings.Cut(text, "=")
	switch {
	case text == "":
		return goal{}, usagef(`--for is needed: --for 'object.status.phase == "Running"', condition=Ready, create or delete`)
	case text == "delete":
		return goal{text: "deleted", gone: true}, nil
	case text == "create":
		return goal{text: "created"}, nil
	case assigned && kind == "condition":
		return conditionGoal(rest)
	case assigned && kind == "jsonpath":
		return goal{}, usagef(`--for: write jsonpath='{.status.phase}'=Running as the expression 'object.status.phase == "Running"'`)
	}
	return goal{text: "condition met", filter: text}, nil
}

// conditionGoal is kubectl's condition=Ready: a condition of an older generation than the
// object says nothing.
func conditionGoal(text string) (goal, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		value = "True"
	}
	if name == "" || value == "" {
		return goal{}, usagef("--for: write the condition as condition=Ready or condition=Ready=False")
	}
	return goal{text: "condition met", filter: fmt.Sprintf(`object.?status.conditions.orValue([]).exists(c, c.type == %s && c.status == %s && `+
		`c.?observedGeneration.orValue(object.?status.observedGeneration.orValue(object.metadata.?generation.orValue(0))) >= object.metadata.?generation.orValue(0))`,
		quoteCEL(name), quoteCEL(value))}, nil
}

// waited is what is known of one question: the versions of all objects that it is about,
// and of those for which the condition holds.
type waited struct {
	question
	goal
	all, met objects
}

// objects are those of one stream.
type objects struct {
	whole    bool // the stream has told all there were
	versions map[string]version
	// keys are those of versions in order, where they are known: those of streams change.
	keys []string
	// unanswered are the resources that cannot be read: what there is of them is not known.
	unanswered map[string]bool
}

func newObjects() objects {
	return objects{versions: map[string]version{}, unanswered: map[string]bool{}}
}

// known reports whether nothing is missing that the stream is about.
func (o *objects) known() bool { return o.whole && len(o.unanswered) == 0 }

// ordered are the keys of versions in order.
func (o *objects) ordered() []string {
	if o.keys != nil {
		return o.keys
	}
	return slices.Sorted(maps.Keys(o.versions))
}

type version struct{ title, name, uid, version string }

// apply enters an event.
func (o *objects) apply(e *change, object *partial) {
	switch e.Type {
	case client.Opened:
		o.whole = false
		clear(o.unanswered) // those that still are will be told of
		if !e.Resumed {
			clear(o.versions)
		}
	case "BOOKMARK":
		o.whole = true
	case "STATE":
		if delete(o.unanswered, e.Resource); e.Answered != nil && !*e.Answered {
			o.unanswered[e.Resource] = true
		}
	case "RESYNC":
		o.whole = false
		maps.DeleteFunc(o.versions, func(key string, _ version) bool { return strings.HasPrefix(key, e.Resource+" ") })
	case "ADDED", "MODIFIED", "DELETED":
		key := e.Resource + " " + object.Metadata.Namespace + "/" + object.Metadata.Name
		if e.Type == "DELETED" {
			delete(o.versions, key)
			return
		}
		o.versions[key] = version{object.typeName() + "/" + object.Metadata.Name, object.Metadata.Name, object.Metadata.UID, object.Metadata.ResourceVersion}
	}
}

// missing names what is not yet so, in no order; none is all.
func (w *waited) missing(yield func(string) bool) {
	if w.gone {
		for _, v := range w.all.versions {
			if !yield(v.title + " is there") {
				return
			}
		}
		return
	}
	for key, v := range w.all.versions {
		// Two streams tell the same change one after the other: what holds counts only
		// for the version that it was found to hold for.
		if w.filter != "" && w.met.versions[key] != v && !yield(v.title) {
			return
		}
	}
	if len(w.names) > 0 {
		w.missingNames(yield)
	} else if len(w.all.versions) == 0 {
		yield("no " + strings.Join(w.resources, ",") + " selected")
	}
}

func (w *waited) missingNames(yield func(string) bool) {
	there := map[string]bool{}
	for _, v := range w.all.versions {
		there[v.name] = true
	}
	for _, name := range w.names {
		if !there[name] && !yield(w.title(name)+" is not there") {
			return
		}
	}
}

// so reports whether nothing is missing. It is asked with each event, of thousands of
// objects, and mostly finds at once what is.
func (w *waited) so() bool {
	for range w.missing {
		return false
	}
	return true
}

// lacking is all that is missing.
func (w *waited) lacking() []string { return slices.Sorted(w.missing) }

func (w *waited) known() bool { return w.all.known() && (w.filter == "" || w.met.known()) }

// answered reports whether the streams have told all that they can.
func (w *waited) answered() bool { return w.all.whole && (w.filter == "" || w.met.whole) }

// told is an event of one of the streams.
type told struct {
	into   *objects
	change *change
	object partial
}

func (c *waitCommand) wait(s *session, g goal, targets []target) error {
	questions, err := s.questions(c.selection, targets)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	timeout := c.timeout
	if timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeOver)
		defer cancel()
	}
	w := &waiter{waitCommand: c, session: s, events: make(chan told), errs: make(chan error)}
	var stop func()
	s.ctx, stop = context.WithCancel(ctx)
	defer w.end(stop)
	for _, q := range questions {
		w.all = append(w.all, &waited{question: q, goal: g, all: newObjects(), met: newObjects()})
	}
	if w.look() {
		w.say()
		return nil
	}
	w.followAll()
	return w.run(ctx)
}

// both is an expression that is true where two are.
func both(a, b string) string {
	if a == "" {
		return b
	}
	return "(" + a + ") && (" + b + ")"
}

// waiter runs the streams of one command.
type waiter struct {
	*waitCommand
	session *session
	all     []*waited
	events  chan told
	errs    chan error
	streams int
	failed  string // for how many objects the filter has no value
}

// followAll streams all that is to be known.
func (w *waiter) followAll() {
	for _, one := range w.all {
		v := one.values(w.selection)
		v.Set("fields", "metadata.name,metadata.namespace,metadata.uid,metadata.resourceVersion")
		w.follow(v, &one.all)
		if one.filter != "" {
			met := maps.Clone(v)
			met.Set("filter", both(w.filter, one.filter))
			w.follow(met, &one.met)
		}
	}
}

// follow streams what v selects into o.
func (w *waiter) follow(v url.Values, o *objects) {
	w.streams++
	ctx := w.session.ctx
	go func() {
		w.errs <- w.session.follow(v, func(e *change, _ []byte) error {
			t := told{into: o, change: e}
			if e.Object != nil && e.Type != "ERROR" {
				if err := unmarshal(e.Object, &t.object); err != nil {
					return err
				}
			}
			select {
			case w.events <- t:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
}

// end stops the streams, and returns when none is left.
func (w *waiter) end(stop func()) {
	stop()
	for ; w.streams > 0; w.streams-- {
		<-w.errs
	}
}

// run reads events until all is so.
func (w *waiter) run(ctx context.Context) error {
	for {
		select {
		case t := <-w.events:
			w.enter(t)
			switch known := w.known(); {
			case known && w.so():
				w.say()
				return nil
			case known && w.timeout == 0:
				return w.late("not so", w.lacking())
			case w.timeout == 0 && w.answered():
				return &outcome{ExitNoAnswer, errors.New("not known how it stands: not all can be read")}
			}
		case err := <-w.errs:
			w.streams--
			if ctx.Err() == nil {
				return err
			}
			return w.over(ctx)
		case <-ctx.Done():
			return w.over(ctx)
		}
	}
}

func (w *waiter) enter(t told) {
	switch t.change.Type {
	case "STATE":
		if text := t.change.stateText(); text != "" {
			w.session.warn(text)
		}
		t.into.apply(t.change, &t.object)
	case "WARNING":
		w.failed = string(t.change.FilterErrors)
	default:
		t.into.apply(t.change, &t.object)
	}
}

func (w *waiter) lacking() (all []string) {
	for _, one := range w.all {
		all = append(all, one.lacking()...)
	}
	return all
}

// known reports whether no stream lacks anything.
func (w *waiter) known() bool {
	return !slices.ContainsFunc(w.all, func(one *waited) bool { return !one.known() })
}

// so reports whether what is waited for is so.
func (w *waiter) so() bool {
	return !slices.ContainsFunc(w.all, func(one *waited) bool { return !one.so() })
}

// answered reports whether all streams have told all that they can.
func (w *waiter) answered() bool {
	return !slices.ContainsFunc(w.all, func(one *waited) bool { return !one.answered() })
}

// over is the error of a wait that ended before all was so.
func (w *waiter) over(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), errTimeOver) {
		return context.Cause(ctx)
	}
	if !w.known() {
		return &outcome{ExitNoAnswer, fmt.Errorf("not known within %s how it stands", w.timeout)}
	}
	return w.late("not so within "+w.timeout.String(), w.lacking())
}

// someLacking are as many as are named.
const someLacking = 10

func (w *waiter) late(text string, lacking []string) error {
	if more := len(lacking) - someLacking; more > 0 {
		lacking = append(slices.Clone(lacking[:someLacking]), fmt.Sprintf("and %d more", more))
	}
	text += ": " + w.condition + "\n" + strings.Join(lacking, "\n")
	if w.failed != "" {
		text += "\nThe expression has no value for some objects: " + w.failed
	}
	return no("%s", text)
}

// say names what is so, as kubectl does.
func (w *waiter) say() {
	if w.quiet {
		return
	}
	for _, one := range w.all {
		for _, key := range one.all.ordered() {
			w.line(one.all.versions[key].title, one.text)
		}
		for _, name := range one.names {
			if one.gone {
				w.line(one.title(name), one.text)
			}
		}
	}
}

// line is one of up to all objects of a cluster; an error of it comes again when what was
// written is flushed.
func (w *waiter) line(title, text string) {
	out := w.session.out
	out.WriteString(oneLine(title))
	out.WriteByte(' ')
	out.WriteString(text)
	out.WriteByte('\n')
}
