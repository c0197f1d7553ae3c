//go:build race

package replica

const raceDetector = true
