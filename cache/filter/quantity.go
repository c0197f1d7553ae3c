package filter

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// quantityFunction is Kubernetes' quantity(string), with a memory: it is asked about
// few texts again and again, once per container of every object, and for each
// constant of the expression as often. cel-go lets the implementation of an
// overload be replaced.
func quantityFunction() cel.EnvOption {
	seen := newQuantities()
	return cel.Function("quantity",
		cel.Overload("string_to_quantity", []*cel.Type{cel.StringType}, apiservercel.QuantityType, cel.UnaryBinding(seen.quantity)))
}

func isQuantityFunction() cel.EnvOption {
	return cel.Function("isQuantity",
		cel.Overload("is_quantity_string", []*cel.Type{cel.StringType}, cel.BoolType, cel.UnaryBinding(isQuantity)))
}

const (
	// maxQuantityText is the length of the longest text that is read: each digit makes
	// arithmetic slower.
	maxQuantityText = 256
	// maxRemembered is that of the longest text that is remembered.
	maxRemembered = 64
	// maxExponent is that of a float64. A quantity is a number of as many digits.
	maxExponent = 308
)

// parseQuantity is resource.ParseQuantity within bounds.
func parseQuantity(text string) (resource.Quantity, error) {
	if len(text) > maxQuantityText {
		return resource.Quantity{}, fmt.Errorf("a quantity of %d bytes is too long; at most %d are possible", len(text), maxQuantityText)
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if n, err := strconv.Atoi(text[i+1:]); err == nil && (n > maxExponent || n < -maxExponent) {
			return resource.Quantity{}, fmt.Errorf("the exponent of the quantity %q is out of range; from -%d to %[2]d are possible", text, maxExponent)
		}
	}
	return resource.ParseQuantity(text)
}

// isQuantity is Kubernetes' isQuantity(string), within the same bounds.
func isQuantity(arg ref.Val) ref.Val {
	text, ok := arg.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	_, err := parseQuantity(string(text))
	return types.Bool(err == nil)
}

// quantities are those read last, by a hash of their text. It is safe for
// concurrent use; two texts of one place replace each other.
type quantities struct {
	seed maphash.Seed
	read [256]atomic.Pointer[readQuantity]
}

func newQuantities() *quantities { return &quantities{seed: maphash.MakeSeed()} }

// readQuantity is never changed, nor given to anybody.
type readQuantity struct {
	text  string
	value resource.Quantity
}

// quantity returns a copy each time: a Quantity changes when it is added to and
// even when it is compared.
func (s *quantities) quantity(arg ref.Val) ref.Val {
	text, ok := arg.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	place := &s.read[maphash.String(s.seed, string(text))%uint64(len(s.read))]
	if known := place.Load(); known != nil && known.text == string(text) {
		value := known.value.DeepCopy()
		return apiservercel.Quantity{Quantity: &value}
	}
	value, err := parseQuantity(string(text))
	if err != nil {
		return types.WrapErr(err)
	}
	if len(text) <= maxRemembered {
		place.Store(&readQuantity{strings.Clone(string(text)), value.DeepCopy()})
	}
	return apiservercel.Quantity{Quantity: &value}
}
