package hostile

import (
	"maps"
	"sync"
)

// Tally is what came of the attacks: how often, by attack and outcome.
type Tally map[string]map[string]int

func (t Tally) add(attack, outcome string, n int) {
	if t[attack] == nil {
		t[attack] = map[string]int{}
	}
	t[attack][outcome] += n
}

// Since is what has come of them since an earlier tally.
func (t Tally) Since(before Tally) Tally {
	since := Tally{}
	for attack, outcomes := range t {
		for o, n := range outcomes {
			if n -= before[attack][o]; n != 0 {
				since.add(attack, o, n)
			}
		}
	}
	return since
}

// Unexpected is the part of it that no server may do.
func (t Tally) Unexpected() Tally {
	bad := Tally{}
	for attack, outcomes := range t {
		for o, n := range outcomes {
			if !Expected(attack, o) {
				bad.add(attack, o, n)
			}
		}
	}
	return bad
}

// Of is how often there was an outcome, of all attacks.
func (t Tally) Of(outcome string) int {
	n := 0
	for _, outcomes := range t {
		n += outcomes[outcome]
	}
	return n
}

// tally counts. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts Tally // guarded by mu
}

func newTally() *tally { return &tally{counts: Tally{}} }

func (t *tally) count(attack string, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.add(attack, string(o), 1)
}

func (t *tally) all() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := Tally{}
	for attack, outcomes := range t.counts {
		all[attack] = maps.Clone(outcomes)
	}
	return all
}
