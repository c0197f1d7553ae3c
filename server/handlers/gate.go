package handlers

import "time"

// gate holds up the deliveries of a handler whose sink is to blame, not one of its keys: it
// cannot be reached, asked for patience, or refused one key after the other. One delivery at
// a time then tries whether it is back. Guarded by the lock of the handler.
type gate struct {
	failures int // in a row, since something was delivered
	refused  map[*entry]struct{}
	until    time.Time
	reason   string
	probing  bool
}

const (
	// refusedInRow: after so many different keys were refused in a row, and none taken, the
	// sink is to blame.
	refusedInRow = 5
	gateBase     = time.Second
	gateMax      = time.Minute
	// refusedMax is the longest wait for a sink that answers: keys that it would take wait for it.
	refusedMax = 5 * time.Second
)

// closed reports whether deliveries wait, and for how long.
func (g *gate) closed(now time.Time) (bool, time.Duration) {
	switch {
	case g.reason == "":
		return false, 0
	case g.probing:
		return true, gateMax
	case now.Before(g.until):
		return true, g.until.Sub(now)
	}
	return false, 0
}

// pass notes that a delivery is taken through.
func (g *gate) pass() {
	if g.reason != "" {
		g.probing = true
	}
}

func (g *gate) open() { *g = gate{} }

// down closes the gate for longer each time that a try fails. Deliveries that were under way
// together when the sink went away are one failure, however many there were.
func (g *gate) down(now time.Time, reason string, most time.Duration) {
	if g.reason != "" && !g.probing && now.Before(g.until) {
		g.reason = reason
		return
	}
	wait := min(most, gateBase<<min(g.failures, 10))
	g.failures++
	g.until, g.reason, g.probing = now.Add(wait), reason, false
}

// busy closes the gate for as long as the sink asked.
func (g *gate) busy(now time.Time, after time.Duration, reason string) {
	g.until, g.reason, g.probing = now.Add(after), reason, false
}

// refuse counts a key that the sink refused. It may be the key that is to blame, however many
// were refused before it: it loses an attempt in any case, or keys that are never taken were
// tried for ever.
func (g *gate) refuse(now time.Time, e *entry, reason string) {
	if g.reason != "" {
		g.down(now, reason, refusedMax)
		return
	}
	if g.refused == nil {
		g.refused = map[*entry]struct{}{}
	}
	g.refused[e] = struct{}{}
	if len(g.refused) >= refusedInRow {
		g.down(now, reason, refusedMax)
	}
}
