package review

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/fair"
)

const (
	// DefaultTTL is how long an answer counts, yes and no alike. A right that is taken
	// away goes on for that long.
	DefaultTTL = 10 * time.Second
	// reviewTimeout bounds one question.
	reviewTimeout = 5 * time.Second
	// retryAfter is how long a failure to ask is the answer to the same question:
	// whoever asks meanwhile would wait for the same failure.
	retryAfter = time.Second
	// maxReviews bounds the questions to one API server at once. One user has no
	// more of them than they leave free.
	maxReviews = 32
	// maxHeld bounds the answers held of one cluster: with their keys and reasons, some
	// megabytes.
	maxHeld = 1 << 15
	// maxReason bounds the text that is held with an answer.
	maxReason = 1 << 10
)

// Reviewer asks an API server whether somebody may do something, with informerd's own
// credentials. An error is that it did not answer as it should, or refused to.
type Reviewer interface {
	ReviewAccess(ctx context.Context, review *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error)
}

// reviews are the answers of one API server. Who asks the same at once shares an
// answer.
type reviews struct {
	reviewer Reviewer
	ttl      time.Duration
	told     func(error) // hears how each question went
	places   *fair.Places

	mu   sync.Mutex // guards held
	held recent[*answer]
}

// question is all that an answer depends on.
type question struct {
	user string // digest
	// by is who asks about the user, "" for themselves. Two do not share an answer, or one
	// would wait among the questions of the other.
	by string
	access.Attributes
	path string // of no resource, if not ""
}

// key is a digest, since clients choose how long the texts of a question are.
func (q *question) key() access.Key {
	a := &q.Attributes
	return access.KeyOf(q.user, q.by, a.Cluster, a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name,
		a.LabelSelector, a.FieldSelector, q.path)
}

type answer struct {
	known   chan struct{} // closed when the rest is there
	verdict access.Verdict
	err     error
}

// fresh reports whether an answer, or that it is being asked for, serves at a time.
func (a *answer) fresh(now time.Time) bool {
	select {
	case <-a.known:
		return now.Before(a.verdict.Until)
	default:
		return true
	}
}

func (a *answer) weight() int { return 1 }

func newReviews(r Reviewer, ttl time.Duration, told func(error)) *reviews {
	return &reviews{reviewer: r, ttl: ttl, told: told, places: fair.NewPlaces(maxReviews), held: newRecent[*answer](maxHeld)}
}

// ask answers a question about u, whose digest is in it. What cannot be is not asked.
func (v *reviews) ask(ctx context.Context, u user.Info, q question) (access.Verdict, error) {
	q.by = access.WhoAsksAboutOthers(ctx)
	if reason := q.impossible(); reason != "" {
		return access.Verdict{Reason: reason, Until: time.Now().Add(v.ttl)}, nil
	}
	a, mine := v.find(q, time.Now())
	select {
	case <-a.known:
		return a.verdict, a.err
	default:
	}
	defer cache.Pause(ctx)() // it is the API server that is waited for
	if mine {
		v.resolve(ctx, a, u, q)
	}
	select {
	case <-a.known:
		return a.verdict, a.err
	case <-ctx.Done():
		return access.Verdict{}, ctx.Err()
	}
}

// find is the answer to q, which the caller must resolve if it is theirs.
func (v *reviews) find(q question, now time.Time) (a *answer, mine bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := q.key()
	if a, ok := v.held.get(key, now); ok {
		return a, false
	}
	a = &answer{known: make(chan struct{})}
	v.held.put(key, a, now)
	return a, true
}

// resolve asks the API server. Others wait for the answer too, so it does not end with
// the request that it is asked for.
func (v *reviews) resolve(ctx context.Context, a *answer, u user.Info, q question) {
	defer close(a.known)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
	defer cancel()
	start := time.Now()
	if a.verdict, a.err = v.review(ctx, access.OwnerOf(cmp.Or(q.by, u.GetName())), specOf(u, q)); a.err != nil {
		a.verdict = access.Verdict{Until: time.Now().Add(retryAfter)}
		return
	}
	a.verdict.Until = start.Add(v.ttl)
}

func (v *reviews) review(ctx context.Context, owner string, spec authorizationv1.SubjectAccessReviewSpec) (access.Verdict, error) {
	release, err := v.places.Take(ctx, owner, 1, reviewTimeout)
	if err != nil {
		return access.Verdict{}, fmt.Errorf("review access: too many questions wait: %w", err)
	}
	defer release()
	review, err := v.reviewer.ReviewAccess(ctx, &authorizationv1.SubjectAccessReview{Spec: spec})
	if err != nil {
		err = fmt.Errorf("review access: %w", err)
		v.told(err)
		return access.Verdict{}, err
	}
	v.told(nil)
	s := review.Status
	return access.Verdict{Allowed: s.Allowed && !s.Denied, Reason: s.Reason[:min(len(s.Reason), maxReason)]}, nil
}
