package authn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/fair"
)

const (
	// DefaultTTL is how long the API server's word on a token is taken for true. A
	// token that is revoked is let in for that long.
	DefaultTTL = 10 * time.Second
	// reviewTimeout bounds one question.
	reviewTimeout = 5 * time.Second
	// maxReviews bounds the questions at once about tokens that were not known to be
	// good lately: anybody can send those. One address has no more
	// of the places than it leaves free.
	maxReviews = 64
	// maxRenewals bounds those about tokens that were, which need not wait for others.
	maxRenewals = 32
	// goodFor is how long a token that was good is lately so, and maxGood how many are
	// at least; there are at most twice as many.
	goodFor = 10 * time.Minute
	maxGood = 1 << 13
)

// TokenReviewer asks an API server about a token, with informerd's own
// credentials. An error is that it did not answer as it should, or refused to.
type TokenReviewer interface {
	ReviewToken(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error)
}

// Unavailable is that it cannot be told now who asks. Nobody is let in for it, and
// nobody is refused for good. It does not wrap its cause, which may be the API server's
// refusal of informerd: that is no answer to who asks.
type Unavailable struct{ Cause error }

func (e *Unavailable) Error() string {
	return "who asks cannot be told now: " + e.Cause.Error()
}

// newTokens authenticates tokens by review. What the API server says is kept for ttl,
// whether it knows the token or not; who asks about the same token at once shares an
// answer. No failure to ask is kept.
func newTokens(r TokenReviewer, audiences []string, ttl time.Duration, told func(error)) *tokens {
	t := &tokens{
		reviewer: r, audiences: audiences, told: told,
		places: fair.NewPlaces(maxReviews), renewals: fair.NewPlaces(maxRenewals),
		senders: map[access.Key]sender{}, good: map[access.Key]time.Time{},
	}
	t.cached = tokencache.New(t, false, ttl, ttl)
	return t
}

type tokens struct {
	reviewer         TokenReviewer
	audiences        authenticator.Audiences
	told             func(error) // hears how each question went
	places, renewals *fair.Places
	refusals         refusals
	cached           authenticator.Token // asks AuthenticateToken

	mu sync.Mutex // guards all below, which are by digests of tokens
	// senders are who waits for an answer. It is shared, so that the cache asks without
	// the contexts of those who wait.
	senders   map[access.Key]sender
	good, old map[access.Key]time.Time // when they were good last; old: before good was full
}

// sender is the address that a token came from first, and how often it is asked for now.
type sender struct {
	address string
	asking  int
}

// authenticate asks, if it is not known, in a place of the address a token comes from.
func (t *tokens) authenticate(ctx context.Context, address, token string) (*authenticator.Response, bool, error) {
	key := access.KeyOf(token)
	t.mu.Lock()
	s, ok := t.senders[key]
	if !ok {
		s.address = address
	}
	s.asking++
	t.senders[key] = s
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		s := t.senders[key]
		if s.asking--; s.asking > 0 {
			t.senders[key] = s
		} else {
			delete(t.senders, key)
		}
	}()
	return t.cached.AuthenticateToken(ctx, token)
}

// take waits for a place. A token that was good lately has one among its like: whoever
// sends garbage, from however many addresses, keeps none of those. Others wait for what was
// refused of their address.
func (t *tokens) take(ctx context.Context, key access.Key, address string) (release func(), err error) {
	t.mu.Lock()
	last, ok := t.good[key]
	if !ok {
		last = t.old[key]
	}
	t.mu.Unlock()
	if time.Since(last) < goodFor {
		return t.renewals.Take(ctx, string(key[:]), 1, reviewTimeout)
	}
	if err := t.refusals.wait(ctx, address); err != nil {
		return nil, err
	}
	return t.places.Take(ctx, address, 1, reviewTimeout)
}

// addressOf is where a token came from that is asked about.
func (t *tokens) addressOf(key access.Key) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.senders[key].address
}

// note remembers whether a token is good.
func (t *tokens) note(key access.Key, good bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !good {
		delete(t.good, key)
		delete(t.old, key)
		return
	}
	if len(t.good) >= maxGood {
		t.old, t.good = t.good, map[access.Key]time.Time{}
	}
	t.good[key] = time.Now()
}

// AuthenticateToken asks.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	key := access.KeyOf(token)
	address := t.addressOf(key)
	release, err := t.take(ctx, key, address)
	if err != nil {
		return nil, false, &Unavailable{fmt.Errorf("many tokens are being reviewed already: %w", err)}
	}
	defer release()
	answer, err := t.reviewer.ReviewToken(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: t.audiences},
	})
	if err != nil {
		err = fmt.Errorf("review token: %w", err)
		t.told(err)
		return nil, false, &Unavailable{err}
	}
	t.told(nil)
	status := answer.Status
	t.note(key, status.Authenticated)
	switch {
	case !status.Authenticated:
		t.refusals.note(address)
		return nil, false, nil
	case status.User.Username == "":
		return nil, false, errors.New("the token is of somebody without a name")
	case len(t.audiences) > 0 && len(t.audiences.Intersect(status.Audiences)) == 0:
		// An API server that does not know audiences says none, and the token may have
		// been made for somebody else.
		return nil, false, nil
	}
	return &authenticator.Response{Audiences: status.Audiences, User: userOf(status.User)}, true, nil
}

func userOf(u authenticationv1.UserInfo) user.Info {
	info := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = make(map[string][]string, len(u.Extra))
		}
		info.Extra[key] = values
	}
	return info
}
