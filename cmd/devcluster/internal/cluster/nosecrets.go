package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// noSecrets is the ClusterRole of the user nosecrets.
const noSecrets = "everything-but-secrets"

// Every group but that of APIServices itself has an APIService: built in, of a
// CRD, or aggregated.
var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// applyNoSecrets allows reading whatever the server serves now, except secrets.
// RBAC cannot say "except": the core group's resources are listed by name, and
// the other groups too, since a wildcard would include the core group.
func applyNoSecrets(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	core, err := client.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil {
		return fmt.Errorf("list core resources: %w", err)
	}
	resources := map[string]bool{}
	for _, r := range core.APIResources {
		_, sub, _ := strings.Cut(r.Name, "/")
		// A GET of exec, attach or proxy does more than reading.
		if r.Name != "secrets" && (sub == "" || sub == "status" || sub == "log" || sub == "scale") {
			resources[r.Name] = true
		}
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	list, err := dyn.Resource(apiServices).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	groups := map[string]bool{apiServices.Group: true}
	for _, item := range list.Items {
		if group, _, _ := unstructured.NestedString(item.Object, "spec", "group"); group != "" {
			groups[group] = true
		}
	}
	role := rbacac.ClusterRole(noSecrets).WithRules(
		rbacac.PolicyRule().WithAPIGroups("").WithResources(slices.Sorted(maps.Keys(resources))...).WithVerbs(readVerbs...),
		rbacac.PolicyRule().WithAPIGroups(slices.Sorted(maps.Keys(groups))...).WithResources("*").WithVerbs(readVerbs...),
		rbacac.PolicyRule().WithNonResourceURLs("*").WithVerbs("get"),
	)
	_, err = client.RbacV1().ClusterRoles().Apply(ctx, role, apply)
	return err
}

// keepNoSecretsCurrent repeats applyNoSecrets whenever a group comes or goes,
// until ctx ends; it returns nil then. While the API server is stopped it waits
// for it.
func (c *Cluster) keepNoSecretsCurrent(ctx context.Context) error {
	config := c.creds.restConfig(c.server())
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		w, err := dyn.Resource(apiServices).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			sleep(ctx, time.Second)
			continue
		}
		for settled(ctx, w.ResultChan(), 100*time.Millisecond) {
			if err := applyNoSecrets(ctx, config); err != nil {
				break // the server went away; the next watch starts over
			}
		}
		w.Stop()
		sleep(ctx, 100*time.Millisecond)
	}
	return nil
}

// settled waits for an event, and then until no more came for a while. It
// returns false if the channel was closed or ctx ended.
func settled[T any](ctx context.Context, events <-chan T, quiet time.Duration) bool {
	var timer <-chan time.Time
	for {
		select {
		case _, ok := <-events:
			if !ok {
				return false
			}
			timer = time.After(quiet)
		case <-timer:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
