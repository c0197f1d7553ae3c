package cache

import (
	"context"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

// Filter is a condition on the JSON of objects that selectors cannot express.
// Implementations are immutable and safe for concurrent use.
type Filter interface {
	// String tells filters apart.
	String() string
	// Match evaluates the condition and says what that cost, in units of the
	// implementation's own. An *EvalError means that the condition has no value
	// for this object; every other error ends the query. It ends soon after ctx.
	Match(ctx context.Context, json []byte) (ok bool, cost uint64, err error)
	// Hints are conditions that indexes may be able to check beforehand.
	Hints() Hints
	// Clock reports whether the result depends on the time.
	Clock() bool
	// OfIdentity reports whether all that the condition reads of an object are an
	// Identity, so that AppendIdentity's JSON is as good as the object's.
	OfIdentity() bool
	// Within are paths outside of which nothing of an object is read; ok is false if that is
	// not known.
	Within() (paths []rawjson.Path, ok bool)
}

// A Filter that stands for a field selector also has the method Reads() []rawjson.Path:
// what it looks at must not be dropped or redacted.

// Hints are conditions that each hold for every object a Filter matches. They
// may leave objects in that it does not match, never the other way round.
type Hints struct {
	// Fields are of the operators Equals, NotEquals and In. Unlike in a
	// FieldSelector a value is there only if it is a string, number or bool.
	Fields []FieldRequirement
	Labels []labels.Requirement
	Ranges []FieldRange
}

// FieldRange says that a value at a path is within one of several ranges: as
// the number it is, or as the quantity, time or string that a string is read as.
type FieldRange struct {
	Path   rawjson.Path
	Ranges []scalar.Range
}

// maxScanCost bounds what a Filter may cost over all objects of one Select:
// about half a minute of one processor.
const maxScanCost = 1_000_000_000

// Faults counts the objects for which a Filter had no value, which did not match
// for that reason alone.
type Faults struct {
	Count int
	// First is the message of the first of them in the order of keys, and Key
	// the object.
	First string
	Key   Key
}

// add counts the fault of the object called k.
func (f *Faults) add(k Key, fault *EvalError) {
	if f.Count == 0 || k.Compare(f.Key) < 0 {
		f.First, f.Key = fault.Message, k
	}
	f.Count++
}
