package filter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/informerd/informerd/cache"
)

// expression is what Filter and Change have in common: a program that is true or false
// of JSON, within bounds of cost, memory and time.
type expression struct {
	text    string
	now     types.Timestamp
	long    bool // it may take long enough to be interrupted
	program cel.Program
	plain   plainAnswer
	scratch sync.Pool // of *evaluation
}

// compile makes x that of a text and returns its syntax.
func (x *expression) compile(env *cel.Env, text string, now types.Timestamp) (*ast.AST, error) {
	if len(text) > MaxLength {
		return nil, invalid("%d bytes long; at most %d are possible", len(text), MaxLength)
	}
	if strings.TrimSpace(text) == "" {
		return nil, invalid("empty; write for example object.spec.replicas > 3")
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
	long := takesLong(checked.NativeRep().Expr())
	decorators := []cel.ProgramOption{cel.CustomDecoratorV2(bounded(calls))}
	if long {
		decorators = append(decorators, cel.CustomDecoratorV2(yields))
	}
	program, err := env.Program(checked, append(decorators, cel.CostTracking(&costs{}), cel.InterruptCheckFrequency(checkEvery))...)
	if err != nil {
		return nil, invalid("column 1: %v", err)
	}
	x.text, x.now, x.long, x.program = text, now, long, program
	x.plain = plainAnswerOf(checked.NativeRep().Expr())
	x.scratch.New = func() any { return &evaluation{now: now} }
	return checked.NativeRep(), nil
}

// mistake is the first thing wrong with an expression.
func mistake(issues *cel.Issues) error {
	first := issues.Errors()[0]
	return invalid("%s: %s", place(first.Location), strings.ReplaceAll(first.Message, " (in container '')", ""))
}

// place names a place in an expression for people.
func place(l common.Location) string {
	column := fmt.Sprintf("column %d", l.Column()+1)
	if l.Line() > 1 {
		return fmt.Sprintf("line %d, %s", l.Line(), column)
	}
	return column
}

func invalid(format string, args ...any) error {
	return &cache.InvalidError{Parameter: "filter", Message: fmt.Sprintf(format, args...)}
}

// takesLong reports whether an expression looks at elements one after the other, or for
// regular expressions.
func takesLong(e ast.Expr) bool {
	found := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.ComprehensionKind || e.Kind() == ast.CallKind && isRegexp(e.AsCall().FunctionName())
	}))
	return found
}

// String is the expression as it was given.
func (x *expression) String() string { return x.text }

// match evaluates the expression on the JSON of an object, and of what it was before
// where it asks for that; see Filter.Match.
func (x *expression) match(ctx context.Context, object, old []byte) (ok bool, cost uint64, err error) {
	if is, known := x.plain.of(object); known {
		return is, x.plain.cost, nil
	}
	e := x.scratch.Get().(*evaluation)
	defer x.scratch.Put(e)
	defer e.reset()
	e.start(object, old)
	began := time.Now()
	out, details, err := x.eval(ctx, e)
	if c := details.ActualCost(); c != nil {
		cost = *c
	}
	if took := time.Since(began) - e.patience.waited; took > longEvaluation {
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

func (x *expression) eval(ctx context.Context, e *evaluation) (ref.Val, *cel.EvalDetails, error) {
	if x.long {
		defer e.patience.end()
		return x.program.ContextEval(e.patience.begin(ctx), e)
	}
	return x.program.Eval(e)
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
