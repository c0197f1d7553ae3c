package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// counted are Turns of which no more than some are out at once.
type counted struct {
	mu               sync.Mutex
	out, most, taken int
	paused           int
	later            bool
	refuse           error // after that many
	after            int
}

func (c *counted) Take(context.Context) (func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil && c.taken >= c.after {
		return nil, c.refuse
	}
	c.taken++
	c.out++
	c.most = max(c.most, c.out)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.out--
	}, nil
}

func (c *counted) Later() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.later
}

func (c *counted) Pause(context.Context) (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paused--
	}
}

// TestReadTakesTurns: whoever reads much holds a turn while it does, gives it back, and
// ends where it gets none.
func TestReadTakesTurns(t *testing.T) {
	store, err := NewStore(podSpec(), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var objects []*Object
	for i := range 1000 {
		o, err := store.Decode(fmt.Appendf(nil, `{"metadata":{"name":"p%d","namespace":"a","uid":"%d","resourceVersion":"%d"}}`, i, i, i+1), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	turns := &counted{}
	visited := make([]bool, len(objects))
	err = Read(WithTurns(t.Context(), turns), objects, func(_ context.Context, _, i int, _ []byte) error {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		if turns.out == 0 || turns.paused != 1 {
			t.Errorf("an object is read with %d turns, and %d pauses of who has it read", turns.out, turns.paused)
		}
		visited[i] = true
		return nil
	})
	if err != nil || turns.out != 0 || turns.paused != 0 || turns.taken == 0 || turns.most > Workers() {
		t.Errorf("Read() = %v; %d turns taken, %d at once, %d still out", err, turns.taken, turns.most, turns.out)
	}
	for i, ok := range visited {
		if !ok {
			t.Fatalf("object %d was not read", i)
		}
	}
	turns = &counted{refuse: errors.New("over")}
	if err := Read(WithTurns(t.Context(), turns), objects, func(context.Context, int, int, []byte) error { return nil }); !errors.Is(err, turns.refuse) {
		t.Errorf("Read() = %v, want %v", err, turns.refuse)
	}
}
