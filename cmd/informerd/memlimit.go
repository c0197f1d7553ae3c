package main

import (
	"errors"
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is how much of what its control group allows the process takes for Go's
// memory. The rest is for what Go's runtime does not count.
const memoryShare = 0.9

// limitMemory makes Go's runtime, and the server with it, know how much memory there is:
// GOMEMLIMIT, or what the control group of the process allows.
func limitMemory(allowed memlimit.Provider, log *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(memoryShare), memlimit.WithProvider(allowed))
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
	case err != nil:
		log.Warn("the memory limit is not known, set GOMEMLIMIT", "err", err)
	case limit != math.MaxInt64:
		log.Info("memory is limited", "bytes", limit)
	}
}
