package kubeapi

import (
	"context"

	apidiscovery "k8s.io/api/apidiscovery/v2"
)

func (a *API) groups(_ context.Context, cluster string) []apidiscovery.APIGroupDiscovery {
	return a.served(cluster)
}
