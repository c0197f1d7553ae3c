// Package faults breaks things, each in a way that has a name, in an order that
// follows from a seed. It knows of each kind what it may cause; what else happens
// is somebody's mistake.
package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/history"
	"github.com/informerd/informerd/test/soak/rig"
	"github.com/informerd/informerd/test/soak/traffic"
)

// Parts that faults act on. Two that share one are never under way together.
const (
	first      = "first informerd"
	second     = "second informerd"
	servers    = "API servers"
	etcd       = "etcd"
	line       = "line" // between the first informerd and the API servers
	definition = "definition"
	aggregated = "aggregated API"
	objects    = "objects"
	readers    = "readers"
)

// Kind is one kind of fault.
type Kind struct {
	Name string
	// Does says what is done.
	Does string
	// Parts are what it acts on.
	Parts []string
	// Needs is what the rig must be able to do.
	Needs string
	// Least and Most bound how long it lasts.
	Least, Most time.Duration
	// Lists says that it may make informerd list resources again.
	Lists bool
	// Own are the only resources that it may show at; nil: all.
	Own []string
	// Silent says that nothing of the API server reaches informerd meanwhile.
	Silent bool
	// Begin does it and returns how to undo it.
	Begin func(context.Context, *Env, *rand.Rand) (heal func(context.Context) error, err error)
}

// Env is what faults act on.
type Env struct {
	Rig     *rig.Rig
	Traffic *traffic.Traffic
	Checker *checker.Checker
	// Client writes to one API server.
	Client dynamic.Interface
	// Stable are the resources that no fault is about; the first are ConfigMaps.
	Stable []history.Resource
	// Brittle is the custom resource whose definition faults change.
	Brittle history.Resource
	// Aggregated is an API of our own behind the API server's aggregator.
	Aggregated *Aggregated
	Log        func(format string, args ...any)

	loading sync.Mutex // one snapshot at a time is looked at
	loads   int        // so far
	damaged time.Time  // when a fault damaged the snapshot last, until it is seen to be sound; guarded by loading
}

// Kinds are all kinds, in the order of their names.
func Kinds() []Kind {
	all := slices.Concat(processKinds(), snapshotKinds(), serverKinds(), etcdKinds(), balancerKinds(), proxyKinds(), definitionKinds(), clockKinds(), otherKinds())
	slices.SortFunc(all, func(a, b Kind) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// linger is how long after its end a fault may still show.
const linger = 90 * time.Second

// Event is one fault that happened.
type Event struct {
	Number int
	Kind   Kind
	Began  time.Time // when it was begun
	// InForce is when it had been made, which takes seconds on a busy machine; zero
	// until then.
	InForce time.Time
	Healed  time.Time // when undoing it began; zero while it lasts
	Over    time.Time // when it was undone
}

func (e Event) String() string { return fmt.Sprintf("#%d %s", e.Number, e.Kind.Name) }

// Timeline is what happened when.
type Timeline struct {
	mu     sync.Mutex
	events []*Event
}

func (t *Timeline) begin(k Kind) *Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &Event{Number: len(t.events) + 1, Kind: k, Began: time.Now()}
	t.events = append(t.events, e)
	return e
}

func (t *Timeline) change(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// Events are all faults so far.
func (t *Timeline) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Event
	for _, e := range t.events {
		all = append(all, *e)
	}
	return all
}

// Active names the faults that were under way at a moment, or over for less than
// half a minute.
func (t *Timeline) Active(at time.Time) []string {
	var all []string
	for _, e := range t.Events() {
		if e.Began.After(at) || !e.Over.IsZero() && e.Over.Add(30*time.Second).Before(at) {
			continue
		}
		name := e.String()
		if !e.Over.IsZero() && e.Over.Before(at) {
			name += fmt.Sprintf(" (over for %.0f s)", at.Sub(e.Over).Seconds())
		}
		all = append(all, name)
	}
	return all
}

// Excuses are what the faults so far excuse.
func (t *Timeline) Excuses() []checker.Excuse {
	var all []checker.Excuse
	for _, e := range t.Events() {
		x := checker.Excuse{From: e.Began, Resources: e.Kind.Own, Lists: e.Kind.Lists, Own: e.Kind.Own != nil, Name: e.String()}
		if !e.Over.IsZero() {
			x.To = e.Over.Add(linger)
		}
		all = append(all, x)
	}
	return all
}

// Withheld is how long what the API server says may be on its way: the proxy lets watches
// go on after that.
const Withheld = 31 * time.Second

// Silent is since when nothing of the API server can have reached informerd at a
// moment; zero if it can. What was on its way when a fault began may come later by transit.
func (t *Timeline) Silent(at time.Time, transit time.Duration) time.Time {
	for _, e := range t.Events() {
		since := e.InForce.Add(transit)
		if e.Kind.Silent && !e.InForce.IsZero() && since.Before(at) && (e.Healed.IsZero() || at.Before(e.Healed)) {
			return since
		}
	}
	return time.Time{}
}

// Options of a Runner.
type Options struct {
	Seed uint64
	// Only are the kinds to use, by name; empty: all.
	Only []string
	// Gap is the mean time between two faults of one hand.
	Gap time.Duration
	// Longest bounds how long one lasts; 0: as its kind says.
	Longest time.Duration
}

// Runner makes faults happen.
type Runner struct {
	Options
	Timeline Timeline
	env      *Env
	kinds    []Kind
	skipped  []string

	mu       sync.Mutex // guards all below
	busy     map[string]bool
	troubles []error
}

// NewRunner returns a Runner; it is an error to name a kind that there is not.
func NewRunner(env *Env, opts Options) (*Runner, error) {
	r := &Runner{Options: opts, env: env, busy: map[string]bool{}}
	known := map[string]bool{}
	for _, k := range Kinds() {
		known[k.Name] = true
		switch {
		case len(opts.Only) > 0 && !slices.Contains(opts.Only, k.Name):
		case !env.Rig.Can(k.Needs):
			r.skipped = append(r.skipped, k.Name)
		default:
			r.kinds = append(r.kinds, k)
		}
	}
	for _, name := range opts.Only {
		if !known[name] {
			return nil, fmt.Errorf("there is no kind of fault %q; see --list", name)
		}
	}
	return r, nil
}

// Skipped are the kinds that this machine or this devcluster cannot do.
func (r *Runner) Skipped() []string { return r.skipped }

// Troubles are faults that could not be made or undone.
func (r *Runner) Troubles() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.troubles)
}

// hands are the parts by which kinds are dealt out: a kind is in the hand of the part it
// names first. Of each hand one fault at a time is under way, and a hand has its own
// order, so that neither a long fault nor a slow machine changes what follows what.
var hands = [][]string{
	{etcd, servers, definition, objects},
	{line, second, readers, aggregated},
	{first},
}

// Run makes faults until ctx ends, and returns when all are undone. The kinds of a hand
// are dealt like cards: each comes once before one comes again.
func (r *Runner) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for n, parts := range hands {
		var kinds []Kind
		for _, k := range r.kinds {
			if slices.Contains(parts, k.Parts[0]) {
				kinds = append(kinds, k)
			}
		}
		if len(kinds) > 0 {
			wg.Go(func() { r.deal(ctx, kinds, uint64(n+1)) })
		}
	}
	<-ctx.Done()
	wg.Wait()
}

// deal makes the faults of one hand.
func (r *Runner) deal(ctx context.Context, kinds []Kind, hand uint64) {
	random := rand.New(rand.NewPCG(r.Seed, hand))
	var deck []Kind
	for n := uint64(0); ctx.Err() == nil; n++ {
		if len(deck) == 0 {
			deck = slices.Clone(kinds)
			random.Shuffle(len(deck), func(a, b int) { deck[a], deck[b] = deck[b], deck[a] })
		}
		k := deck[0]
		deck = deck[1:]
		lasts, pause := r.duration(k, random), r.Gap/2+time.Duration(random.Int64N(int64(r.Gap)))
		if !r.take(ctx, k.Parts) {
			return
		}
		r.one(ctx, k, lasts, rand.New(rand.NewPCG(r.Seed, hand<<32+n)))
		r.give(k.Parts)
		wait(ctx, pause)
	}
}

// duration is seldom long: most of what is wrong shows in seconds.
func (r *Runner) duration(k Kind, random *rand.Rand) time.Duration {
	part := random.Float64()
	d := k.Least + time.Duration(part*part*part*float64(k.Most-k.Least))
	if r.Longest > 0 {
		d = min(d, r.Longest)
	}
	return d
}

// take waits until no other fault acts on the parts.
func (r *Runner) take(ctx context.Context, parts []string) bool {
	for ctx.Err() == nil {
		if r.takeNow(parts) {
			return true
		}
		wait(ctx, 100*time.Millisecond)
	}
	return false
}

func (r *Runner) takeNow(parts []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(parts, func(p string) bool { return r.busy[p] }) {
		return false
	}
	for _, p := range parts {
		r.busy[p] = true
	}
	return true
}

func (r *Runner) give(parts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		delete(r.busy, p)
	}
}

func (r *Runner) one(ctx context.Context, k Kind, lasts time.Duration, random *rand.Rand) {
	// What a fault began it ends, also when time is up.
	acting := context.WithoutCancel(ctx)
	e := r.Timeline.begin(k)
	r.env.Log("fault %s for %.1f s", e, lasts.Seconds())
	heal, err := k.Begin(acting, r.env, random)
	if err != nil {
		r.trouble(fmt.Errorf("%s: %w", e, err))
	}
	r.Timeline.change(func() { e.InForce = time.Now() })
	wait(ctx, lasts)
	r.Timeline.change(func() { e.Healed = time.Now() })
	if heal != nil {
		if herr := heal(acting); herr != nil {
			r.trouble(fmt.Errorf("undo %s: %w", e, herr))
			err = herr
		}
	}
	if err != nil {
		// What could not be made or undone must not last for the rest of the soak.
		if err := r.env.mend(acting, k.Parts); err != nil {
			r.trouble(fmt.Errorf("mend after %s: %w", e, err))
		}
	}
	r.Timeline.change(func() { e.Over = time.Now() })
	r.env.Log("over: %s", e)
}

// mend makes the parts of a fault what they are without faults.
func (e *Env) mend(ctx context.Context, parts []string) (err error) {
	if slices.Contains(parts, servers) || slices.Contains(parts, etcd) {
		err = e.Rig.Up(ctx)
	}
	if slices.Contains(parts, line) {
		err = errors.Join(err, e.all(ctx, [][]string{{"proxy", `{"rules":[]}`}, {"balancer", "normal"}}))
	}
	if slices.Contains(parts, first) {
		err = errors.Join(err, e.Rig.First.Start())
	}
	if slices.Contains(parts, second) {
		err = errors.Join(err, e.Rig.Second.Start())
	}
	return err
}

func (r *Runner) trouble(err error) {
	r.env.Log("trouble: %v", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubles = append(r.troubles, err)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
