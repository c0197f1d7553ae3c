package filter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/informerd/informerd/cache"
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
	text    string
	now     types.Timestamp
	clock   bool
	loops   bool // it may take long enough to be interrupted
	program cel.Program
	hints   cache.Hints
	scratch sync.Pool // of *evaluation
}

var _ cache.Filter = (*Filter)(nil)

// Compile parses and type-checks an expression that says whether an object
// matches; now is the value of the variable now. Mistakes are
// *cache.InvalidError and name the column, counted from 1.
func Compile(text string, now time.Time) (*Filter, error) {
	if len(text) > MaxLength {
		return nil, invalid("%d bytes long; at most %d are possible", len(text), MaxLength)
	}
	if strings.TrimSpace(text) == "" {
		return nil, invalid("empty; write for example object.spec.replicas > 3")
	}
	env, err := language()
	if err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, mistake(issues)
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, invalid("column 1: the expression is of type %s; want true or false for each object", out)
	}
	calls, err := implementations()
	if err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	program, err := env.Program(checked, cel.CustomDecoratorV2(bounded(calls)), cel.CostTracking(&costs{}), cel.InterruptCheckFrequency(checkEvery))
	if err != nil {
		return nil, invalid("column 1: %v", err)
	}
	tree := checked.NativeRep()
	f := &Filter{text: text, now: types.Timestamp{Time: now}, clock: reads(tree.Expr(), "now"), loops: loops(tree.Expr()), program: program, hints: hintsOf(tree.Expr(), types.Timestamp{Time: now})}
	f.scratch.New = func() any { return &evaluation{now: f.now} }
	return f, nil
}

// mistake is the first thing wrong with an expression.
func mistake(issues *cel.Issues) error {
	first := issues.Errors()[0]
	where := fmt.Sprintf("column %d", first.Location.Column()+1)
	if line := first.Location.Line(); line > 1 {
		where = fmt.Sprintf("line %d, %s", line, where)
	}
	return invalid("%s: %s", where, strings.ReplaceAll(first.Message, " (in container '')", ""))
}

func invalid(format string, args ...any) error {
	return &cache.InvalidError{Parameter: "filter", Message: fmt.Sprintf(format, args...)}
}

// reads reports whether an expression names a variable.
func reads(e ast.Expr, variable string) bool {
	found := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() == variable
	}))
	return found
}

// loops reports whether an expression looks at elements one after the other.
func loops(e ast.Expr) bool {
	found := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) { found = found || e.Kind() == ast.ComprehensionKind }))
	return found
}

// String is the expression as it was given.
func (f *Filter) String() string { return f.text }

// Hints are the conditions that the planner can use.
func (f *Filter) Hints() cache.Hints { return f.hints }

// Clock reports whether the answer depends on the time, and so can change while
// objects do not.
func (f *Filter) Clock() bool { return f.clock }

// Match evaluates the expression on the JSON of an object. An *cache.EvalError
// says that this object has no answer, for example because a field is missing;
// a *cache.CostError that it took too long to find. It ends soon after ctx does.
func (f *Filter) Match(ctx context.Context, json []byte) (ok bool, cost uint64, err error) {
	e := f.scratch.Get().(*evaluation)
	defer f.scratch.Put(e)
	defer e.reset()
	e.start(json)
	began := time.Now()
	out, details, err := f.eval(ctx, e)
	if c := details.ActualCost(); c != nil {
		cost = *c
	}
	if took := time.Since(began); took > longEvaluation {
		cost = max(cost, uint64(took/unitTime))
	}
	if err != nil {
		return false, cost, evalError(ctx, err)
	}
	is, ok := out.(types.Bool)
	if !ok {
		return false, cost, &cache.EvalError{Message: fmt.Sprintf("the result is of type %s, not true or false", out.Type().TypeName())}
	}
	return bool(is), cost, nil
}

func (f *Filter) eval(ctx context.Context, e *evaluation) (ref.Val, *cel.EvalDetails, error) {
	if f.loops {
		defer e.patience.end()
		return f.program.ContextEval(e.patience.begin(ctx), e)
	}
	return f.program.Eval(e)
}

func evalError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errTooLong):
		return &cache.CostError{Parameter: "filter", Message: fmt.Sprintf("evaluating it on one object takes longer than %v: select fewer objects by an index, or make it simpler", MaxTime)}
	}
	if cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && cancelled.Cause == interpreter.CostLimitExceeded {
		return cache.TooExpensive("one object", MaxCost)
	}
	return &cache.EvalError{Message: strings.Clone(err.Error())}
}
