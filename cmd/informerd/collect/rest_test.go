package collect

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// TestRestDue: memory is given back once there is enough of it and nothing has happened for a
// while, and then not before a longer one has passed.
func TestRestDue(t *testing.T) {
	const mb = 1 << 20
	for _, test := range []struct {
		name string
		each uint64 // bytes allocated in each of a hundred seconds
		u    usage
		want int // how often
	}{
		{"quiet", 0, usage{live: 100 * mb, free: 40 * mb}, 3},
		{"hardly anything", 3 * mb, usage{live: 100 * mb, garbage: 20 * mb, free: 20 * mb}, 3},
		{"little is free", 0, usage{live: 100 * mb, free: 31 * mb}, 0},
		{"little of much is free", 0, usage{live: 1600 * mb, free: 99 * mb}, 0},
		{"much of much is free", 0, usage{live: 1600 * mb, free: 100 * mb}, 3},
		{"busy", 50 * mb, usage{live: 100 * mb, garbage: 100 * mb, free: 100 * mb}, 0},
	} {
		var r rest
		now, got := time.Unix(1, 0), 0
		for range 100 {
			if r.due(now, test.u) {
				got++
			}
			now = now.Add(time.Second)
			test.u.allocated += test.each
		}
		if got != test.want {
			t.Errorf("%s: due %d times, want %d", test.name, got, test.want)
		}
	}
}

// TestRestAfterWork: a process is at rest only so long after it has worked.
func TestRestAfterWork(t *testing.T) {
	var r rest
	now, u := time.Unix(1, 0), usage{free: 1 << 30}
	for second := range 60 {
		if second == 9 || second == 17 {
			u.allocated += 1 << 30
		}
		if due := r.due(now, u); due != (second == 27 || second == 57) {
			t.Errorf("after %d s: %v", second, due)
		}
		now = now.Add(time.Second)
	}
}

// TestGivenBack: what is free goes back to the system at once, garbage included.
func TestGivenBack(t *testing.T) {
	const bytes = 128 << 20
	work := make([]byte, bytes)
	for i := range work {
		work[i] = 1
	}
	giveBack() // all but this
	before := released()
	runtime.KeepAlive(work)
	work = nil
	giveBack()
	if now := released(); now < before+bytes/2 {
		t.Fatalf("%d MB were given back before, %d now", before>>20, now>>20)
	}
}

func released() uint64 {
	said := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(said)
	return said[0].Value.Uint64()
}
