package cache

// For tests of packages that import this one.
var (
	FilledStore   = filledStore
	BenchPods     = benchPods
	RealPod       = realPod
	PodSpec       = podSpec
	CheckContents = checkContents
)

// ForgetScopes makes s forget what it keeps of scopes.
func ForgetScopes(s *Store) { s.contents.seen.sets = nil }
