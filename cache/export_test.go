package cache

// For tests of packages that import this one.
var (
	FilledStore = filledStore
	RealPod     = realPod
	PodSpec     = podSpec
)
