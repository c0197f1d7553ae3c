// Package checker holds what informerd answered against what really happened.
//
// Recorders report answers, single objects and watches as they come. None of it
// is judged at once: the history comes from etcd by another way and may be later.
// What names a version waits until the history has it; a version that etcd does
// not reach while it works is itself a violation.
//
// The rules, which docs/guarantees.md promises:
//
//	state      a list is the state of etcd at exactly the version it names
//	object     a single object, or its absence, was true at the version named
//	back       versions never go back to one reader
//	order      versions never fall within a watch
//	repeat     a watch repeats nothing
//	missed     a watch misses nothing
//	phantom    an event or an object that etcd never had
//	future     a version that etcd never had
//	history    a watch goes on in another history without a 410
//	expired    a 410 for a version that is to be gone on with
//	age        an answer is older than it says
//	lease      live for longer than a proof lasts
//	relist     a list that no fault excuses
//	spread     a fault of one resource shows at another
//	settle     something is wrong for good when all faults are over
//	reply      an answer that no server may give
package checker

import (
	"fmt"
	"sync"
	"time"

	"github.com/informerd/informerd/test/soak/history"
)

// Options of a Checker. Zero values are the promise.
type Options struct {
	// Lease is how long a resource may be live without a proof; default 75 s.
	Lease time.Duration
	// Slack is what an age may be off: the API server itself learns of a change
	// a moment after etcd has it. Default 2 s.
	Slack time.Duration
	// Future is how long a version may be unknown to a history that goes on;
	// default 10 s.
	Future time.Duration
	// Delay is how old what a watch told must be before it is judged: Relisted may
	// know later. Default 0.
	Delay time.Duration
	// Faults names the faults under way at a moment; nil knows of none.
	Faults func(at time.Time) []string
	// Relisted says whether copies may have been listed anew between two
	// moments: then a watch may leave out states that others replaced. Nil: they
	// were not.
	Relisted func(resource string, from, to time.Time) bool
	// Ended says whether a resource may have been gone with its definition about a
	// moment: then a copy tells all it holds as deleted, whatever history that is of.
	// Nil: none was.
	Ended func(resource string, at time.Time) bool
	// SecondTier says whether a reader reads an informerd whose API server is another;
	// nil: none does.
	SecondTier func(reader string) bool
	// Silent is since when nothing that the API server says of a resource can have
	// reached informerd, at a moment; zero if it can. Nil: always zero.
	Silent func(resource string, at time.Time) time.Time
}

// Violation is one thing that must not be.
type Violation struct {
	Time   time.Time
	Rule   string
	Reader string
	Detail string
	Faults []string // under way
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: reader %s: %s (faults: %v)", v.Time.Format("15:04:05.000"), v.Rule, v.Reader, v.Detail, v.Faults)
}

// Counts are what has been checked.
type Counts struct {
	Answers, Events, Waiting int
	// Unjudged is what was told while API servers served no history, and Lost how often
	// a reader came back with a version of two histories.
	Unjudged, Lost int
	// Amid is how often a second tier was asked amid the differences of a list.
	Amid int
	// Expired is how often a watch was told 410.
	Expired int
}

// Checker judges. It is safe for concurrent use.
type Checker struct {
	log  *history.Log
	opts Options

	mu         sync.Mutex // guards all below
	violations []Violation
	suppressed map[string]int // by rule and reader, beyond mostAlike
	counts     Counts
	waiting    []pending
	readers    map[string]*floor
	watches    []*Watch
}

// pending is something that is judged when the history has reached a version.
type pending struct {
	version int64
	since   time.Time
	reader  string
	what    string
	judge   func()
}

// mostAlike is how many violations of one rule by one reader are kept.
const mostAlike = 5

// New returns a Checker of answers about the log.
func New(log *history.Log, opts Options) *Checker {
	if opts.Lease == 0 {
		opts.Lease = 75 * time.Second
	}
	if opts.Slack == 0 {
		opts.Slack = 2 * time.Second
	}
	if opts.Future == 0 {
		opts.Future = 10 * time.Second
	}
	return &Checker{log: log, opts: opts, suppressed: map[string]int{}, readers: map[string]*floor{}}
}

// Report notes a violation that somebody else has found.
func (c *Checker) Report(at time.Time, rule, reader, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reportLocked(at, rule, reader, format, args...)
}

func (c *Checker) reportLocked(at time.Time, rule, reader, format string, args ...any) {
	alike := rule + " " + reader
	c.suppressed[alike]++
	if c.suppressed[alike] > mostAlike {
		return
	}
	v := Violation{Time: at, Rule: rule, Reader: reader, Detail: fmt.Sprintf(format, args...)}
	if c.opts.Faults != nil {
		v.Faults = c.opts.Faults(at)
	}
	c.violations = append(c.violations, v)
}

// Violations are those found so far, at most five alike, and the number of all.
func (c *Checker) Violations() (shown []Violation, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.suppressed {
		all += n
	}
	return append(shown, c.violations...), all
}

// Counts are what has been checked so far.
func (c *Checker) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	counts.Waiting = len(c.waiting)
	for _, w := range c.watches {
		counts.Waiting += len(w.queue)
	}
	return counts
}

// Step judges what can be judged now, of each reader in the order in which it was
// told: after a restore a version of before is known later than a lower one of
// after it. Step is to be called often.
func (c *Checker) Step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log.Held() {
		return
	}
	keep := c.waiting[:0]
	behind := map[string]bool{} // readers of whom something must be judged before
	for _, p := range c.waiting {
		switch {
		case c.log.Blurred(p.since):
			c.counts.Unjudged++
		case behind[p.reader]:
			keep = append(keep, p)
		case c.knownLocked(p.version, p.since):
			p.judge()
		case c.futureLocked(p.since):
			c.reportLocked(p.since, "future", p.reader, "%s is at version %d; etcd is at %d", p.what, p.version, c.headLocked())
		default:
			keep = append(keep, p)
			behind[p.reader] = true
		}
	}
	clear(c.waiting[len(keep):])
	c.waiting = keep
	for _, w := range c.watches {
		w.stepLocked()
	}
}

func (c *Checker) waitLocked(p pending) { c.waiting = append(c.waiting, p) }

func (c *Checker) headLocked() int64 {
	head, _ := c.log.Now().Head()
	return head
}

// knownLocked says whether what was told at a moment can be judged. A version that
// only an earlier history has reached may be of the present one as well, until
// that is known up to the moment.
func (c *Checker) knownLocked(version int64, told time.Time) bool {
	now := c.log.Now()
	head, reached := now.Head()
	if head >= version {
		return true
	}
	if !reached.After(told.Add(time.Second)) {
		return false
	}
	for _, e := range c.log.Epochs() {
		if head, _ := e.Head(); head >= version {
			return true
		}
	}
	return false
}

// futureLocked says whether a version that is unknown since a moment will not
// come: etcd has been heard of for long enough, and does not have it.
func (c *Checker) futureLocked(since time.Time) bool {
	_, reached := c.log.Now().Head()
	return reached.After(since.Add(c.opts.Future))
}

// position is a version in one of several histories that are alike up to it.
type position struct {
	epoch   *history.Epoch
	version int64
}

// follows says whether whoever is at p may be told of q next: q is not before p
// in the same history, or p's history was given up for q's.
func (p position) follows(q position) bool {
	if p.epoch == nil {
		return true
	}
	common := history.Common(p.epoch, q.epoch)
	if q.version >= p.version && p.version <= common {
		return true
	}
	// Histories only ever change to later ones.
	return q.epoch.Number > p.epoch.Number
}
