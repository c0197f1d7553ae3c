package access

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// OwnerOf is who a user counts as where something is shared out, such as places and
// processors. It is the name, but all service accounts of a namespace are one: whoever may
// edit a namespace makes as many of them as they like, and may impersonate even those that
// there are not. One for each request would have no limit at all.
func OwnerOf(name string) string {
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil {
		return serviceaccount.ServiceAccountUsernamePrefix + namespace
	}
	return name
}

type onBehalfKey struct{}

// AskedBy is ctx for questions that by has about others: what these take is theirs who
// has them.
func AskedBy(ctx context.Context, by string) context.Context {
	return context.WithValue(ctx, onBehalfKey{}, by)
}

// WhoAsksAboutOthers is by of AskedBy, "" where everybody asks about themselves.
func WhoAsksAboutOthers(ctx context.Context) string {
	by, _ := ctx.Value(onBehalfKey{}).(string)
	return by
}
