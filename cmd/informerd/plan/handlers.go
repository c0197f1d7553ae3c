package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/discovery"
)

// Followed are the resources of a cluster whose changes a handler delivers: those that it
// names, or that a glob of it matches, and that are watched.
func Followed(h config.Handler, choices []Choice) []Choice {
	var all []Choice
	for _, c := range choices {
		if c.Spec.Watch && matches(h, c.Spec.GVR.GroupResource()) {
			all = append(all, c)
		}
	}
	return all
}

func matches(h config.Handler, r schema.GroupResource) bool {
	return slices.ContainsFunc(h.Match, func(p config.Pattern) bool { return p.Matches(r) })
}

// HandlerWarnings compares the resources of a handler with what a cluster serves and the
// rules watch: names that select nothing, and why.
func HandlerWarnings(h config.Handler, choices []Choice, resources []discovery.Resource) []string {
	var all []string
	for _, p := range h.Match {
		if why := unfollowed(p, choices, resources); why != "" {
			all = append(all, why)
		}
	}
	return all
}

// unfollowed is why a pattern of a handler selects nothing; "" if it does.
func unfollowed(p config.Pattern, choices []Choice, resources []discovery.Resource) string {
	served := ""
	for _, c := range choices {
		r := c.Spec.GVR.GroupResource()
		switch {
		case !p.Matches(r):
		case c.Spec.Watch:
			return ""
		case c.Rule < 0:
			served = fmt.Sprintf("%s is served, but no rule of resources matches it: nothing of it is delivered", r)
		default:
			served = fmt.Sprintf("%s is left out by resources[%d]: nothing of it is delivered", r, c.Rule)
		}
	}
	if served != "" {
		return served
	}
	if hint := misnamed(p, resources); hint != "" {
		return hint
	}
	return fmt.Sprintf("%s is not served: nothing of it is delivered until it is", p)
}
