package replica

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reopening opens the connections of a resumeWatch, one after the other.
type reopening struct {
	w       *resumeWatch
	backoff wait.Backoff
	failed  bool // the last connection was good for nothing: wait before the next
	// regular: the last stream came to the end it was asked for. Nothing happened
	// then that could have changed the server's history.
	regular bool
	prove   bool          // the next stream is to bring a bookmark soon
	took    time.Duration // how long the last judgement did
	ended   time.Time     // when the last stream did
	opened  time.Time     // when the present one was
	delay   time.Duration // that the server asked for
	// back is the next return of the server after an absence, as of the last attempt.
	back <-chan struct{}
}

// newReopening is for a watch that begins where a judged copy or a list ended.
func newReopening(w *resumeWatch) *reopening {
	re := &reopening{w: w, regular: true, ended: time.Now(), opened: time.Now(), back: w.src.cluster.nextReturn()}
	re.reset()
	return re
}

// reset starts the pauses anew, after a connection that was good for something.
func (re *reopening) reset() { re.backoff = re.w.src.retry.backoff() }

// returned starts the pauses anew if the server has returned from an absence since the
// last attempt: that attempts failed before says nothing about the next ones.
func (re *reopening) returned() {
	if back := re.w.src.cluster.nextReturn(); back != re.back {
		re.back = back
		re.reset()
	}
}

// open watches again from the last version until it gets a stream. It returns
// nil when the watch is over.
func (re *reopening) open() apiwatch.Interface {
	w, s := re.w, re.w.src
	for re.pause() && s.cluster.awaitReachable(w.ctx) {
		re.returned()
		if !re.regular || s.epoch != s.cluster.configured() {
			if goOn, over := re.judged(); over {
				return nil
			} else if !goOn {
				continue
			}
		}
		live := s.live()
		stream, err := s.openWatch(w.ctx, re.options())
		re.opened = time.Now()
		if err == nil && re.heldUp() {
			goOn, over := re.judged()
			// A stream that was opened for a live copy brings its first bookmark in a
			// minute. If the copy is in doubt by now, a short one tells sooner.
			if doubted := live && !s.live(); !goOn || doubted {
				stream.Stop()
				if over {
					return nil
				}
				continue
			}
		}
		if err == nil {
			s.count.restarts.Add(1)
			s.accepted()
			s.forgetNewest()
			re.regular, re.prove = false, false
			return stream
		}
		if w.ctx.Err() != nil {
			return nil
		}
		if isExpired(err) {
			w.expired()
			return nil
		}
		re.refuse(err)
	}
	return nil
}

// heldUp reports whether a stream that was just opened came long after the history was
// known: the process may have been stopped, or the server slow, while etcd was restored
// and passed the version. From here on a restore would end the stream.
func (re *reopening) heldUp() bool {
	s := re.w.src
	return !s.spec.Aggregated && time.Since(s.known) > lateEnd
}

// refuse notes an attempt that failed.
func (re *reopening) refuse(err error) {
	re.failed, re.regular = true, false
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		re.delay = time.Duration(seconds) * time.Second
	}
	re.w.src.note(err)
}

// judged makes sure that the server that answers now has the history of the copy and
// its bytes. goOn says that the watch may be reopened, over that it has ended.
func (re *reopening) judged() (goOn, over bool) {
	w, s := re.w, re.w.src
	epoch, began := s.cluster.configured(), time.Now()
	j := s.judge(w.ctx, w.version)
	re.took = time.Since(began)
	if w.ctx.Err() != nil {
		return false, true
	}
	switch j.verdict {
	case goneBack, other, lacks:
		s.end(j.err)
		w.cancel()
		return false, true
	case missed, forgotten:
		w.endExpired(j.err.Error())
		return false, true
	case unknown:
		re.refuse(j.err)
		return false, false
	}
	demand, err := s.upgraded(w.ctx, re.ended)
	re.took = time.Since(began)
	if err != nil {
		re.refuse(err)
		return false, false
	}
	if demand != nil {
		s.demand = *demand
		w.endExpired(demand.reason)
		return false, true
	}
	s.epoch, s.known, re.regular = epoch, began, true
	if !s.live() && s.bringsBookmarks() {
		s.askPresent()
	}
	return true, false
}

// options are those of a plain watch from the last version: a short one as long
// as the copy is not known to be current.
func (re *reopening) options() metav1.ListOptions {
	w := re.w
	w.timeout = *w.opts.TimeoutSeconds
	if !w.src.bringsBookmarks() {
		w.timeout = bareTimeout
	}
	if re.prove || !w.src.live() {
		// It may be judged again while it is open, and is to end after that.
		w.timeout = min(w.timeout, provingTimeout+int64(re.took/time.Second))
	}
	opts := metav1.ListOptions{ResourceVersion: w.version, AllowWatchBookmarks: true, TimeoutSeconds: &w.timeout}
	w.src.selectors(&opts)
	return opts
}

// pause waits between attempts. The first one after a regular end is immediate. It
// reports false when the watch is over.
func (re *reopening) pause() bool {
	if !re.failed {
		return re.w.ctx.Err() == nil
	}
	re.failed = false
	d := max(re.backoff.Step(), min(re.delay, re.w.src.retry.last))
	re.delay = 0
	return re.w.src.cluster.pause(re.w.ctx, d)
}
