package cache

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	inHalvesFrom = 100 // many tests have more objects, and many fewer
	goleak.VerifyTestMain(m)
}
