package drain

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
)

// budget is a PodDisruptionBudget.
type budget struct {
	name             string
	selector         labels.Selector
	allowed          int  // evictions now
	healthy, desired int  // pods
	always           bool // pods that are not ready may go whatever the budget
	here             int  // ready pods on the node that it is about
}

// over are the budgets of a pod.
func (f *foresight) over(ctx context.Context, p *pod) (all []*budget, err error) {
	ns := p.key.Namespace
	known, ok := f.budgets[ns]
	if !ok {
		if known, err = f.read(ctx, ns); err != nil {
			return nil, err
		}
		f.budgets[ns] = known
	}
	for _, b := range known {
		if b.selector.Matches(labels.Set(p.Metadata.Labels)) {
			all = append(all, b)
		}
	}
	return all, nil
}

// read reads the budgets of a namespace, and counts whom on the node they are about.
func (f *foresight) read(ctx context.Context, namespace string) ([]*budget, error) {
	if f.Budgets == nil || !f.Knows(namespace) {
		f.blind = true
		return nil, nil
	}
	found, err := f.Budgets.Select(ctx, cache.Query{Namespaces: []string{namespace}})
	if err != nil || len(found.Objects) == 0 {
		return nil, err
	}
	var all []*budget
	for _, o := range found.Objects {
		b, err := readBudget(o)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	for _, p := range f.here {
		for _, b := range all {
			if p.key.Namespace == namespace && p.ready() && b.selector.Matches(labels.Set(p.Metadata.Labels)) {
				b.here++
			}
		}
	}
	return all, nil
}

func readBudget(o *cache.Object) (*budget, error) {
	var raw struct {
		Spec struct {
			Selector                   *metav1.LabelSelector
			UnhealthyPodEvictionPolicy string
		}
		Status struct{ DisruptionsAllowed, CurrentHealthy, DesiredHealthy int }
	}
	if err := read(o, &raw); err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(raw.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", o.Key(), err)
	}
	return &budget{
		name: o.Name(), selector: selector, allowed: raw.Status.DisruptionsAllowed,
		healthy: raw.Status.CurrentHealthy, desired: raw.Status.DesiredHealthy, always: raw.Spec.UnhealthyPodEvictionPolicy == "AlwaysAllow",
	}, nil
}

// refusal is why the API server would refuse to evict a pod, "" if it would not: what
// pkg/registry/core/pod/storage/eviction.go of Kubernetes decides by.
func refusal(over []*budget, p *pod) string {
	if p.Status.Phase == "Pending" || p.Metadata.DeletionTimestamp != "" {
		return ""
	}
	if len(over) > 1 {
		names := make([]string, len(over))
		for i, b := range over {
			names[i] = b.name
		}
		return "it has several PodDisruptionBudgets, of which Kubernetes takes one at most: " + strings.Join(names, ", ")
	}
	for _, b := range over {
		if !p.ready() && (b.always || b.desired > 0 && b.healthy >= b.desired) {
			continue
		}
		if b.allowed <= 0 {
			return fmt.Sprintf("PodDisruptionBudget %s allows no disruption: %d healthy, %d needed", b.name, b.healthy, b.desired)
		}
	}
	return ""
}
