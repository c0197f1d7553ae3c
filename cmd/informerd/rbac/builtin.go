package rbac

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is one that Kubernetes itself serves.
type resource struct {
	schema.GroupResource
	namespaced bool
}

// builtIn are the resources of Kubernetes 1.37 that can be watched, with those that
// are served only if they are asked for. One that is missing here is granted by a
// wildcard, or not at all, where no cluster is at hand.
var builtIn = slices.Concat(
	of("", `configmaps endpoints events limitranges persistentvolumeclaims pods podtemplates replicationcontrollers
		resourcequotas secrets serviceaccounts services`, "namespaces nodes persistentvolumes"),
	of("admissionregistration.k8s.io", "", `mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations
		validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations`),
	of("apiextensions.k8s.io", "", "customresourcedefinitions"),
	of("apiregistration.k8s.io", "", "apiservices"),
	of("apps", "controllerrevisions daemonsets deployments replicasets statefulsets", ""),
	of("autoscaling", "horizontalpodautoscalers", ""),
	of("batch", "cronjobs jobs", ""),
	of("certificates.k8s.io", "podcertificaterequests", "certificatesigningrequests clustertrustbundles"),
	of("coordination.k8s.io", "leasecandidates leases", ""),
	of("discovery.k8s.io", "endpointslices", ""),
	of("events.k8s.io", "events", ""),
	of("flowcontrol.apiserver.k8s.io", "", "flowschemas prioritylevelconfigurations"),
	of("lifecycle.k8s.io", "evictionrequests evictions", ""),
	of("internal.apiserver.k8s.io", "", "storageversions"),
	of("networking.k8s.io", "ingresses networkpolicies", "ingressclasses ipaddresses servicecidrs"),
	of("node.k8s.io", "", "runtimeclasses"),
	of("policy", "poddisruptionbudgets", ""),
	of("rbac.authorization.k8s.io", "rolebindings roles", "clusterrolebindings clusterroles"),
	of("resource.k8s.io", "resourceclaims resourceclaimtemplates", "deviceclasses devicetaintrules resourcepoolstatusrequests resourceslices"),
	of("scheduling.k8s.io", "compositepodgroups podgroups workloads", "priorityclasses"),
	of("storage.k8s.io", "csistoragecapacities", "csidrivers csinodes storageclasses volumeattachments volumeattributesclasses"),
	of("storagemigration.k8s.io", "", "storageversionmigrations"),
)

// of are the resources of a group: those in namespaces, and those in none.
func of(group, namespaced, others string) (out []resource) {
	for _, name := range strings.Fields(namespaced) {
		out = append(out, resource{schema.GroupResource{Group: group, Resource: name}, true})
	}
	for _, name := range strings.Fields(others) {
		out = append(out, resource{schema.GroupResource{Group: group, Resource: name}, false})
	}
	return out
}

func isBuiltIn(gr schema.GroupResource) bool {
	return slices.ContainsFunc(builtIn, func(r resource) bool { return r.GroupResource == gr })
}
