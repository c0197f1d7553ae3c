package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/discovery"
)

// showHandlers prints each handler: where it delivers to, with whose rights, and from what.
func showHandlers(out, warnings io.Writer, all []config.Handler) {
	for i, h := range all {
		fmt.Fprintf(out, "\n%s [%s], %s, from %s, as %s\n", handlerName(i, h), strings.Join(h.Resources, ", "), sinkName(h), h.From, identityName(h))
		sink, err := newSink(h)
		if err != nil {
			fmt.Fprintf(warnings, "warning: %s: it could not be started here: %v\n", handlerName(i, h), err)
		} else if sink != nil {
			_ = sink.Close()
		}
	}
}

// showFollowed prints what each handler follows of a cluster, and of how many objects.
func showFollowed(ctx context.Context, out, warnings io.Writer, cfg *config.Config, cluster string, resources []discovery.Resource, a *access) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookupTimeout, errNoAnswer)
	defer cancel()
	count := newCounter(a)
	choices := plan.Choose(cfg.Resources, cluster, resources)
	for i, h := range cfg.Handlers {
		if len(h.Clusters) > 0 && !slices.Contains(h.Clusters, cluster) {
			continue
		}
		followed := plan.Followed(h, choices)
		var words []string
		for _, c := range followed {
			words = append(words, fmt.Sprintf("%s (%s)", c.Spec.Name(), count.objects(ctx, c.Spec.GVR)))
		}
		fmt.Fprintf(out, "\n%s follows of cluster %s: %s%s\n%s", handlerName(i, h), cluster, plural(len(followed), "resource"), narrowed(h), columns(words))
		for _, w := range plan.HandlerWarnings(h, choices, resources) {
			fmt.Fprintf(warnings, "warning: %s: cluster %s: %s\n", handlerName(i, h), cluster, w)
		}
	}
}

func handlerName(i int, h config.Handler) string {
	return fmt.Sprintf("handlers[%d] (line %d) %s", i, h.Line, h.Name)
}

func sinkName(h config.Handler) string {
	if h.SinkKind == "" {
		return "to be claimed"
	}
	return "to " + map[string]string{"webhook": "a webhook", "nats": "NATS JetStream", "kafka": "Kafka"}[h.SinkKind]
}

func identityName(h config.Handler) string {
	switch id := h.Identity; {
	case id == nil:
		return "informerd"
	case len(id.Groups) == 0:
		return "user " + id.User
	default:
		return fmt.Sprintf("user %s of %s", id.User, strings.Join(id.Groups, ", "))
	}
}

// narrowed says what of a handler makes it select fewer objects than there are.
func narrowed(h config.Handler) string {
	var by []string
	if len(h.Query.Namespaces) > 0 {
		by = append(by, "namespaces")
	}
	if h.Query.Labels != nil {
		by = append(by, "labelSelector")
	}
	if !h.Query.Fields.Empty() {
		by = append(by, "fieldSelector")
	}
	if h.Filter != "" {
		by = append(by, "filter")
	}
	if len(by) == 0 {
		return ""
	}
	return ", less what " + strings.Join(by, " and ") + " leave out"
}

// counter asks a cluster how many objects there are of its resources, each once.
type counter struct {
	client metadata.Interface
	err    error
	known  map[schema.GroupVersionResource]string
}

func newCounter(a *access) *counter {
	c := &counter{known: map[schema.GroupVersionResource]string{}}
	rc := rest.CopyConfig(a.REST)
	if a.Wrap != nil {
		rc.Wrap(a.Wrap)
	}
	c.client, c.err = metadata.NewForConfig(rc)
	return c
}

// objects is how many there are, in words: the API server counts them for a list of one.
func (c *counter) objects(ctx context.Context, gvr schema.GroupVersionResource) string {
	if c.err != nil {
		return "not counted: " + c.err.Error()
	}
	text, ok := c.known[gvr]
	if !ok {
		text = c.ask(ctx, gvr)
		c.known[gvr] = text
	}
	return text
}

func (c *counter) ask(ctx context.Context, gvr schema.GroupVersionResource) string {
	list, err := c.client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		return "may not be listed"
	case err != nil && ctx.Err() != nil:
		return "not counted: " + context.Cause(ctx).Error()
	case err != nil:
		return "not counted: " + shortReason(err)
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	} else if list.Continue != "" {
		return "more than 1 object"
	}
	return plural(int(n), "object")
}

// shortReason is what the API server calls an error, or the innermost cause.
func shortReason(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	return err.Error()
}
