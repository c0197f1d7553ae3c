// Package rbactest has clusters of roles and bindings, as plain objects and in real
// Stores, and makes up random ones, for the tests of who may do what.
package rbactest

import (
	"encoding/json"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/follow/followtest"
)

// Config is the roles and bindings of a cluster. Its JSON is a line of those that
// devcluster authorize reads.
type Config struct {
	Roles               []*rbacv1.Role               `json:"roles"`
	ClusterRoles        []*rbacv1.ClusterRole        `json:"clusterRoles"`
	RoleBindings        []*rbacv1.RoleBinding        `json:"roleBindings"`
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding `json:"clusterRoleBindings"`
}

// Cluster is a Config whose objects are in Stores, too.
type Cluster struct {
	*followtest.Cluster
	Config
}

// Names are the resources of a Cluster.
var Names = []string{
	"rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
	"clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
}

// NewCluster makes one without objects. The order of its resources is that in which
// whoever follows them gets the most changes of what it knows.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c := &Cluster{Cluster: &followtest.Cluster{TB: tb}}
	for i, kind := range []string{"RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole"} {
		name := Names[i]
		c.Add(cache.Spec{Resource: cache.Resource{GVR: rbacv1.SchemeGroupVersion.WithResource(name[:len(name)-len(".")-len(rbacv1.GroupName)])}, Kind: kind, Namespaced: i < 2, Watch: true})
	}
	return c
}

// Followed are the resources.
func (c *Cluster) Followed() []follow.Resource {
	return followtest.Followed[follow.Resource](c.Cluster)
}

// Set adds or replaces a Role, ClusterRole, RoleBinding or ClusterRoleBinding.
func (c *Cluster) Set(o metav1.Object) {
	c.TB.Helper()
	c.exchange(o, o)
	raw, err := json.Marshal(o)
	if err != nil {
		c.TB.Fatal(err)
	}
	c.Cluster.Put(resourceOf(o), id(o), string(raw))
}

// Unset deletes one.
func (c *Cluster) Unset(o metav1.Object) {
	c.TB.Helper()
	c.exchange(o, nil)
	c.Cluster.Delete(resourceOf(o), id(o))
}

func resourceOf(o metav1.Object) string {
	switch o.(type) {
	case *rbacv1.RoleBinding:
		return Names[0]
	case *rbacv1.Role:
		return Names[1]
	case *rbacv1.ClusterRoleBinding:
		return Names[2]
	default:
		return Names[3]
	}
}

func id(o metav1.Object) string {
	return cache.Key{Namespace: o.GetNamespace(), Name: o.GetName()}.String()
}

// exchange puts an object in the place of those called as o, or none.
func (c *Config) exchange(o, by metav1.Object) {
	switch o.(type) {
	case *rbacv1.RoleBinding:
		c.RoleBindings = exchanged(c.RoleBindings, o, by)
	case *rbacv1.Role:
		c.Roles = exchanged(c.Roles, o, by)
	case *rbacv1.ClusterRoleBinding:
		c.ClusterRoleBindings = exchanged(c.ClusterRoleBindings, o, by)
	case *rbacv1.ClusterRole:
		c.ClusterRoles = exchanged(c.ClusterRoles, o, by)
	}
}

func exchanged[O metav1.Object](all []O, o, by metav1.Object) []O {
	all = slices.DeleteFunc(all, func(other O) bool { return id(other) == id(o) })
	if by != nil {
		all = append(all, by.(O))
	}
	return all
}

// Role, ClusterRole, Binding and ClusterBinding make objects.
func Role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules}
}

func ClusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func Binding(namespace, name string, to rbacv1.RoleRef, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: to, Subjects: subjects}
}

func ClusterBinding(name string, to rbacv1.RoleRef, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: to, Subjects: subjects}
}

// ToRole and ToClusterRole are what a binding is to.
func ToRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
}

func ToClusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// ForUser, ForGroup and ForServiceAccount are subjects.
func ForUser(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func ForGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func ForServiceAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}
