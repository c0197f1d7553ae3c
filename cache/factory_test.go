package cache

import (
	"context"
	"fmt"
	"testing"
)

// Whoever looks while resources are applied sees none of them or all.
func TestApplyAtOnce(t *testing.T) {
	const resources = 300
	f := NewFactory(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	defer func() { cancel(); <-ran }()

	seen := make(chan map[int]bool, 1)
	applied := make(chan struct{})
	go func() {
		counts := map[int]bool{}
		for {
			counts[len(f.Informers())] = true
			select {
			case <-applied:
				seen <- counts
				return
			default:
			}
		}
	}()
	var specs []Spec
	for n := range resources {
		spec := podSpec()
		spec.GVR.Resource = fmt.Sprintf("kind%d", n)
		specs = append(specs, spec)
	}
	if err := f.Apply(podResource.Cluster, specs); err != nil {
		t.Fatal(err)
	}
	close(applied)
	counts := <-seen
	delete(counts, 0)
	delete(counts, resources)
	if len(counts) > 0 {
		t.Errorf("%d different parts of %d resources were seen", len(counts), resources)
	}
}
