package collect

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// TestBoundLull: whoever calls Bound has garbage collected early.
func TestBoundLull(t *testing.T) {
	if _, told := os.LookupEnv("GOGC"); told {
		t.Skip("GOGC is set")
	}
	collected := make(chan struct{}, 1)
	defer func(f func()) { collectNow = f }(collectNow)
	collectNow = func() {
		select {
		case collected <- struct{}{}:
		default:
		}
	}
	held := make([]byte, lullFrom+1<<20)
	runtime.GC() // it is live
	defer Bound()()
	garbage := make([]byte, lullFrom/2+1<<20)
	runtime.KeepAlive(garbage)
	select {
	case <-collected:
	case <-time.After(time.Minute):
		t.Error("nothing is collected")
	}
	runtime.KeepAlive(held)
}

// TestLullDue: garbage is collected early where much is live, hardly anything was allocated for
// two looks, and there is half as much garbage as may be; not while something goes on.
func TestLullDue(t *testing.T) {
	const mb, kb = 1 << 20, 1 << 10
	for _, test := range []struct {
		name string
		each uint64 // bytes allocated between two looks
		u    usage
		at   int // the look at which it is due first; 0: at none
	}{
		{"quiet", 0, usage{live: 1000 * mb, garbage: 101 * mb}, 3},
		{"hardly anything", 500 * kb, usage{live: 1000 * mb, garbage: 101 * mb}, 3},
		{"busy", 512 * kb, usage{live: 1000 * mb, garbage: 190 * mb}, 0},
		{"little garbage", 0, usage{live: 1000 * mb, garbage: 99 * mb}, 0},
		{"little is live", 0, usage{live: 255 * mb, garbage: 200 * mb}, 0},
	} {
		var l lull
		at := 0
		test.u.allocated = 1
		for look := 1; look <= 10 && at == 0; look++ {
			if l.due(test.u, 20) {
				at = look
			}
			test.u.allocated += test.each
		}
		if at != test.at {
			t.Errorf("%s: due at look %d, want %d", test.name, at, test.at)
		}
	}
}

// TestLullAfterWork: a lull begins anew after every work.
func TestLullAfterWork(t *testing.T) {
	var l lull
	u := usage{allocated: 1, live: 1 << 30, garbage: 1 << 29}
	for look := 1; look <= 8; look++ {
		if look == 3 || look == 5 {
			u.allocated += 1 << 20
		}
		if due := l.due(u, 20); due != (look >= 7) {
			t.Errorf("look %d: %v", look, due)
		}
	}
}
