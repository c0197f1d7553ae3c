package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// reader is the role of all users: they may read everything, which is as much harm as
// rights allow, and write nothing.
const reader = "attack-reader"

// Users makes service accounts who may read everything, with a token of each. Each has a
// namespace of its own, since those of one namespace are one client to informerd.
func Users(ctx context.Context, c *harness.Cluster, names ...string) (tokens []string, undo func(), err error) {
	undo = func() { removeUsers(context.WithoutCancel(ctx), c, names) }
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
			{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
	}
	for _, name := range names {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: name})
		token, err := makeUser(ctx, c, name)
		if err != nil {
			return nil, undo, fmt.Errorf("make %s: %w", name, err)
		}
		tokens = append(tokens, token)
	}
	_, err = c.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	_, berr := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	for _, err := range []error{err, berr} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, undo, err
		}
	}
	return tokens, undo, nil
}

// makeUser makes one, in a namespace of the same name.
func makeUser(ctx context.Context, c *harness.Cluster, name string) (token string, err error) {
	meta := metav1.ObjectMeta{Name: name}
	_, err = c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	accounts := c.Client.CoreV1().ServiceAccounts(name)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	lasts := int64((12 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lasts}}
	answer, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// removeUsers leaves what is not there alone. Where no controller empties namespaces that
// are deleted, they are to go nevertheless.
func removeUsers(ctx context.Context, c *harness.Cluster, names []string) {
	_ = errors.Join(
		c.Client.RbacV1().ClusterRoleBindings().Delete(ctx, reader, metav1.DeleteOptions{}),
		c.Client.RbacV1().ClusterRoles().Delete(ctx, reader, metav1.DeleteOptions{}))
	namespaces := c.Client.CoreV1().Namespaces()
	for _, name := range names {
		_ = c.Client.CoreV1().ServiceAccounts(name).Delete(ctx, name, metav1.DeleteOptions{})
		_ = namespaces.Delete(ctx, name, metav1.DeleteOptions{})
		if ns, err := namespaces.Get(ctx, name, metav1.GetOptions{}); err == nil {
			ns.Spec.Finalizers = nil
			_, _ = namespaces.Finalize(ctx, ns, metav1.UpdateOptions{})
		}
	}
}
