package gate

import (
	"context"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/authn"
)

// The methods here are what the access APIs of Kubernetes ask of an asker beside what
// readers do.

// User is who asks, as one cluster knows them.
func (a *asker) User(ctx context.Context, cluster string) (authenticationv1.UserInfo, error) {
	u, err := a.user(ctx, cluster)
	if isNobody(err) {
		return authenticationv1.UserInfo{}, errUnauthorized()
	}
	if err != nil {
		return authenticationv1.UserInfo{}, a.in(cluster).hidden(ctx, err)
	}
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info, nil
}

// Rules are what is known of what who asks may in a namespace of a cluster.
func (a *asker) Rules(ctx context.Context, cluster, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	u, err := a.user(ctx, cluster)
	if isNobody(err) {
		return authorizationv1.SubjectRulesReviewStatus{}, errUnauthorized()
	}
	k := a.in(cluster)
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, k.hidden(ctx, err)
	}
	c := a.gate.Cluster(cluster)
	if c == nil {
		return authorizationv1.SubjectRulesReviewStatus{}, errUnauthorized()
	}
	status, err := c.Authorizer.Rules(ctx, u, namespace)
	if err != nil {
		return status, k.untold(ctx, err)
	}
	return status, nil
}

// Other is the verdict on somebody else: on attributes, or on a path if it is not "",
// with the verb of the attributes. Whether who asks may ask that is not its business.
func (a *asker) Other(ctx context.Context, who authenticationv1.UserInfo, attributes access.Attributes, path string) (bool, string, error) {
	k := a.in(attributes.Cluster)
	c := a.gate.Cluster(attributes.Cluster)
	if c == nil {
		return false, "", errUnauthorized()
	}
	u := &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups}
	for key, values := range who.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = values
	}
	ctx = access.AskedBy(ctx, a.Name())
	var verdict access.Verdict
	var err error
	if path != "" {
		verdict, err = c.Authorizer.Path(ctx, u, attributes.Verb, path)
	} else {
		verdict, err = c.Authorizer.Allowed(ctx, u, attributes)
	}
	if err != nil {
		return false, "", k.untold(ctx, err)
	}
	return verdict.Allowed, verdict.Reason, nil
}

// PassesOn says why a request must not be passed on to the API server of a cluster, nil
// if it may. Requests are passed on with what they carry and nothing else. A client
// certificate ends here, and a front proxy is not asked again: without them the API
// server would take the request for anybody's.
func (a *asker) PassesOn(ctx context.Context, cluster string) error {
	k := a.in(cluster)
	if err := k.lock(ctx); err != nil {
		return err
	}
	_, err := k.user(ctx, time.Now())
	means := k.means
	k.unlock()
	switch {
	case isNobody(err):
		return errUnauthorized()
	case err != nil:
		return k.hidden(ctx, err)
	case means == authn.ByToken, means == authn.ByNothing:
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: "informerd passes requests on with the bearer token they carry, and you are known by " +
			map[authn.Means]string{authn.ByCertificate: "a client certificate", authn.ByProxy: "the word of a front proxy"}[means] +
			", which it cannot pass on: ask the API server itself",
	}}
}
