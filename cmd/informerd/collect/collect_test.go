package collect

import (
	"os"
	"runtime/debug"
	"testing"
)

func percent() int {
	was := debug.SetGCPercent(usual)
	debug.SetGCPercent(was)
	return was
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
