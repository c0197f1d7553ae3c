package discovery

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const servicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"

// errLostService is why a group version failed that discovery left out.
var errLostService = errors.New("absent from discovery while its APIService exists")

// serviceSpec is what is kept of an APIService's spec.
type serviceSpec struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	// Service is nil for what the API server serves itself.
	Service *struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
}

func (s serviceSpec) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: s.Group, Version: s.Version}
}

// serviceName is the name an APIService must have to register gv.
func serviceName(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// builtIn are the groups that every kube-apiserver serves from its own
// storage, or did. It decides only where APIServices cannot be read.
var builtIn = map[string]bool{
	"":                             true,
	"admissionregistration.k8s.io": true,
	"apiextensions.k8s.io":         true,
	"apiregistration.k8s.io":       true,
	"apps":                         true,
	"autoscaling":                  true,
	"batch":                        true,
	"certificates.k8s.io":          true,
	"coordination.k8s.io":          true,
	"discovery.k8s.io":             true,
	"events.k8s.io":                true,
	"extensions":                   true,
	"flowcontrol.apiserver.k8s.io": true,
	"internal.apiserver.k8s.io":    true,
	"networking.k8s.io":            true,
	"node.k8s.io":                  true,
	"policy":                       true,
	"rbac.authorization.k8s.io":    true,
	"resource.k8s.io":              true,
	"scheduling.k8s.io":            true,
	"storage.k8s.io":               true,
	"storagemigration.k8s.io":      true,
}
