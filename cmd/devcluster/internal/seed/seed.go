package seed

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

func Demo(ctx context.Context, config *rest.Config, wait bool, logf func(string, ...any)) error {
	return errors.New("not yet")
}

func Nodes(ctx context.Context, config *rest.Config, n int) error { return errors.New("not yet") }
