package authn

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// DefaultTTL is how long the API server's word on a token is taken for true. A
	// token that is revoked is let in for that long.
	DefaultTTL = 10 * time.Second
	// reviewTimeout bounds one question.
	reviewTimeout = 5 * time.Second
	// maxReviews bounds the questions at once: anybody can send tokens that nobody
	// has asked about.
	maxReviews = 64
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
func newTokens(r TokenReviewer, audiences []string, ttl time.Duration, told func(error)) authenticator.Token {
	t := &tokens{reviewer: r, audiences: audiences, told: told, places: make(chan struct{}, maxReviews)}
	return tokencache.New(t, false, ttl, ttl)
}

type tokens struct {
	reviewer  TokenReviewer
	audiences authenticator.Audiences
	told      func(error) // hears how each question went
	places    chan struct{}
}

// AuthenticateToken asks.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
	case <-ctx.Done():
		return nil, false, &Unavailable{fmt.Errorf("%d tokens are being reviewed already", maxReviews)}
	}
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
	switch {
	case !status.Authenticated:
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
