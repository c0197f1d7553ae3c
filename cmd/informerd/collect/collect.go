// Package collect says how often the process collects garbage. It imports next to nothing, so
// that Go initializes it before Kubernetes' packages, which make 4 MB of what they need for
// as long as the process lives: to collect twice meanwhile would be a tenth of what most
// commands take.
package collect

import (
	"os"
	"runtime/debug"
)

// In percent of what is live, as GOGC.
const (
	rare  = 400
	usual = 100
)

// A command ends within a moment and holds little: to collect as often as a server does takes
// it longer than most of its work.
func init() { set(rare) }

// AsUsual is for a process that stays.
func AsUsual() { set(usual) }

// set says so of this process, unless who started it says otherwise.
func set(percent int) {
	if !told() {
		debug.SetGCPercent(percent)
	}
}

// told reports whether who started the process says how often.
func told() bool {
	_, ok := os.LookupEnv("GOGC")
	return ok
}
