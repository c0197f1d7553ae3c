package cache

// gap is a part of a resource's history that a Store went over in one step: a list
// told it what is different at its end, and nobody told it what was between. What the
// objects were within is not known: no answer is as of a version within, and a
// reader that was told of one, by another process or in the middle of the difference,
// cannot go on from there, since it may know of an object that came and went within.
type gap struct{ from, to string }

// maxGaps bounds those that are remembered.
const maxGaps = 64

// gaps are those of a Store, the oldest first. Guarded by its lock.
type gaps struct {
	all []gap
	// floor is the end of the last one that was forgotten: of what is before it
	// nothing is known.
	floor string
}

func (g *gaps) add(from, to string) {
	if from == "" || !Newer(to, from) {
		return
	}
	if len(g.all) == maxGaps {
		g.floor = g.all[0].to
		g.all = g.all[1:]
	}
	g.all = append(g.all, gap{from, to})
}

// within reports whether a version is inside of a gap.
func (g *gaps) within(version string) bool {
	if Older(version, g.floor) {
		return true
	}
	for _, each := range g.all {
		if Newer(version, each.from) && Older(version, each.to) {
			return true
		}
	}
	return false
}
