// Package authorize has Kubernetes' own RBAC authorizer judge requests, by roles and
// bindings it is given: what others say of the same requests is compared with it.
package authorize

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// Config is the roles and bindings of a cluster.
type Config struct {
	Roles               []rbacv1.Role               `json:"roles"`
	ClusterRoles        []rbacv1.ClusterRole        `json:"clusterRoles"`
	RoleBindings        []rbacv1.RoleBinding        `json:"roleBindings"`
	ClusterRoleBindings []rbacv1.ClusterRoleBinding `json:"clusterRoleBindings"`
}

// Request is one question. With a Path it is about no resource.
type Request struct {
	User        string   `json:"user"`
	Groups      []string `json:"groups"`
	Verb        string   `json:"verb"`
	Group       string   `json:"group"`
	Resource    string   `json:"resource"`
	Subresource string   `json:"subresource"`
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	Path        string   `json:"path"`
}

// Answer is that to a Request.
type Answer struct {
	Allowed bool `json:"allowed"`
}

// line is a Request, which has a verb, or a Config.
type line struct {
	Config
	Request
}

// Serve reads lines of JSON. One without a verb is a Config, for the Requests after
// it; each Request gets a line with an Answer. It returns at the end of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	buffered := bufio.NewWriter(out)
	s := server{answers: json.NewEncoder(buffered)}
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if err := s.serve(ctx, text); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if err != nil || lines.Buffered() == 0 { // whoever asked may wait for the answer
			if err := buffered.Flush(); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

type server struct {
	judge   authorizer.Authorizer // nil before the first Config
	answers *json.Encoder
}

func (s *server) serve(ctx context.Context, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var l line
	if err := decoder.Decode(&l); err != nil {
		return err
	}
	if l.Verb == "" {
		s.judge = New(l.Config)
		return nil
	}
	if s.judge == nil {
		return errors.New("a request before roles and bindings")
	}
	decision, _, err := s.judge.Authorize(ctx, l.attributes())
	if err != nil {
		return err
	}
	return s.answers.Encode(Answer{decision == authorizer.DecisionAllow})
}

// New is the authorizer that the API server has with --authorization-mode=RBAC.
func New(c Config) authorizer.Authorizer {
	g := newGetters(c)
	return union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), rbac.New(g, g, g, g))
}

func (r *Request) attributes() authorizer.Attributes {
	return authorizer.AttributesRecord{
		User:            &user.DefaultInfo{Name: r.User, Groups: r.Groups},
		Verb:            r.Verb,
		APIGroup:        r.Group,
		APIVersion:      "v1",
		Resource:        r.Resource,
		Subresource:     r.Subresource,
		Namespace:       r.Namespace,
		Name:            r.Name,
		ResourceRequest: r.Path == "",
		Path:            r.Path,
	}
}

// name is that of an object, with its namespace if it has one.
type name struct{ namespace, name string }

// getters have the objects of a Config by their names.
type getters struct {
	roles               map[name]*rbacv1.Role
	clusterRoles        map[string]*rbacv1.ClusterRole
	roleBindings        map[string][]*rbacv1.RoleBinding // by namespace
	clusterRoleBindings []*rbacv1.ClusterRoleBinding
}

func newGetters(c Config) *getters {
	g := &getters{
		roles:        map[name]*rbacv1.Role{},
		clusterRoles: map[string]*rbacv1.ClusterRole{},
		roleBindings: map[string][]*rbacv1.RoleBinding{},
	}
	for i := range c.Roles {
		r := &c.Roles[i]
		g.roles[name{r.Namespace, r.Name}] = r
	}
	for i := range c.ClusterRoles {
		g.clusterRoles[c.ClusterRoles[i].Name] = &c.ClusterRoles[i]
	}
	for i := range c.RoleBindings {
		b := &c.RoleBindings[i]
		g.roleBindings[b.Namespace] = append(g.roleBindings[b.Namespace], b)
	}
	for i := range c.ClusterRoleBindings {
		g.clusterRoleBindings = append(g.clusterRoleBindings, &c.ClusterRoleBindings[i])
	}
	return g
}

func (g *getters) GetRole(_ context.Context, namespace, n string) (*rbacv1.Role, error) {
	if r := g.roles[name{namespace, n}]; r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("roles"), n)
}

func (g *getters) GetClusterRole(_ context.Context, n string) (*rbacv1.ClusterRole, error) {
	if r := g.clusterRoles[n]; r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("clusterroles"), n)
}

func (g *getters) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return g.roleBindings[namespace], nil
}

func (g *getters) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return g.clusterRoleBindings, nil
}
