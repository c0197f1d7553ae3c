package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var (
	readVerbs = []string{"get", "list", "watch"}
	apply     = metav1.ApplyOptions{FieldManager: "devcluster", Force: true}
)

// tenantRules are what the namespaced user may read in its namespace.
var tenantRules = []struct {
	group     string
	resources []string
}{
	{"", []string{"configmaps", "endpoints", "events", "limitranges", "persistentvolumeclaims",
		"pods", "pods/log", "podtemplates", "replicationcontrollers", "resourcequotas", "secrets",
		"serviceaccounts", "services"}},
	{"apps", []string{"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"}},
	{"autoscaling", []string{"horizontalpodautoscalers"}},
	{"batch", []string{"cronjobs", "jobs"}},
	{"discovery.k8s.io", []string{"endpointslices"}},
	{"events.k8s.io", []string{"events"}},
	{"networking.k8s.io", []string{"ingresses", "networkpolicies"}},
	{"policy", []string{"poddisruptionbudgets"}},
	{"rbac.authorization.k8s.io", []string{"rolebindings", "roles"}},
}

// createUsers creates what the restricted users need. The user nobody needs
// nothing: a certificate is enough to be authenticated.
func createUsers(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: TenantNamespace}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create users: %w", err)
	}
	role := rbacac.Role("tenant-reader", TenantNamespace)
	for _, rule := range tenantRules {
		role.WithRules(rbacac.PolicyRule().WithAPIGroups(rule.group).WithResources(rule.resources...).WithVerbs(readVerbs...))
	}
	if _, err := client.RbacV1().Roles(TenantNamespace).Apply(ctx, role, apply); err != nil {
		return fmt.Errorf("create users: %w", err)
	}
	binding := rbacac.RoleBinding("tenant-reader", TenantNamespace).
		WithSubjects(subject("namespaced")).
		WithRoleRef(rbacac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName("tenant-reader"))
	if _, err := client.RbacV1().RoleBindings(TenantNamespace).Apply(ctx, binding, apply); err != nil {
		return fmt.Errorf("create users: %w", err)
	}
	if err := applyNoSecrets(ctx, config); err != nil {
		return fmt.Errorf("create users: %w", err)
	}
	clusterBinding := rbacac.ClusterRoleBinding(noSecrets).
		WithSubjects(subject("nosecrets")).
		WithRoleRef(rbacac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(noSecrets))
	if _, err := client.RbacV1().ClusterRoleBindings().Apply(ctx, clusterBinding, apply); err != nil {
		return fmt.Errorf("create users: %w", err)
	}
	return nil
}

// awaitServiceAccounts waits for the controller that makes it possible to
// create pods in the namespaces that every cluster has.
func (c *Cluster) awaitServiceAccounts(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.StartTimeout)
	defer cancel()
	for _, namespace := range []string{metav1.NamespaceDefault, TenantNamespace} {
		for {
			_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("wait for service account default in %s: %w", namespace, err)
			}
			sleep(ctx, 50*time.Millisecond)
		}
	}
	return nil
}

func subject(user string) *rbacac.SubjectApplyConfiguration {
	return rbacac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.UserKind).WithName(user)
}
