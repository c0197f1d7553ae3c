package kubeapi

import "net/http"

func (a *API) reachMode(r *http.Request, t *target) error { return nil }
