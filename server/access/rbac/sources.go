package rbac

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/rawjson"
)

// source is one of the four resources.
type source uint8

// Roles come before bindings, so that at first no role changes under a binding.
const (
	clusterRoles source = iota
	roleObjects
	clusterRoleBindings
	roleBindings
	sourceCount
)

var sourceNames = [sourceCount]string{"clusterroles", "roles", "clusterrolebindings", "rolebindings"}

// meaningful are the fields of each that rights are read from. What hides a part
// of one can make a rule say more than it does: without its resourceNames it is
// about all.
var meaningful = [sourceCount][]rawjson.Path{
	fieldPaths("rules"), fieldPaths("rules"),
	fieldPaths("subjects", "roleRef"), fieldPaths("subjects", "roleRef"),
}

func fieldPaths(names ...string) (paths []rawjson.Path) {
	for _, name := range names {
		paths = append(paths, rawjson.Path{}.Field(name))
	}
	return paths
}

// sourceOf is the one that a resource is.
func sourceOf(r cache.Resource) (source, bool) {
	if r.GVR.Group != rbacv1.GroupName {
		return 0, false
	}
	i := slices.Index(sourceNames[:], r.GVR.Resource)
	return source(max(i, 0)), i >= 0
}

// four picks the four, in the order of sources.
func four(all []follow.Resource) []follow.Resource {
	var found [sourceCount]follow.Resource
	for _, r := range all {
		if s, ok := sourceOf(r.Spec().Resource); ok {
			found[s] = r
		}
	}
	return slices.DeleteFunc(found[:], func(r follow.Resource) bool { return r == nil })
}

// UnreadableError names a resource without which it cannot be told what users may
// do.
type UnreadableError struct {
	Resource schema.GroupResource
	State    cache.State // "" of a resource that the copy does not have at all
	Reason   string
}

func (e *UnreadableError) Error() string {
	text := "rights cannot be told: " + e.Resource.String()
	if e.State != "" {
		text += " is " + string(e.State)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// copied is one of the four as a View has it. It is immutable.
type copied struct {
	*cache.View
	hides string // the first path that its rule takes out that rights are read from
}

// copiedAs is found out once for a View: what rights there are is asked many times for
// each request, and of each stream several times a second.
func copiedAs(s source, view *cache.View) *copied { return &copied{view, hidden(s, &view.Spec)} }

// sources are what was read last.
type sources [sourceCount]*copied

// err is that of the first one that cannot be read, or is older than maxAge.
func (s *sources) err(maxAge time.Duration) error {
	for i, c := range s {
		if err := judge(source(i), c, maxAge); err != nil {
			return err
		}
	}
	return nil
}

// judge returns an *UnreadableError if rights cannot be told from a copy as it is now.
func judge(s source, c *copied, maxAge time.Duration) error {
	state, reason, told := c.tells(maxAge)
	if told {
		return nil
	}
	resource := schema.GroupResource{Group: rbacv1.GroupName, Resource: sourceNames[s]}
	return &UnreadableError{resource, state, reason}
}

// tells reports whether rights can be told from a copy, and why not. It takes no memory
// where they can.
func (c *copied) tells(maxAge time.Duration) (state cache.State, reason string, told bool) {
	if c == nil {
		return "", "there is no copy of it", false
	}
	view := c.Aged()
	switch {
	case !view.State.Readable():
		return view.State, view.Reason, false
	case !view.Readable():
		return view.State, "another copy takes its place", false
	}
	if reason := tooOld(view, maxAge); reason != "" {
		return view.State, reason, false
	}
	if len(view.Missing) > 0 {
		// Those that the API server refuses are held as they were: what has been
		// revoked since may be among them.
		m := view.Missing[0]
		return view.State, fmt.Sprintf("namespace %s is %s: %s", m.Namespace, m.State, m.Reason), false
	}
	if c.hides != "" {
		return view.State, "its rule takes " + c.hides + " out of objects", false
	}
	return view.State, "", true
}

// tooOld is why a View no longer tells rights, "" if it does. What has been revoked since
// the API server proved it last is still granted by it: a snapshot may be of last month,
// and a watch that hangs tells of nothing.
func tooOld(view *cache.View, maxAge time.Duration) string {
	if view.State == cache.Live || maxAge < 0 {
		return ""
	}
	age, known := view.Age()
	switch {
	case !known:
		return "it is not known when the API server proved it last"
	case age > maxAge:
		return fmt.Sprintf("the API server proved it last %s ago, and no more than %s will do", age.Round(time.Second), maxAge)
	}
	return ""
}

// hidden is the first path a rule takes out that rights are read from.
func hidden(s source, spec *cache.Spec) string {
	for _, removed := range slices.Concat(spec.Drop, spec.Redact) {
		path, err := rawjson.ParsePath(removed)
		if err != nil || path.IsZero() {
			return removed
		}
		for _, field := range meaningful[s] {
			if _, below := path.Below(field); below {
				return removed
			}
		}
	}
	return ""
}

// Status is what the copies of the four resources are worth together.
type Status struct {
	// Err is nil if rights can be told, else an *UnreadableError.
	Err error
	// State is the worst of the four: Live if each of them is. It is "" beside an Err.
	State cache.State
	// Age is that of the oldest. Known is false if it is not known of all.
	Age   time.Duration
	Known bool
	// Partial names those of which the configuration leaves out objects. What these
	// grant is not known, so that less is told than may be done.
	Partial []string
}

// Status looks at the copies as they are now. Rights that are told may be as old as
// these: who needs them newer has to refuse.
func (g *Grants) Status() Status {
	var now sources
	for _, r := range four(g.resources()) {
		if s, ok := sourceOf(r.Spec().Resource); ok {
			now[s] = copiedAs(s, r.View().Aged())
		}
	}
	status := Status{Err: now.err(g.maxAge)}
	if status.Err != nil {
		return status
	}
	status.State, status.Known = cache.Live, true
	for i, view := range now {
		if worth(view.State) < worth(status.State) {
			status.State = view.State
		}
		age, known := view.Age()
		status.Age = max(status.Age, age)
		status.Known = status.Known && known
		if len(view.Spec.Namespaces) > 0 || view.Spec.LabelSelector != "" || view.Spec.FieldSelector != "" {
			status.Partial = append(status.Partial, sourceNames[i])
		}
	}
	if !status.Known {
		status.Age = 0
	}
	return status
}

// worth orders readable states: one from a snapshot is the least.
func worth(s cache.State) int {
	switch s {
	case cache.Live:
		return 2
	case cache.Stale:
		return 1
	default:
		return 0
	}
}
