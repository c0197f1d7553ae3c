package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// rules are those of the kinds that have one of their own. All others are judged by
// custom.
var rules = map[schema.GroupKind]rule{
	{Kind: "Pod"}:       pod,
	{Kind: "Node"}:      clusterNode,
	{Kind: "Namespace"}: namespace,
	{Kind: "Service"}:   service,
	{Kind: "Secret"}:    secret,
	{Group: "cert-manager.io", Kind: "Certificate"}:                   managedCertificate,
	{Kind: "PersistentVolumeClaim"}:                                   claim,
	{Kind: "PersistentVolume"}:                                        volume,
	{Kind: "ResourceQuota"}:                                           quota,
	{Kind: "ReplicationController"}:                                   replicaSet,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:               attachment,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}:        snapshot,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotContent"}: snapshot,
	{Group: "apps", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Kind: "ReplicaSet"}:                               replicaSet,
	{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
	{Group: "batch", Kind: "Job"}:                                     job,
	{Group: "batch", Kind: "CronJob"}:                                 cronJob,
	{Group: "autoscaling", Kind: autoscaler}:                          horizontalAutoscaler,
	{Group: "policy", Kind: disruptionBudget}:                         budget,
	{Group: "networking.k8s.io", Kind: "Ingress"}:                     ingress,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: signingRequest,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:       flowSchema,
}

const (
	autoscaler       = "HorizontalPodAutoscaler"
	disruptionBudget = "PodDisruptionBudget"
)

// plain are kinds that have no state to be in: data, rights and rules. Nothing but their
// deletion is looked at.
var plain = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "ServiceAccount"}: true, {Kind: "Endpoints"}: true,
	{Kind: "LimitRange"}: true, {Kind: "PodTemplate"}: true,
	{Group: "apps", Kind: "ControllerRevision"}:                      true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:               true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:              true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
}

// records are resources whose objects only tell what happened or that somebody is there.
// They have no health and are not counted.
var records = map[schema.GroupResource]bool{
	{Resource: "events"}: true, {Group: "events.k8s.io", Resource: "events"}: true,
	{Group: "coordination.k8s.io", Resource: "leases"}: true,
}

// Records reports whether the objects of a resource have no health.
func Records(r schema.GroupResource) bool { return records[r] }
