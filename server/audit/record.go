package audit

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Record is what is noted about one request while it is answered. It belongs to the
// goroutine of the request; all its methods may be called of nil, which notes nothing.
type Record struct {
	log      *Log
	event    Event
	received time.Time
	streams  bool
	ended    bool
}

type contextKey struct{}

// With is ctx with the record of its request.
func With(ctx context.Context, r *Record) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, r)
}

// From is the record of the request that ctx is of; nil if none is made.
func From(ctx context.Context) *Record {
	r, _ := ctx.Value(contextKey{}).(*Record)
	return r
}

// ID tells the request from others, here and in the answer; "" of nil.
func (r *Record) ID() string {
	if r == nil {
		return ""
	}
	return r.event.AuditID
}

// By notes who asks.
func (r *Record) By(who User) {
	if r != nil {
		r.event.User = who.bounded()
	}
}

// As notes whom they ask to be, whether they may or not.
func (r *Record) As(who User) {
	if r != nil {
		r.event.ImpersonatedUser = who.bounded()
	}
}

// About notes what is asked about in which cluster, with a verb of Kubernetes.
func (r *Record) About(verb, cluster string, o Object) {
	if r == nil {
		return
	}
	r.event.Verb, r.event.Cluster = verb, cluster
	if o != (Object{}) {
		r.event.ObjectRef = o.bounded()
	}
}

// AboutMany notes that a question is about many resources; cluster is "" if they are of
// several.
func (r *Record) AboutMany(verb, cluster string, resources []string) {
	if r == nil {
		return
	}
	r.event.Verb, r.event.Cluster = verb, cluster
	r.event.Resources = boundedList(resources, maxKinds)
}

// Returned adds to the objects that are answered with.
func (r *Record) Returned(n int) {
	if r == nil {
		return
	}
	if r.event.Objects == nil {
		r.event.Objects = new(int64)
	}
	*r.event.Objects += int64(n)
}

// Streams notes that the answer goes on for as long as its client likes.
func (r *Record) Streams() {
	if r != nil {
		r.streams = true
	}
}

// Begin is told when an answer begins. That of a stream is written then.
func (r *Record) Begin(code int) {
	if r == nil || !r.streams || code >= http.StatusMultipleChoices {
		return
	}
	started := r.event
	started.Objects = nil
	r.put(&started, Started, code)
}

// End is told when the request has ended, once.
func (r *Record) End(code int, bytes int64, cut bool) {
	if r == nil || r.ended {
		return
	}
	r.ended = true
	r.event.Bytes, r.event.Cut = bytes, cut
	if code >= http.StatusMultipleChoices || r.event.Method == http.MethodHead {
		r.event.Objects = nil // they were not sent after all
	}
	r.put(&r.event, Complete, code)
}

func (r *Record) put(e *Event, stage Stage, code int) {
	now := time.Now()
	e.Stage, e.StageTimestamp, e.ResponseStatus.Code = stage, moment(now), code
	e.Duration = now.Sub(r.received).Round(time.Microsecond).Seconds()
	if e.Verb == "" { // of what is no resource it is the method
		e.Verb = strings.ToLower(e.Method)
	}
	r.log.put(e)
}
