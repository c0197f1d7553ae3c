package authn

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/informerd/informerd/server/access/accesstest"
)

// deaf is an API server that knows nothing of audiences.
type deaf struct{ accesstest.API }

func (d *deaf) ReviewToken(ctx context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	r = r.DeepCopy()
	r.Spec.Audiences = nil
	return d.API.ReviewToken(ctx, r)
}
