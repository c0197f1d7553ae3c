package audit

import (
	"context"
	"errors"
	"time"
)

const (
	// tellEvery is how often it is looked at whether records are missing.
	tellEvery = time.Second
	// quietFor is how long all must go well until an outage is over. One that comes and
	// goes is told once.
	quietFor = 10 * time.Second
	// hangsAfter is how long one write may take.
	hangsAfter = 5 * time.Second
)

var (
	errHangs = errors.New("what is written to does not take anything")
	// errSlow is why records are dropped though every write goes well.
	errSlow = errors.New("requests come faster than their records are written")
)

// outage tells the log when records begin to be missing, and when they do not any more.
// It is looked at beside the writing, which may hang.
type outage struct {
	log     *Log
	seen    uint64    // dropped by the last look
	before  uint64    // dropped before it began
	last    time.Time // something was wrong; zero: there is no outage
	trouble string
}

// tell looks until ctx ends.
func (l *Log) tell(ctx context.Context) *outage {
	o := &outage{log: l}
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return o
		case now := <-tick.C:
			o.look(now)
		}
	}
}

func (o *outage) look(now time.Time) {
	_, dropped := o.log.Counts()
	err := o.log.trouble(now)
	missing := dropped - o.seen
	o.seen = dropped
	if err == nil && missing > 0 {
		err = o.log.lastCause()
	}
	log, path := o.log.options.Log, o.log.options.File
	switch {
	case err != nil && o.last.IsZero():
		o.last, o.before = now, dropped-missing
		log.Error("audit log is not written as it should be, records may be missing", "path", path, "dropped", missing, "err", err)
	case err != nil:
		o.last = now
	case !o.last.IsZero() && now.Sub(o.last) >= quietFor:
		o.last = time.Time{}
		log.Info("audit log is written again", "path", path, "dropped", dropped-o.before)
	}
}
