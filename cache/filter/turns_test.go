package filter

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// slowTurns lets a worker wait for some turns after its first.
type slowTurns struct {
	taken atomic.Int64
	some  int64
	wait  time.Duration
}

func (s *slowTurns) Take(ctx context.Context) (give func(), err error) {
	if n := s.taken.Add(1); n > 1 && n <= 1+s.some {
		select {
		case <-time.After(s.wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {}, nil
}

func (s *slowTurns) Later() bool { return false }

func (s *slowTurns) Pause(context.Context) (resume func()) { return func() {} }

// matchInTurn evaluates on one object as a worker does.
func matchInTurn(t *testing.T, ctx context.Context, turns cache.Turns, text string, object []byte) (matched bool, cost uint64, err error) {
	t.Helper()
	f, err := Compile(text, noon)
	if err != nil {
		t.Fatal(err)
	}
	write := func(dst []byte, _ int) ([]byte, error) { return append(dst, object...), nil }
	err = cache.ReadAs(cache.WithTurns(ctx, turns), make([]*cache.Object, 1), write, func(ctx context.Context, _, _ int, json []byte) (err error) {
		matched, cost, err = f.Match(ctx, json)
		return err
	})
	return matched, cost, err
}

// TestLongEvaluationsYield: what takes long on one object gives way again and again, and is
// neither refused nor charged for the time it waits.
func TestLongEvaluationsYield(t *testing.T) {
	// Neither takes long, even where all is ten times as slow.
	for name, c := range map[string]struct {
		text   string
		object []byte
	}{
		"loops":           {`object.spec.keys.all(k, object.spec.keys.exists(j, j == k))`, wide(70)},
		"expensive calls": {`lists.range(3).all(i, !object.spec.text.matches('(a?){200}b'))`, wide(60)},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			f, err := Compile(c.text, noon)
			if err != nil {
				t.Fatal(err)
			}
			want, plain, err := f.Match(t.Context(), c.object)
			took := time.Since(began)
			if took > MaxTime/8 {
				t.Skipf("it took %v: the machine is too slow for a test of time", took)
			}
			if err != nil {
				t.Fatal(err)
			}
			turns := &slowTurns{some: 5, wait: MaxTime / 4}
			got, cost, err := matchInTurn(t, t.Context(), turns, c.text, c.object)
			if err != nil || got != want {
				t.Errorf("it is %v, %v; want %v", got, err, want)
			}
			t.Logf("%v, %d turns, cost %d and %d", took, turns.taken.Load(), plain, cost)
			if took > 6*time.Millisecond && turns.taken.Load() < 2 {
				t.Errorf("it took %v, in one turn", took)
			}
			if waited := time.Duration(min(turns.some, turns.taken.Load()-1)) * turns.wait; waited > 0 && time.Duration(cost)*unitTime > waited/2 {
				t.Errorf("it costs %d, and %d without waiting for %v", cost, plain, waited)
			}
		})
	}
}

// TestYieldingEnds: who waits for a turn in the midst of an object is gone when nobody wants to
// know any more.
func TestYieldingEnds(t *testing.T) {
	for text, ends := range map[string]bool{
		`object.spec.keys.all(k, object.spec.keys.all(j, object.spec.keys.all(l, l != '')))`: true,
		// It has read most of the text by then, and says what it found.
		`object.spec.text.matches('(a?){400}b')`: false,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		turns := &slowTurns{some: 1, wait: time.Hour}
		_, _, err := matchInTurn(t, ctx, turns, text, wide(300))
		switch {
		case turns.taken.Load() < 2:
			t.Errorf("%s: it never waited: %v", text, err)
		case ends && (err == nil || ctx.Err() == nil):
			t.Errorf("%s: it went on, or ended by itself: %v", text, err)
		}
	}
}
