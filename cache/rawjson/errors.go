package rawjson

import (
	"errors"
	"fmt"
)

// SyntaxError says where the bytes stop being the JSON that is wanted.
type SyntaxError struct {
	Offset int // of the offending byte
	Msg    string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset)
}

// ErrTooLarge says that one value of a stream exceeds the limit its reader was
// given. The reader is finished: what follows cannot be delivered in order.
var ErrTooLarge = errors.New("JSON value exceeds the size limit")

// Scanning functions return the index after what they read, or a failure: a
// negative number holding the reason and the offset. An error value would cost
// two registers in every call of the hot path.
type reason = int

const (
	badSyntax reason = iota
	badDepth
	badNumber
	notObject
	duplicate // a wanted key occurs twice: run again, carefully
	satisfied // nothing more is wanted: no error
	reasons   = 8
)

func fail(why reason, at int) int { return -1 - (at*reasons + why) }

func failure(n int) (why reason, at int) {
	n = -1 - n
	return n % reasons, n / reasons
}

func failedFor(n int, why reason) bool {
	if n >= 0 {
		return false
	}
	is, _ := failure(n)
	return is == why
}

// scanError turns a failure into an error.
func scanError(src []byte, n int) error {
	why, at := failure(n)
	e := &SyntaxError{Offset: at}
	switch {
	case why == badDepth:
		e.Msg = fmt.Sprintf("JSON nested deeper than %d", maxDepth)
	case why == badNumber:
		e.Msg = "JSON number beyond float64"
	case at >= len(src):
		e.Msg = "unexpected end of JSON"
	case why == notObject:
		e.Msg = fmt.Sprintf("want a JSON object, found %q", src[at])
	default:
		e.Msg = fmt.Sprintf("invalid JSON: unexpected %q", src[at])
	}
	return e
}
