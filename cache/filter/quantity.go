package filter

import (
	"hash/maphash"
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

// maxQuantityText is the length of the longest text that is remembered.
const maxQuantityText = 64

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
	value, err := resource.ParseQuantity(string(text))
	if err != nil {
		return types.WrapErr(err)
	}
	if len(text) <= maxQuantityText {
		place.Store(&readQuantity{strings.Clone(string(text)), value.DeepCopy()})
	}
	return apiservercel.Quantity{Quantity: &value}
}
