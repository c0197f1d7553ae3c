package server

import (
	"context"
	"slices"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// grant is what somebody may see of a resource with some verbs together.
type grant struct {
	who   access.Asker
	verbs []cache.Verb
	each  []cache.Scope // of verbs
	scope cache.Scope   // of all
}

// granted asks what may be seen of a resource by whom ctx says.
func granted(ctx context.Context, spec cache.Spec, verbs ...cache.Verb) (grant, error) {
	g := grant{who: access.From(ctx), verbs: verbs}
	for i, verb := range verbs {
		scope, err := g.who.Scope(ctx, spec.Cluster, verb, spec.GVR.GroupResource())
		if err != nil {
			return grant{who: g.who}, access.Unknown(g.who, err)
		}
		noteRights(ctx, spec.Cluster, verb, spec.GVR.GroupResource(), scope)
		if g.each = append(g.each, scope); i > 0 {
			scope = scope.And(g.scope)
		}
		g.scope = scope
	}
	return g, nil
}

// refusal is the answer to a question about namespaces, or about all if there are none,
// of which nothing at all may be seen; nil if something may. It does not tell whether
// they exist. What a glob stands for is not asked for by name.
func (g *grant) refusal(spec cache.Spec, namespaces []string) error {
	if g.scope.Empty() {
		return g.forbidden(spec, "")
	}
	for _, ns := range namespaces {
		if !cache.IsGlob(ns) && !g.scope.Touches(ns) {
			return g.forbidden(spec, ns)
		}
	}
	return nil
}

// forbidden names the first verb that a namespace, or anything at all, may not be read
// with.
func (g *grant) forbidden(spec cache.Spec, namespace string) error {
	i := slices.IndexFunc(g.each, func(s cache.Scope) bool {
		return s.Empty() || namespace != "" && !s.Touches(namespace)
	})
	verb := cache.List
	if len(g.verbs) > 0 {
		verb = g.verbs[max(i, 0)]
	}
	return access.Forbidden(g.who, attributes(spec, verb, cache.Key{Namespace: namespace}), "")
}

func attributes(spec cache.Spec, verb cache.Verb, key cache.Key) access.Attributes {
	return access.Attributes{
		Cluster: spec.Cluster, Verb: string(verb), Namespace: key.Namespace, Name: key.Name,
		Group: spec.GVR.Group, Version: spec.GVR.Version, Resource: spec.GVR.Resource,
	}
}

// stillSeen refuses to go on, after a wait, with what may be seen by other rights now
// than it was taken by: with 403 if nothing of it may, else as a stream ends whose rights
// have changed.
func (g *grant) stillSeen(ctx context.Context, spec cache.Spec) error {
	now, err := granted(ctx, spec, g.verbs...)
	if err != nil {
		return err
	}
	if now.mark() == g.mark() {
		return nil
	}
	if err := now.refusal(spec, nil); err != nil {
		return err
	}
	return errRights
}

// afterWait is the error of a wait that ended with err: it may have taken long enough for
// rights to be withdrawn, and who has none is not told either how far the copy is that
// they waited for.
func afterWait(ctx context.Context, err error, stillSeen func(context.Context) error) error {
	if ctx.Err() != nil {
		return err
	}
	if refused := stillSeen(ctx); refused != nil {
		return refused
	}
	return err
}

// mark tells what is seen from what others see, or the same reader at another time. It
// is empty for all.
func (g *grant) mark() string {
	if g.scope.Whole() {
		return ""
	}
	return g.scope.Digest()
}
