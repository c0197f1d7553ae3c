package filter

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// countedList counts how often it is looked through.
type countedList struct {
	traits.Lister
	looks *int
}

func (l *countedList) Iterator() traits.Iterator {
	*l.looks++
	return l.Lister.Iterator()
}

// TestWeighedOnce: a list that holds itself many times over weighs as much as all of it, and is
// not looked through as often as it occurs.
func TestWeighedOnce(t *testing.T) {
	looks := 0
	list := func(values ...ref.Val) ref.Val {
		return &countedList{types.DefaultTypeAdapter.NativeToValue(values).(traits.Lister), &looks}
	}
	doubled := func(times int) ref.Val {
		v := list(types.Int(1)) // weighs 2; and then each time twice that, and 1
		for range times {
			v = list(v, v)
		}
		return v
	}
	for times, want := range map[int]uint64{0: 2, 1: 5, 3: 23, 18: 3<<18 - 1} {
		if got := weight(doubled(times)); got != want {
			t.Errorf("doubled %d times it weighs %d, want %d", times, got, want)
		}
	}
	looks = 0
	if got := weight(doubled(200)); got < beyond || got > 2*beyond {
		t.Errorf("doubled 200 times it weighs %d", got)
	}
	if looks > 2*muchWeighed {
		t.Errorf("its lists were looked through %d times", looks)
	}
}
