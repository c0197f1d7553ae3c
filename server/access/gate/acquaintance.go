package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/authn"
)

// recheck is how long what a request showed counts without being looked at again. The
// API server's word on a token is kept elsewhere, and not looked at for longer.
const recheck = time.Second

// acquaintance is what one cluster knows of who makes one request, and what they were
// told, so that it can be seen when that would be told in another way.
type acquaintance struct {
	asker   *asker
	cluster string
	turn    chan struct{} // holds one: whoever has it may use all below

	maker  user.Info // who makes the request, whoever they want to be; nil: not known
	id     user.Info // of whom the request is made as
	digest string    // of id
	means  authn.Means
	err    error     // instead of id
	until  time.Time // that id or err counts
	moment *moment   // that what is asked about id is answered as of

	mark  string // when told was complete
	told  map[question]told
	next  time.Time // that one of told is over
	count uint64    // of the times that something was told in another way
}

// question is what an answer was about.
type question struct {
	verb       cache.Verb
	resource   schema.GroupResource
	attributes access.Attributes
	path       string
}

// told is an answer, and until when it counts.
type told struct {
	digest string
	until  time.Time
}

func toldOf(v access.Verdict) told { return told{fmt.Sprint(v.Allowed), v.Until} }

func newAcquaintance(a *asker, cluster string) *acquaintance {
	return &acquaintance{asker: a, cluster: cluster, turn: make(chan struct{}, 1), told: map[question]told{}}
}

// lock waits for the turn, for as long as ctx lasts: whoever has it may be waiting for
// an API server.
func (k *acquaintance) lock(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	default:
	}
	defer cache.Pause(ctx)()
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *acquaintance) unlock() { <-k.turn }

// user is who asks. The caller has the turn.
func (k *acquaintance) user(ctx context.Context, now time.Time) (user.Info, error) {
	if now.Before(k.until) {
		return k.id, k.err
	}
	id, means, err := k.identify(ctx)
	if ctx.Err() != nil { // not an answer about who asks
		return nil, ctx.Err()
	}
	k.id, k.means, k.err, k.until, k.digest, k.moment = id, means, err, now.Add(recheck), "", nil
	if err == nil {
		k.digest = access.Digest(id)
	}
	return id, err
}

// markOf is another one when who asks is, or what they may.
func markOf(ctx context.Context, c *Cluster, u user.Info, digest string) string {
	return digest + c.Authorizer.Mark(ctx, u)
}

// identify is who the cluster says that asks, or whom they want to be if they may. A
// cluster that the request is not about is not shown what it carries, so it knows nobody:
// a token is for those alone whose cluster is named.
func (k *acquaintance) identify(ctx context.Context) (user.Info, authn.Means, error) {
	c := k.asker.gate.Cluster(k.cluster)
	if c != nil && k.asker.fixed != nil {
		return k.asker.fixed, authn.ByNothing, nil
	}
	if c == nil || !slices.Contains(k.asker.about, k.cluster) {
		return nil, "", authn.ErrNobody
	}
	resume := cache.Pause(ctx) // the API server may be asked
	id, err := c.Authenticator.Authenticate(ctx, k.asker.shown)
	resume()
	if err != nil {
		return nil, "", err
	}
	k.maker = id.Info
	switch {
	case k.asker.bad != nil:
		return nil, "", k.asker.bad
	case k.asker.wanted == nil:
		return id.Info, id.By, nil
	}
	judge := func(ctx context.Context, a access.Attributes) (bool, string, error) {
		v, err := c.Authorizer.Allowed(ctx, id.Info, a)
		if err != nil {
			err = &authn.Unavailable{Cause: err}
		}
		return v.Allowed, v.Reason, err
	}
	u, err := k.asker.wanted.Impersonate(ctx, k.cluster, id.GetName(), judge)
	return u, id.By, err
}

// ask has a question answered about who asks, and remembers it. What they are told who
// are nobody here is the same as if nothing were allowed.
func (k *acquaintance) ask(ctx context.Context, q question, answer func(context.Context, *Cluster, user.Info) (told, error)) error {
	if err := k.lock(ctx); err != nil {
		return err
	}
	now := time.Now()
	u, err := k.user(ctx, now)
	if k.moment.over(now) {
		k.moment = &moment{began: now}
	}
	c, digest, asOf := k.asker.gate.Cluster(k.cluster), k.digest, k.moment
	k.unlock()
	switch {
	case isNobody(err):
		return nil
	case err != nil:
		return k.hidden(ctx, err)
	case c == nil:
		return nil
	}
	// Other questions of the request need not wait for this one.
	mark := markOf(asOf.in(ctx), c, u, digest)
	t, err := answer(asOf.in(ctx), c, u)
	if err != nil {
		return k.untold(ctx, err)
	}
	if err := k.lock(ctx); err != nil {
		return err
	}
	defer k.unlock()
	if before, ok := k.told[q]; ok && before.digest != t.digest {
		k.count++ // the request was told both
	}
	if len(k.told) == 0 {
		k.mark = mark
	} else if k.mark != mark {
		k.mark = "" // of several moments: all is asked again
	}
	k.remember(q, t)
	return nil
}

func (k *acquaintance) remember(q question, t told) {
	k.told[q] = t
	if k.next.IsZero() || t.until.Before(k.next) {
		k.next = t.until
	}
}

// hidden is why it is not known who asks, as they may read it.
func (k *acquaintance) hidden(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err // made here, for them
	}
	return k.untold(ctx, err)
}

// untold is why an Authorizer did not answer, as who asks may read it: why the API
// server cannot be asked, or refuses informerd, is for the log.
func (k *acquaintance) untold(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if much, ok := errors.AsType[*access.TooManyError](err); ok {
		return apierrors.NewBadRequest(much.Error())
	}
	k.asker.gate.log.Debug("cannot tell what somebody may", "cluster", k.cluster, "err", err)
	return errUnknown("what you may see of cluster " + k.cluster)
}

func isNobody(err error) bool { return errors.Is(err, authn.ErrNobody) }

// generation is how often something was told in another way.
func (k *acquaintance) generation(ctx context.Context) (uint64, error) {
	if err := k.lock(ctx); err != nil {
		return 0, err
	}
	defer k.unlock()
	now := time.Now()
	was := k.id
	u, err := k.user(ctx, now)
	switch {
	case isNobody(err) && len(k.told) == 0:
		return k.count, nil // nothing was told, and nothing would be
	case isNobody(err):
		return 0, errUnauthorized()
	case err != nil:
		return 0, k.hidden(ctx, err)
	}
	c := k.asker.gate.Cluster(k.cluster)
	if was == nil || c == nil {
		k.count++ // somebody is known who was not, or the other way round
		return k.count, nil
	}
	k.moment = &moment{began: now} // what was told before counts no more
	ctx = k.moment.in(ctx)
	mark := markOf(ctx, c, u, k.digest)
	if len(k.told) == 0 || mark == k.mark && now.Before(k.next) {
		return k.count, nil
	}
	if err := k.askAgain(ctx, c, u); err != nil {
		return 0, k.untold(ctx, err)
	}
	k.mark = mark
	return k.count, nil
}

// askAgain asks all that was asked, and counts what is told in another way.
func (k *acquaintance) askAgain(ctx context.Context, c *Cluster, u user.Info) error {
	changed := false
	k.next = time.Time{}
	for q, before := range k.told {
		now, err := k.answer(ctx, c, u, q)
		if err != nil {
			return err
		}
		changed = changed || now.digest != before.digest
		k.remember(q, now)
	}
	if changed {
		k.count++
	}
	return nil
}

func (k *acquaintance) answer(ctx context.Context, c *Cluster, u user.Info, q question) (told, error) {
	switch {
	case q.path != "":
		v, err := c.Authorizer.Path(ctx, u, string(q.verb), q.path)
		return toldOf(v), err
	case q.attributes != (access.Attributes{}):
		v, err := c.Authorizer.Allowed(ctx, u, q.attributes)
		return toldOf(v), err
	}
	s, until, err := c.Authorizer.Scope(ctx, u, q.verb, q.resource, k.asker.named)
	return told{s.Digest(), until}, err
}
