package filter

import (
	"math/rand/v2"
	"time"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// yieldEvery is after how many calls, on average, an evaluation that may take long looks
// whether its turn is over (see cache.Turns).
const yieldEvery = 128

// muchWork is from how many units of work on (see works) a call looks so each time.
const muchWork = 10_000

// yielding is a call before which others may have their turns. Within a loop there is a call for
// each element, or it is over soon. Calls that are much work by themselves see to it on their own.
type yielding struct{ interpreter.InterpretableCall }

// yields is a decorator that makes calls yield.
func yields(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok {
		return yielding{call}, nil
	}
	return i, nil
}

// Eval implements interpreter.Interpretable.
func (y yielding) Eval(vars interpreter.Activation) ref.Val {
	return y.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (y yielding) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	// Several goroutines run a program, so that a counter would have to be shared by them.
	if rand.Uint32()%yieldEvery == 0 {
		yield(frame)
	}
	return y.InterpretableCall.Exec(frame)
}

// yield lets others have their turns, if that of the evaluation is over, and returns how long it
// has waited.
func yield(frame *interpreter.ExecutionFrame) (waited time.Duration) {
	for a := frame.Activation; a != nil; a = a.Parent() {
		if e, ok := a.(*evaluation); ok {
			return e.patience.yield()
		}
	}
	return 0
}
