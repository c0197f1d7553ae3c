package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/discovery"
)

// Warning is something in a rule that is allowed and probably not meant.
type Warning struct {
	Rule    int
	Message string
}

// Warnings compares rules with what a cluster serves: rules that select nothing,
// and names that exist, but in another group or version. A pattern of a rule
// that selects something else may find nothing in this cluster; that is no
// mistake.
func Warnings(rules []config.Rule, resources []discovery.Resource) []Warning {
	var all []Warning
	for i, rule := range rules {
		selected := false
		for _, r := range resources {
			at, _ := match(rules, r)
			selected = selected || at == i
		}
		for _, p := range rule.Match {
			if hint := misnamed(p, resources); hint != "" {
				all = append(all, Warning{i, hint})
			}
		}
		if !selected {
			all = append(all, Warning{i, fmt.Sprintf("selects nothing: %s", rule.Patterns())})
		}
	}
	return all
}

// misnamed tells where to find a literal resource that is not where p says.
func misnamed(p config.Pattern, resources []discovery.Resource) string {
	gr, literal := p.Literal()
	if !literal {
		return ""
	}
	var elsewhere []string
	for _, r := range resources {
		switch {
		case r.GroupResource() == gr && p.Version() != "" && !slices.Contains(r.Versions, p.Version()):
			return fmt.Sprintf("%s is not served in version %s, but in %s", gr, p.Version(), strings.Join(r.Versions, ", "))
		case r.GroupResource() == gr:
			return ""
		case r.GVR.Resource == gr.Resource:
			elsewhere = append(elsewhere, r.GroupResource().String())
		}
	}
	// Core events stand for those of events.k8s.io.
	if len(elsewhere) == 0 || gr.String() == "events.events.k8s.io" {
		return ""
	}
	return fmt.Sprintf("%s is not served; did you mean %s?", p, strings.Join(elsewhere, " or "))
}
