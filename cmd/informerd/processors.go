package main

import (
	"os"
	"runtime"
)

// spareProcessors is how many more of Go's processors there are than the machine has.
const spareProcessors = 2

// addProcessors lets Go run more goroutines at once than the machine has processors. Go's
// own scheduler looks at what the network brought only when a processor of its has nothing
// else to do, or every ten milliseconds, and whoever becomes ready then waits behind all who
// were before it: with all processors busy, single objects and events take a hundred
// milliseconds. What may use processors for long is bounded by turns (see server/fair), so
// that with some to spare there is mostly one that waits in epoll, and it is for the kernel
// to share out the real ones.
//
// Where GOMAXPROCS is set, or a control group allows fewer than the machine has, it is left
// alone: more threads would use up a quota sooner, and then all of them stand still.
func addProcessors() {
	if n := runtime.GOMAXPROCS(0); os.Getenv("GOMAXPROCS") == "" && n == runtime.NumCPU() {
		runtime.GOMAXPROCS(n + spareProcessors)
	}
}
