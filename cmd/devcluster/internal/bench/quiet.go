package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// AwaitQuiet returns when the controllers have looked at what was loaded, which
// they answer with an event per node, and nothing is written any more.
func AwaitQuiet(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	// The API server renews its lease every ten seconds, so a few writes are
	// quiet. Controllers may take their time between two rounds.
	const writes, calm = 3, 3
	var last int64
	for quiet := 0; quiet < calm; {
		list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("wait until nothing is written: %w", err)
		}
		version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
		if err != nil {
			return fmt.Errorf("wait until nothing is written: %w", err)
		}
		if version-last <= writes {
			quiet++
		} else {
			quiet = 0
		}
		last = version
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("wait until nothing is written: still %d writes per second: %w", version-last, context.Cause(ctx))
		}
	}
	return nil
}
