package discovery

import (
	"context"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// looker is the goroutine of a Discoverer that looks, judges and reports.
type looker struct {
	*Discoverer
	fetcher *fetcher
	members *members

	last      facts // of the last judgement
	judged    bool
	verdict   verdict
	pending   bool // an answer has changed since
	faults    int  // looks that failed in a row
	lags      int  // looks in a row after which discovery still lagged
	versionAt time.Time
	since     time.Time // of the first answer
}

func (l *looker) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.trigger:
			if !l.debounce(ctx) {
				return
			}
			l.lags = 0
		}
		pause := l.look(ctx)
		if ctx.Err() != nil {
			return
		}
		timer.Reset(pause)
	}
}

// debounce collects triggers for a while. It is not prolonged by them, so that
// steady change cannot put off a look.
func (l *looker) debounce(ctx context.Context) bool {
	timer := time.NewTimer(l.opts.Debounce)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	select {
	case <-l.trigger:
	default:
	}
	return true
}

// look asks, judges and reports once, and says when to look again.
func (l *looker) look(ctx context.Context) time.Duration {
	l.counters.looks.Add(1)
	ans, changed, err := l.fetcher.fetch(ctx)
	if l.fetcher.legacy {
		l.counters.legacy.Add(1)
	}
	if err == nil && !changed {
		l.counters.notModified.Add(1)
	}
	version := l.last.serverVersion
	l.pending = l.pending || changed
	if err == nil && (changed || l.faults > 0 || time.Since(l.versionAt) >= versionInterval) {
		version, err = l.askVersion(ctx)
	}
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		return l.failed(err)
	}
	l.succeeded()
	if !l.judged && !l.awaitTables(ctx) {
		return 0
	}
	f := facts{
		answer:        ans,
		crds:          l.crds.current(),
		services:      l.services.current(),
		pins:          l.currentPins(),
		serverVersion: version,
		now:           time.Now(),
		since:         l.since,
	}
	others, err := l.survey(ctx, f)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		return l.failed(err)
	}
	f.mixed = l.members.mixed
	if l.pending || l.differs(f) {
		l.judge(f)
	}
	for _, f.answer = range others {
		l.judge(f)
	}
	return l.pause()
}

// survey asks all servers where the one that answered may not speak for the
// others: at the start, after it said something new of itself, and before anything
// is given up because of it.
func (l *looker) survey(ctx context.Context, f facts) ([]answer, error) {
	if l.judged && !l.members.mixed && f.serverVersion == l.last.serverVersion && len(l.verdict.absentSince) == 0 {
		return nil, nil
	}
	return l.members.survey(ctx, f.answer, l.doubted(), l.fetcher.legacy)
}

// doubted are the resources about which all servers are asked: those that an answer
// lacked and, while servers differ, all that are built into them. Of custom
// resources their definitions tell.
func (l *looker) doubted() (all []schema.GroupResource) {
	set, _ := l.Current()
	for _, r := range set.Resources {
		_, absent := l.verdict.absentSince[r.GroupResource()]
		if r.CRDUID == "" && (absent || l.members.mixed && !r.Aggregated) {
			all = append(all, r.GroupResource())
		}
	}
	return all
}

// askVersion keeps the last version where the server does not tell, unless
// there is none and it may yet tell.
func (l *looker) askVersion(ctx context.Context) (string, error) {
	version, err := l.client.serverVersion(ctx)
	if err != nil {
		if l.last.serverVersion == "" && versionNeeded(err) {
			return "", err
		}
		version = l.last.serverVersion
	}
	l.versionAt = time.Now()
	return version, nil
}

// failed notes that there was no answer. Nothing else changes.
func (l *looker) failed(err error) time.Duration {
	l.counters.failures.Add(1)
	l.faults++
	if old := l.setErr(err); old == nil {
		l.opts.Log.Warn("discovery failed, keeping what is known", "err", err)
	}
	return jitter(backoff(retryFirst, l.opts.PollInterval, l.faults))
}

func (l *looker) succeeded() {
	if l.since.IsZero() {
		l.since = time.Now()
	}
	l.faults = 0
	if old := l.setErr(nil); old != nil {
		l.opts.Log.Info("discovery is back")
		l.crds.retryNow()
		l.services.retryNow()
	}
}

// awaitTables waits for the CRDs and APIServices before the first Set: without
// them custom resources would look as if their CRD had changed. It returns
// false if ctx ended.
func (l *looker) awaitTables(ctx context.Context) bool {
	timer := time.NewTimer(tablesWait)
	defer timer.Stop()
	for _, answered := range []chan struct{}{l.crds.answered, l.services.answered} {
		select {
		case <-ctx.Done():
			return false
		case <-answered:
		case <-timer.C:
			l.opts.Log.Warn("going on without CRDs and APIServices")
			return true
		}
	}
	return true
}

// differs tells whether judging f may give another verdict than last time.
func (l *looker) differs(f facts) bool {
	return !l.judged || f.mixed != l.last.mixed || len(l.verdict.absentSince) > 0 || l.verdict.set.Provisional ||
		f.crds.revision != l.last.crds.revision || f.services.revision != l.last.services.revision ||
		f.serverVersion != l.last.serverVersion || !maps.Equal(f.pins, l.last.pins)
}

func (l *looker) judge(f facts) {
	before, has := l.Current()
	f.prev, f.absentSince, f.prevPins = before, l.verdict.absentSince, l.last.pins
	v := judge(f)
	l.noteUnmetPins(v.unmetPins)
	l.last, l.verdict, l.judged = f, v, true
	l.pending = false
	l.last.answer, l.last.prev = answer{}, Set{} // not needed again
	if has && v.set.Equal(before) {
		return
	}
	l.note(before, v.set)
	l.setSet(v.set)
	l.opts.OnChange(v.set)
}

// pause is the time until the next look.
func (l *looker) pause() time.Duration {
	poll := l.opts.PollInterval
	if l.fetcher.legacy && !l.members.mixed {
		poll *= legacyPollFactor
	}
	if !l.verdict.lagging {
		l.lags = 0
		return poll
	}
	l.lags++
	return backoff(lagFirst, poll, l.lags)
}

func (l *looker) noteUnmetPins(unmet map[schema.GroupResource]string) {
	for gr, version := range unmet {
		if l.verdict.unmetPins[gr] != version {
			l.opts.Log.Warn("pinned version is not served, watching the preferred one", "gvr", gr.WithVersion(version))
		}
	}
}

// note logs what a new Set changes.
func (l *looker) note(before, after Set) {
	log := l.opts.Log
	for gv, err := range after.Failed {
		if before.Failed[gv] == nil {
			log.Warn("group version does not answer, keeping its resources", "gv", gv, "err", err)
		}
	}
	for gv := range before.Failed {
		if after.Failed[gv] == nil {
			log.Info("group version is no longer failed", "gv", gv)
		}
	}
	added, changed, gone := 0, 0, 0
	for _, r := range after.Resources {
		old, ok := before.Get(r.GroupResource())
		switch {
		case !ok:
			added++
		case !reflect.DeepEqual(old, r):
			changed++
		}
	}
	for _, r := range before.Resources {
		if _, ok := after.Get(r.GroupResource()); !ok {
			gone++
		}
	}
	log.Info("resources discovered", "resources", len(after.Resources), "added", added, "changed", changed, "gone", gone,
		"failed", len(after.Failed), "server", after.ServerVersion)
}
