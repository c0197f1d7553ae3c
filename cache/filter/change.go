package filter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/informerd/informerd/cache"
)

// Change is a compiled condition on two states of an object: what it is, and what it was
// before. It is immutable and safe for concurrent use.
type Change struct{ expression }

// CompileChange is Compile of a condition on a change. The variable object is the new
// state, and old the one before, which is null where there was none: an expression that
// looks into it says so first, as in
//
//	old == null || object.spec.replicas != old.spec.replicas
//
// The answer is of the change alone, and is asked for once, when it happens. So an
// expression that reads the time, by now, age(), health() or healthReason(), is an
// *cache.InvalidError, and the time that is given is never read; it is there for both to be
// called alike.
func CompileChange(text string, now time.Time) (*Change, error) {
	env, err := changeLanguage()
	if err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	c := &Change{}
	syntax, err := c.compile(env, text, types.Timestamp{Time: now})
	if err != nil {
		return nil, err
	}
	if at := read(syntax.Expr(), "now"); at != nil {
		return nil, invalid("%s: it depends on the time, as now, age(), health() and healthReason() do: a change is judged once, when it happens, and time alone changes no object; compare fields of object and old",
			place(syntax.SourceInfo().GetStartLocation(at.ID())))
	}
	return c, nil
}

// UsesOld reports whether an expression is a condition on a change: whether it reads old.
// What is no expression is none; Compile says what is wrong with it.
func UsesOld(text string) bool {
	env, err := changeLanguage()
	if err != nil || len(text) > MaxLength {
		return false
	}
	parsed, issues := env.Parse(text)
	return issues.Err() == nil && reads(parsed.NativeRep().Expr(), "old")
}

// MatchChange evaluates the condition on the JSON of the new state and of the one before,
// which is nil where there was none. Every error is an *cache.EvalError: there is no answer,
// for example because a field is missing, or finding it costs too much or takes too long.
func (c *Change) MatchChange(object, old []byte) (bool, error) {
	ok, _, err := c.match(context.Background(), object, old)
	if cost, dear := errors.AsType[*cache.CostError](err); dear {
		err = &cache.EvalError{Message: cost.Message}
	}
	return ok, err
}
