package filter

import (
	"context"
	"fmt"
	"time"

	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// MaxLength is the longest expression, in bytes.
	MaxLength = 4 << 10
	// MaxCost is what the evaluation on one object may cost, in the units of
	// Kubernetes' cost model: the limit of its admission policies, which is
	// about a tenth of a second.
	MaxCost = celconfig.PerCallLimit
	// MaxTime is how long the evaluation on one object may take. Costs do not bound it:
	// cel-go looks for what it charges among all that a loop has left so far.
	MaxTime = 2 * time.Second
)

const (
	// longEvaluation is from when on an evaluation is charged by its time.
	longEvaluation = 10 * time.Millisecond
	// unitTime is the time that a unit stands for where all objects are counted
	// (cache.maxScanCost).
	unitTime = 30 * time.Nanosecond
)

// Filter is a compiled expression. It is immutable and safe for concurrent use.
type Filter struct {
	expression
	clock    bool
	identity bool
	paths    []rawjson.Path
	within   bool // nothing but paths is read
	hints    cache.Hints
}

var _ cache.Filter = (*Filter)(nil)

// Compile parses and type-checks an expression that says whether an object
// matches; now is the value of the variable now. Mistakes are
// *cache.InvalidError and name the column, counted from 1.
func Compile(text string, now time.Time) (*Filter, error) {
	env, err := language()
	if err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	f, at := &Filter{}, types.Timestamp{Time: now}
	syntax, err := f.compile(env, text, at)
	if err != nil {
		return nil, err
	}
	f.clock, f.identity, f.hints = reads(syntax.Expr(), "now"), ofIdentity(syntax.Expr()), hintsOf(syntax.Expr(), at)
	f.paths, f.within = within(syntax.Expr())
	return f, nil
}

// Hints are the conditions that the planner can use.
func (f *Filter) Hints() cache.Hints { return f.hints }

// Clock reports whether the answer depends on the time, and so can change while
// objects do not.
func (f *Filter) Clock() bool { return f.clock }

// OfIdentity reports whether nothing but apiVersion, kind, name, namespace, uid and
// resourceVersion of objects is read.
func (f *Filter) OfIdentity() bool { return f.identity }

// Within are paths outside of which nothing of an object is read, if that is known.
func (f *Filter) Within() (paths []rawjson.Path, ok bool) { return f.paths, f.within }

// Match evaluates the expression on the JSON of an object. An *cache.EvalError
// says that this object has no answer, for example because a field is missing;
// a *cache.CostError that it took too long to find. It ends soon after ctx does.
func (f *Filter) Match(ctx context.Context, json []byte) (ok bool, cost uint64, err error) {
	return f.match(ctx, json, nil)
}
