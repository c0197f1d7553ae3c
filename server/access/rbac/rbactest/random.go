package rbactest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What random configurations are made of. There is little of each, so that rules,
// bindings and requests meet.
var (
	Namespaces = []string{"shop", "billing", "team-a", "a"}
	// ObjectNames has namespaces, too: those of Namespaces are their names.
	ObjectNames = []string{"web", "db", "a", "shop"}
	Verbs       = []string{"get", "list", "watch", "create"}
	APIGroups   = []string{"", "apps", "example.com", "apps.example.com"}
	Resources   = []string{"pods", "deployments", "namespaces", "nodes", "secrets", "log"}
	// Subresources of a request; "" is none.
	Subresources = []string{"", "", "", "log", "scale", "*"}
	Paths        = []string{"/", "/metrics", "/metrics/cadvisor", "/healthz", "/healthz/etcd", "/api", "/logs/a", "*"}

	userNames  = []string{"jane", "joe", "devs", "system:serviceaccount:shop:bot", "system:serviceaccount:a:bot"}
	groupNames = []string{"devs", "ops", "jane", "system:authenticated", "system:serviceaccounts:shop"}
	roleNames  = []string{"reader", "writer", "admin", "odd", "sum"}
	bound      = []string{"b0", "b1", "b2", "b3", "b4", "b5"}

	ruleVerbs     = []string{"get", "list", "watch", "create", "*"}
	ruleGroups    = []string{"", "apps", "example.com", "apps.example.com", "*"}
	ruleResources = []string{
		"pods", "deployments", "namespaces", "nodes", "secrets", "*", "pods/log", "deployments/scale", "*/log", "*/scale", "*/*", "pods/*", "log", "*/", "pods/",
	}
	ruleURLs = []string{"/", "/metrics", "/metrics/*", "/healthz*", "/healthz/", "*", "/api**", "/logs/*a", "**", ""}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// some picks up to most, and seldom none.
func some[T any](r *rand.Rand, most int, from []T) (picked []T) {
	if r.IntN(12) == 0 {
		return nil
	}
	for range 1 + r.IntN(most) {
		picked = append(picked, pick(r, from))
	}
	return picked
}

// Change makes one random change of the cluster: an object comes, is replaced by
// another of its name, or goes.
func (c *Cluster) Change(r *rand.Rand) {
	c.TB.Helper()
	var o metav1.Object
	switch r.IntN(8) {
	case 0:
		o = Role(pick(r, Namespaces), pick(r, roleNames), randomRules(r, false)...)
	case 1, 2:
		o = c.randomClusterRole(r)
	case 3:
		o = ClusterBinding(pick(r, bound), randomRef(r), randomSubjects(r)...)
	default:
		o = Binding(pick(r, Namespaces), pick(r, bound), randomRef(r), randomSubjects(r)...)
	}
	if r.IntN(4) == 0 {
		c.Unset(o)
	} else {
		c.Set(o)
	}
}

// summed is the label of ClusterRoles that are part of aggregated ones.
const summed = "example.com/sum"

// randomClusterRole makes one; that of the last name is aggregated. A controller
// fills in its rules, which are mostly those of its parts, and sometimes behind.
func (c *Cluster) randomClusterRole(r *rand.Rand) *rbacv1.ClusterRole {
	name := pick(r, roleNames)
	if name != roleNames[len(roleNames)-1] {
		role := ClusterRole(name, randomRules(r, true)...)
		if r.IntN(2) == 0 {
			role.Labels = map[string]string{summed: "true"}
		}
		return role
	}
	role := ClusterRole(name)
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{summed: "true"}}}}
	for _, part := range c.ClusterRoles {
		if part.Labels[summed] == "true" && r.IntN(8) > 0 {
			role.Rules = append(role.Rules, part.Rules...)
		}
	}
	return role
}

func randomRules(r *rand.Rand, urls bool) (rules []rbacv1.PolicyRule) {
	for range r.IntN(4) {
		if urls && r.IntN(4) == 0 {
			rules = append(rules, rbacv1.PolicyRule{Verbs: some(r, 3, ruleVerbs), NonResourceURLs: some(r, 3, ruleURLs)})
			continue
		}
		rule := rbacv1.PolicyRule{Verbs: some(r, 3, ruleVerbs), APIGroups: some(r, 3, ruleGroups), Resources: some(r, 3, ruleResources)}
		if r.IntN(3) == 0 {
			rule.ResourceNames = some(r, 3, append(slices.Clone(ObjectNames), ""))
		}
		rules = append(rules, rule)
	}
	return rules
}

func randomRef(r *rand.Rand) rbacv1.RoleRef {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: pick(r, []string{"Role", "ClusterRole", "ClusterRole"}), Name: pick(r, roleNames)}
	if r.IntN(20) == 0 {
		ref.Kind = "Other"
	}
	return ref
}

func randomSubjects(r *rand.Rand) (subjects []rbacv1.Subject) {
	for range r.IntN(4) {
		switch r.IntN(8) {
		case 0, 1, 2:
			subjects = append(subjects, ForUser(pick(r, userNames)))
		case 3, 4:
			subjects = append(subjects, ForGroup(pick(r, groupNames)))
		case 5:
			subjects = append(subjects, rbacv1.Subject{Kind: "Robot", Name: pick(r, userNames)})
		default:
			subjects = append(subjects, ForServiceAccount(pick(r, []string{"", "shop", "a"}), "bot"))
		}
	}
	return subjects
}

// Request is one question; its JSON is a line of those that devcluster authorize
// reads. With a Path it is about no resource.
type Request struct {
	User        string   `json:"user"`
	Groups      []string `json:"groups,omitempty"`
	Verb        string   `json:"verb"`
	Group       string   `json:"group,omitempty"`
	Resource    string   `json:"resource,omitempty"`
	Subresource string   `json:"subresource,omitempty"`
	Namespace   string   `json:"namespace,omitempty"`
	Name        string   `json:"name,omitempty"`
	Path        string   `json:"path,omitempty"`
}

// GetName and GetGroups make a Request one who asks.
func (q *Request) GetName() string { return q.User }

// GetGroups are those of the user.
func (q *Request) GetGroups() []string { return q.Groups }

// String is for messages of tests.
func (q *Request) String() string {
	if q.Path != "" {
		return fmt.Sprintf("%s %v: %s %s", q.User, q.Groups, q.Verb, q.Path)
	}
	return fmt.Sprintf("%s %v: %s %s %s/%s in %q called %q", q.User, q.Groups, q.Verb, q.Group, q.Resource, q.Subresource, q.Namespace, q.Name)
}

// RandomUser is somebody who asks nothing yet.
func RandomUser(r *rand.Rand) Request {
	q := Request{User: pick(r, userNames), Groups: some(r, 2, groupNames)}
	if r.IntN(40) == 0 {
		q.Groups = append(q.Groups, "system:masters")
	}
	return q
}

// RandomRequest is a question of a user.
func RandomRequest(r *rand.Rand, user Request) Request {
	q := Request{User: user.User, Groups: user.Groups, Verb: pick(r, Verbs)}
	if r.IntN(10) == 0 {
		q.Path = pick(r, Paths)
		return q
	}
	q.Group, q.Resource, q.Subresource = pick(r, APIGroups), pick(r, Resources), pick(r, Subresources)
	if r.IntN(4) > 0 {
		q.Namespace = pick(r, Namespaces)
	}
	if r.IntN(3) > 0 {
		q.Name = pick(r, ObjectNames)
	}
	if r.IntN(20) == 0 { // as somebody may ask in a review
		q.Verb, q.Group, q.Resource = "*", "*", "*"
	}
	return q
}
