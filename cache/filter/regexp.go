package filter

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxPattern is the longest regular expression, and maxSteps what it may be
	// compiled to.
	maxPattern = MaxLength
	maxSteps   = 10_000
	// quickMatch is how many steps times bytes are never too much.
	quickMatch = 2_000_000
	// maxMatch is how long one match may take.
	maxMatch = time.Second
)

func isRegexp(function string) bool {
	return function == "matches" || function == "find" || function == "findAll"
}

// pattern is a regular expression and the number of steps of its program: what it
// takes at worst for each character.
type pattern struct {
	*regexp.Regexp
	steps uint64
}

func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("a regular expression of %d bytes; at most %d are possible", len(text), maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > maxSteps {
		return nil, fmt.Errorf("a regular expression of %d steps; at most %d are possible: repeat less", n, maxSteps)
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{compiled, uint64(len(program.Inst))}, nil
}

// regexpCall is a call of a function that takes a text and a regular expression.
type regexpCall struct {
	interpreter.InterpretableCall
	args     []interpreter.InterpretableV2
	constant *pattern // nil: it is not known before
}

// boundRegexp compiles the regular expression if it is a constant.
func boundRegexp(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	r := &regexpCall{InterpretableCall: call, args: call.Args()}
	if c, ok := r.args[1].(interpreter.InterpretableConst); ok {
		text, ok := c.Value().(types.String)
		if !ok {
			return call, nil
		}
		var err error
		if r.constant, err = compilePattern(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", call.Function(), err)
		}
		// cel-go puts a call of its own in the place of one with a constant.
		r.args = append([]interpreter.InterpretableV2{}, r.args...)
		r.args[1] = struct{ interpreter.InterpretableV2 }{c}
	}
	return r, nil
}

// Args implements interpreter.InterpretableCall.
func (r *regexpCall) Args() []interpreter.InterpretableV2 { return r.args }

// Eval implements interpreter.Interpretable.
func (r *regexpCall) Eval(vars interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (r *regexpCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var few [3]ref.Val
	args := few[:0]
	for _, a := range r.args {
		v := a.Exec(frame)
		if types.IsUnknownOrError(v) {
			return v
		}
		args = append(args, v)
	}
	text, ok := args[0].(types.String)
	expression, isText := args[1].(types.String)
	if !ok || !isText {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	p := r.constant
	if p == nil {
		var err error
		if p, err = compilePattern(string(expression)); err != nil {
			return types.NewErr("%s: %v", r.Function(), err)
		}
	}
	return p.call(frame, r.Function(), string(text), args[2:])
}

func (p *pattern) call(frame *interpreter.ExecutionFrame, function, text string, rest []ref.Val) ref.Val {
	work := p.steps * uint64(len(text))
	slow := work > quickMatch
	if work > muchWork {
		yield(frame)
	}
	switch function {
	case "matches":
		if slow {
			return types.Bool(p.slowly(frame, text) != nil)
		}
		return types.Bool(p.MatchString(text))
	case "find":
		if slow {
			if at := p.slowly(frame, text); at != nil {
				return types.String(text[at[0]:at[1]])
			}
			return types.String("")
		}
		return types.String(p.FindString(text))
	}
	n := -1
	if len(rest) > 0 {
		limit, ok := rest[0].(types.Int)
		if !ok {
			return types.MaybeNoSuchOverloadErr(rest[0])
		}
		n = int(limit)
	}
	if slow && p.steps*uint64(len(text)) > 10*quickMatch {
		tooExpensive()
	}
	return types.NewStringList(types.DefaultTypeAdapter, p.FindAllString(text, n))
}

// slowly looks for the first match and gives up when that takes too long, or when
// nobody wants to know any more.
func (p *pattern) slowly(frame *interpreter.ExecutionFrame, text string) []int {
	in := &limitedReader{frame: frame, text: text, until: time.Now().Add(maxMatch)}
	at := p.FindReaderIndex(in)
	if in.stopped {
		tooExpensive()
	}
	return at
}

// limitedReader reads a text until its time is over.
type limitedReader struct {
	frame   *interpreter.ExecutionFrame
	text    string
	at      int
	until   time.Time
	read    int
	stopped bool
}

// checkEvery is after how many characters the clock is looked at.
const checkEvery = 64

// ReadRune implements io.RuneReader.
func (r *limitedReader) ReadRune() (rune, int, error) {
	if r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	r.read++
	if r.read%yieldEvery == 0 {
		r.until = r.until.Add(yield(r.frame))
	}
	if r.read%checkEvery == 0 && (time.Now().After(r.until) || r.frame.CheckInterrupt()) {
		r.stopped = true
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(r.text[r.at:])
	r.at += n
	return c, n, nil
}
