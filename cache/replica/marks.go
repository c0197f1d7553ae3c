package replica

import (
	"sort"
	"time"

	"github.com/informerd/informerd/cache"
)

// marksKept is how many versions of a cluster are remembered with the time at which
// they were the newest: an hour's worth.
const marksKept = 1024

// marks remember at which moments a cluster's etcd was no further than which version. A
// bookmark has no time: one that was long on its way, or comes from a server that
// lags or has stalled, says that its watch was complete at a version, and these say
// when that was all there was. Guarded by the cluster's lock.
type marks struct {
	all      []mark
	answered time.Time // when the last one was
}

type mark struct {
	version string
	at      time.Time
}

// note enters that a consistent read that was asked at a moment answered with
// version: nothing newer existed then. It reports false, and enters nothing, if an
// earlier read had a higher version, which cannot be in one history.
func (m *marks) note(version string, asked, answered time.Time) bool {
	if n := len(m.all); n > 0 {
		last := &m.all[n-1]
		switch {
		case cache.Older(version, last.version):
			return !asked.After(m.answered) // the two may have been under way at once
		case !cache.Newer(version, last.version):
			if asked.After(last.at) {
				last.at = asked
			}
			m.answered = answered
			return true
		}
	}
	if len(m.all) == marksKept {
		m.all = append(m.all[:0], m.all[marksKept/2:]...)
	}
	m.all, m.answered = append(m.all, mark{version, asked}), answered
	return true
}

// proven is the last moment at which a copy that is complete up to version is known to
// have lacked nothing; zero for none.
func (m *marks) proven(version string) time.Time {
	i := sort.Search(len(m.all), func(i int) bool { return cache.Newer(m.all[i].version, version) })
	if i == 0 {
		return time.Time{}
	}
	return m.all[i-1].at
}

// highest is the highest version known, "" for none.
func (m *marks) highest() string {
	if len(m.all) == 0 {
		return ""
	}
	return m.all[len(m.all)-1].version
}
