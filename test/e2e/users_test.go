package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// tenant is the only namespace that devcluster's namespaced user may read.
const tenant = "team-a"

// TestNamespacedUser: who may read one namespace gets that namespace; the rest
// is forbidden, and said once.
func TestNamespacedUser(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("namespaced")})
	all := waitSettled(t, i)
	for _, name := range []string{"pods", "configmaps", "secrets", "deployments.apps", "roles.rbac.authorization.k8s.io"} {
		if r := all[name]; r.State != "live" {
			t.Errorf("%s is %s: %s", name, r.State, r.Reason)
		}
	}
	for _, name := range []string{"nodes", "namespaces", "persistentvolumes", "clusterroles.rbac.authorization.k8s.io"} {
		if r := all[name]; r.State != "forbidden" || r.Reason == "" {
			t.Errorf("%s is %q, %q, want forbidden and why", name, r.State, r.Reason)
		}
	}
	var live []string
	for name, r := range all {
		if r.State == "live" {
			live = append(live, name)
		}
	}
	seen := fmt.Sprintf("seen-%d", fresh())
	createConfigMap(t, c, tenant, seen, nil, nil)
	t.Cleanup(func() { deleteConfigMap(t, c, tenant, seen) })
	harness.CheckEqual(t, c, i, harness.Check{Resources: live, Namespace: tenant})
	values, err := i.IndexValues("pods", "namespace")
	if err != nil || len(values) != 1 || values[tenant] == 0 {
		t.Errorf("namespaces of pods: %v, %v, want %s alone", values, err, tenant)
	}
	if a := i.MustGet(t, "/readyz"); a.Status != http.StatusOK {
		t.Errorf("readyz is %d, what is forbidden does not hold it up: %s", a.Status, a.Body)
	}
	checkRefused(t, i, "nodes")
	checkQuiet(t, c, i, "namespaced")
}

// TestNobody: who may read nothing is told so, in state and answers, without a
// flood of log lines or requests.
func TestNobody(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("nobody"), Snapshot: t.TempDir() + "/informerd.db"})
	for name, r := range waitSettled(t, i) {
		if r.State != "forbidden" && r.State != "unwatched" {
			t.Errorf("%s is %s: %s", name, r.State, r.Reason)
		}
	}
	checkRefused(t, i, "pods")
	if a := i.MustGet(t, "/livez"); a.Status != http.StatusOK {
		t.Errorf("livez is %d", a.Status)
	}
	checkQuiet(t, c, i, "nobody")

	// Rights that come later are noticed, without a restart. Another process
	// does not wait as long as this one by now.
	i = harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("nobody")})
	waitSettled(t, i)
	grant(t, c, "nobody", "configmaps")
	harness.Eventually(t, 2*time.Minute, "granted resource live", func() error {
		all, err := i.Resources()
		if err == nil && all["configmaps"].State != "live" {
			err = fmt.Errorf("configmaps is %s", all["configmaps"].State)
		}
		return err
	})
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"configmaps"}})
}

// grant lets a user read one core resource everywhere, for the time of the test.
func grant(t *testing.T, c *harness.Cluster, user, resource string) {
	t.Helper()
	t.Cleanup(grantFor(t, c, user, resource))
}

// grantFor is grant until the function it returns is called.
func grantFor(t *testing.T, c *harness.Cluster, user, resource string) (revoke func()) {
	t.Helper()
	roles, bindings := c.Client.RbacV1().ClusterRoles(), c.Client.RbacV1().ClusterRoleBindings()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e2e-%s-%d", user, fresh())},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}},
	}
	if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		err := errors.Join(bindings.Delete(context.Background(), role.Name, metav1.DeleteOptions{}),
			roles.Delete(context.Background(), role.Name, metav1.DeleteOptions{}))
		if err != nil {
			t.Error(err)
		}
	}
}

// TestNoSecrets: who may read everything but Secrets gets everything but
// Secrets.
func TestNoSecrets(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("nosecrets")})
	waitSettled(t, i)
	harness.Eventually(t, syncTime, "live but for Secrets", func() error { return liveBut(i, "secrets") })
	all, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "secrets")
	var readable []string
	for name, r := range all {
		if r.State == "live" {
			readable = append(readable, name)
		}
	}
	harness.CheckEqual(t, c, i, harness.Check{Resources: readable})
	checkRefused(t, i, "secrets")
	checkQuiet(t, c, i, "nosecrets")
}

// waitSettled waits until every resource is either live or forbidden.
func waitSettled(t *testing.T, i *harness.Informerd) map[string]harness.Resource {
	t.Helper()
	var all map[string]harness.Resource
	harness.Eventually(t, syncTime, "every resource live or forbidden", func() (err error) {
		if all, err = i.Resources(); err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("nothing discovered")
		}
		for name, r := range all {
			if r.State != "live" && r.State != "forbidden" && r.State != "unwatched" {
				return fmt.Errorf("%s is %s: %s", name, r.State, r.Reason)
			}
		}
		return nil
	})
	return all
}

// checkRefused fails the test unless reading a forbidden resource is refused
// with the reason.
func checkRefused(t *testing.T, i *harness.Informerd, name string) {
	t.Helper()
	a := i.MustGet(t, "/v1/resources/"+name+"/objects")
	if a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), "forbidden") || a.Header.Get("Retry-After") == "" {
		t.Errorf("%s, which is forbidden: %d %v %s", name, a.Status, a.Header, a.Body)
	}
}

// checkQuiet fails the test if what is forbidden is logged more than once each,
// or asked for again and again.
func checkQuiet(t *testing.T, c *harness.Cluster, i *harness.Informerd, user string) {
	t.Helper()
	lines, mark, from := len(i.LogLines()), c.AuditMark(t), time.Now()
	requests := func() (n int) {
		for _, r := range c.Audit(t, mark, harness.Agent) {
			if r.User == user {
				n++
			}
		}
		return n
	}
	const watched = 5 * time.Second
	_ = harness.Poll(watched, func() error { return fmt.Errorf("watching for %v", time.Since(from)) })
	resources, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(i.LogLines()) - lines; n > len(resources)/4 {
		t.Errorf("%d log lines in %v: %q", n, watched, i.LogLines()[lines:])
	}
	if n := len(i.LogLines()); n > 3*len(resources)+40 {
		t.Errorf("%d log lines for %d resources", n, len(resources))
	}
	// Each is asked for again after 2, 5, 12 ... seconds, with a few questions.
	if n := requests(); n > 8*len(resources) {
		t.Errorf("%d requests in %v for %d resources", n, watched, len(resources))
	}
	t.Logf("%d log lines, %d of them in the last %v, which had %d requests", len(i.LogLines()), len(i.LogLines())-lines, watched, requests())
}
