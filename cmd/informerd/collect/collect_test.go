package collect

import (
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func percent() int {
	said := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(said)
	return int(said[0].Value.Uint64())
}

func TestCollect(t *testing.T) {
	if _, told := os.LookupEnv("GOGC"); told {
		t.Skip("GOGC is set")
	}
	if got := percent(); got != rare {
		t.Errorf("while packages are initialized: %d", got)
	}
	if AsUsual(); percent() != usual {
		t.Errorf("as usual: %d", percent())
	}
	t.Setenv("GOGC", "50")
	if set(rare); percent() != usual {
		t.Errorf("against GOGC: %d", percent())
	}
}

func TestPercentOf(t *testing.T) {
	const mb = 1 << 20
	for live, want := range map[uint64]int{0: 100, 64 * mb: 100, 160 * mb: 100, 224 * mb: 100, 512 * mb: 40, 640 * mb: 35, 1024 * mb: 20, 1 << 40: 20} {
		if got := percentOf(live, false); got != want {
			t.Errorf("%d MB live: %d %%, want %d", live/mb, got, want)
		}
	}
	for live, want := range map[uint64]int{0: 100, 56 * mb: 100, 160 * mb: 35, 512 * mb: 10, 1024 * mb: 5, 1 << 40: 5} {
		if got := percentOf(live, true); got != want {
			t.Errorf("%d MB live, where it is tight: %d %%, want %d", live/mb, got, want)
		}
	}
}

// TestBound: with much live, less garbage may lie about, until it is gone or nobody looks.
func TestBound(t *testing.T) {
	if _, told := os.LookupEnv("GOGC"); told {
		t.Skip("GOGC is set")
	}
	defer func(d time.Duration) { tightFor = d; loosened.Store(0) }(tightFor)
	tightFor = lookInterval
	AsUsual()
	stop := Bound()
	held := make([]byte, 2*headroom)
	awaitPercent(t, func(p int) bool { return p <= 50 })
	loosen, other := Tighten(), Tighten()
	awaitPercent(t, func(p int) bool { return p <= 15 })
	loosen()
	loosen() // which the other one must not notice
	time.Sleep(3 * lookInterval)
	if p := percent(); p > 15 {
		t.Errorf("%d %% while another asks for less", p)
	}
	other()
	awaitPercent(t, func(p int) bool { return p > 15 && p <= 50 })
	runtime.KeepAlive(held)
	held = nil
	awaitPercent(t, func(p int) bool { return p == usual })
	stop()
}

// TestExpect: where much is about to be live nothing is collected until it is, and then as
// usual.
func TestExpect(t *testing.T) {
	if _, told := os.LookupEnv("GOGC"); told {
		t.Skip("GOGC is set")
	}
	AsUsual()
	stop := Bound()
	defer stop()
	runtime.GC()
	Expect(64 << 20)
	for deadline := time.Now().Add(time.Minute); percent() <= 2*usual; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d %%", percent())
		}
	}
	time.Sleep(3 * lookInterval)
	if p := percent(); p <= 2*usual {
		t.Errorf("%d %% a moment later, when nothing has come yet", p)
	}
	held := make([]byte, 64<<20)
	awaitPercent(t, func(p int) bool { return p == usual })
	runtime.KeepAlive(held)
}

// TestPercentUntil: however much is live, the next collection is due at the goal.
func TestPercentUntil(t *testing.T) {
	const mb = 1 << 20
	for _, test := range []struct{ live, goal, want uint64 }{
		{0, 64 * mb, 1600}, {1 * mb, 64 * mb, 1575}, {8 * mb, 600 * mb, 7400}, {200 * mb, 600 * mb, 200}, {599 * mb, 600 * mb, 0}, {700 * mb, 600 * mb, 0}, {5 * mb, 0, 0},
	} {
		if got := percentUntil(test.live, test.goal); got != int(test.want) {
			t.Errorf("%d MB live, %d expected: %d %%, want %d", test.live/mb, test.goal/mb, got, test.want)
		}
	}
}

func awaitPercent(t *testing.T, good func(int) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !good(percent()); time.Sleep(lookInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("%d %%", percent())
		}
		runtime.GC()
	}
}
