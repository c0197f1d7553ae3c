package accesstest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// API is an API server that reviews tokens and access. The zero API knows nobody and
// allows nothing.
type API struct {
	mu      sync.Mutex // guards all below
	tokens  map[string]Known
	allows  func(authorizationv1.SubjectAccessReviewSpec) bool
	err     error
	delay   time.Duration
	tokened int
	asked   []authorizationv1.SubjectAccessReviewSpec
}

// Known is who a token is of, and what it was made for.
type Known struct {
	User      authenticationv1.UserInfo
	Audiences []string
}

// Token makes a token known; nobody is of one without a name.
func (a *API) Token(token string, k Known) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens == nil {
		a.tokens = map[string]Known{}
	}
	a.tokens[token] = k
}

// Named is somebody with groups.
func Named(name string, groups ...string) Known {
	return Known{User: authenticationv1.UserInfo{Username: name, UID: "uid-" + name, Groups: groups}}
}

// Revoke forgets a token.
func (a *API) Revoke(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tokens, token)
}

// Allow decides from now on what is allowed.
func (a *API) Allow(f func(authorizationv1.SubjectAccessReviewSpec) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allows = f
}

// Fail makes every question fail; nil ends that.
func (a *API) Fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Delay makes every answer take time.
func (a *API) Delay(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = d
}

// TokenReviews is how often it was asked about a token.
func (a *API) TokenReviews() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tokened
}

// Asked are the questions about access so far, and forgets them.
func (a *API) Asked() []authorizationv1.SubjectAccessReviewSpec {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

// ReviewToken answers as the API server does.
func (a *API) ReviewToken(ctx context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	a.mu.Lock()
	a.tokened++
	known, ok := a.tokens[r.Spec.Token]
	err, delay := a.err, a.delay
	a.mu.Unlock()
	if err := wait(ctx, delay); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	answer := r.DeepCopy()
	if !ok {
		answer.Status.Error = "invalid bearer token"
		return answer, nil
	}
	if len(r.Spec.Audiences) > 0 {
		for _, audience := range r.Spec.Audiences {
			if slices.Contains(known.Audiences, audience) {
				answer.Status.Audiences = append(answer.Status.Audiences, audience)
			}
		}
		if answer.Status.Audiences == nil {
			answer.Status.Error = "token audiences do not match"
			return answer, nil
		}
	}
	answer.Status.Authenticated, answer.Status.User = true, known.User
	return answer, nil
}

// ReviewAccess answers as the API server does.
func (a *API) ReviewAccess(ctx context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	a.mu.Lock()
	a.asked = append(a.asked, r.Spec)
	allows, err, delay := a.allows, a.err, a.delay
	a.mu.Unlock()
	if err := wait(ctx, delay); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	answer := r.DeepCopy()
	answer.Status.Allowed = allows != nil && allows(r.Spec)
	return answer, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decoder reads reviews in every form that clients send them.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	utilruntime.Must(authorizationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// ServeHTTP answers the reviews that informerd sends.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := a.review(r)
	w.Header().Set("Content-Type", "application/json")
	if err == nil {
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	})
}

func (a *API) review(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	object, kind, err := decoder.Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	switch review := object.(type) {
	case *authenticationv1.TokenReview:
		review.SetGroupVersionKind(*kind)
		return a.ReviewToken(r.Context(), review)
	case *authorizationv1.SubjectAccessReview:
		review.SetGroupVersionKind(*kind)
		return a.ReviewAccess(r.Context(), review)
	}
	return nil, fmt.Errorf("no review of a %s", kind)
}
