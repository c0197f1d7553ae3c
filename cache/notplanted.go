//go:build !planted

package cache

// planting is false in every program but those that test/soak builds to see
// whether it finds bugs.
const planting = false

func (*Store) plantedLocked(EventType, *Object) bool { return false }
