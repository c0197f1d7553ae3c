package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const gateway = "gateway.networking.k8s.io"

// builtinRules are the references of Kubernetes' own resources.
func builtinRules() []Rule {
	return slices.Concat(workloadRules(), storageRules, networkRules(), accessRules, extensionRules, otherRules)
}

// workloadRules are what pods use, and what they will use once made from a
// template: a CronJob uses its Secret between two runs too.
func workloadRules() []Rule {
	rules := podRules("pods", "spec")
	rules = append(rules, Rule{Edge: "runsOn", From: "pods", Path: "spec.nodeName", To: "nodes", part: apart})
	for _, from := range []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "replicationcontrollers"} {
		rules = append(rules, podRules(from, "spec.template.spec")...)
	}
	rules = append(rules, podRules("cronjobs.batch", "spec.jobTemplate.spec.template.spec")...)
	rules = append(rules, podRules("podtemplates", "template.spec")...)
	rules = append(rules, revisionRules()...)
	return append(rules,
		Rule{Edge: "servedBy", From: "statefulsets.apps", Path: "spec.serviceName", To: "services"},
		Rule{Edge: "class", From: "statefulsets.apps", Path: "spec.volumeClaimTemplates[*].spec.storageClassName", To: storageClasses},
	)
}

// revisionRules are those of ReplicaSets. They are what a Deployment was, and
// would be again after a rollback: an old one keeps using its ConfigMap, but it
// is no fault when that is gone. What is missing now its Deployment says.
func revisionRules() []Rule {
	rules := podRules("replicasets.apps", "spec.template.spec")
	for i := range rules {
		rules[i].loose = true
	}
	return rules
}

// podRules are the references of a pod's spec.
func podRules(from, spec string) []Rule {
	rules := []Rule{
		{Edge: "runsAs", From: from, Path: "serviceAccountName", To: "serviceaccounts"},
		{Edge: "pulls", From: from, Path: "imagePullSecrets[*]", To: "secrets"},
		{Edge: "mounts", From: from, Path: "volumes[*].configMap", To: "configmaps"},
		{Edge: "mounts", From: from, Path: "volumes[*].secret", To: "secrets"},
		{Edge: "mounts", From: from, Path: "volumes[*].projected.sources[*].configMap", To: "configmaps"},
		{Edge: "mounts", From: from, Path: "volumes[*].projected.sources[*].secret", To: "secrets"},
		{Edge: "mounts", From: from, Path: "volumes[*].persistentVolumeClaim", To: "persistentvolumeclaims", part: apart},
		{Edge: "mounts", From: from, Path: "volumes[*].csi.nodePublishSecretRef", To: "secrets"},
		{Edge: "mounts", From: from, Path: "volumes[*].azureFile", To: "secrets"},
		{Edge: "class", From: from, Path: "volumes[*].ephemeral.volumeClaimTemplate.spec.storageClassName", To: storageClasses},
		{Edge: "driver", From: from, Path: "volumes[*].csi.driver", To: csiDrivers, loose: true},
		{Edge: "class", From: from, Path: "priorityClassName", To: "priorityclasses.scheduling.k8s.io"},
		{Edge: "class", From: from, Path: "runtimeClassName", To: "runtimeclasses.node.k8s.io"},
		{Edge: "claims", From: from, Path: "resourceClaims[*].resourceClaimName", To: "resourceclaims.resource.k8s.io", part: apart},
		{Edge: "claims", From: from, Path: "resourceClaims[*].resourceClaimTemplateName", To: "resourceclaimtemplates.resource.k8s.io"},
	}
	for _, driver := range []string{"cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"} {
		rules = append(rules, Rule{Edge: "mounts", From: from, Path: "volumes[*]." + driver + ".secretRef", To: "secrets"})
	}
	for _, containers := range []string{"containers", "initContainers", "ephemeralContainers"} {
		rules = append(rules,
			Rule{Edge: "env", From: from, Path: containers + "[*].env[*].valueFrom.configMapKeyRef", To: "configmaps"},
			Rule{Edge: "env", From: from, Path: containers + "[*].env[*].valueFrom.secretKeyRef", To: "secrets"},
			Rule{Edge: "env", From: from, Path: containers + "[*].envFrom[*].configMapRef", To: "configmaps"},
			Rule{Edge: "env", From: from, Path: containers + "[*].envFrom[*].secretRef", To: "secrets"},
		)
	}
	for i := range rules {
		rules[i].Path = spec + "." + rules[i].Path
	}
	return rules
}

const (
	storageClasses    = "storageclasses.storage.k8s.io"
	attributesClasses = "volumeattributesclasses.storage.k8s.io"
	csiDrivers        = "csidrivers.storage.k8s.io"
	snapshots         = "volumesnapshots.snapshot.storage.k8s.io"
	snapshotContents  = "volumesnapshotcontents.snapshot.storage.k8s.io"
	snapshotClasses   = "volumesnapshotclasses.snapshot.storage.k8s.io"
)

// A driver need not have a CSIDriver, and what a claim was filled from may go
// once that is done.
var storageRules = []Rule{
	{Edge: "binds", From: "persistentvolumeclaims", Path: "spec.volumeName", To: "persistentvolumes"},
	{Edge: "binds", From: "persistentvolumes", Path: "spec.claimRef", To: "persistentvolumeclaims", flip: true, byUID: true},
	{Edge: "class", From: "persistentvolumeclaims", Path: "spec.storageClassName", To: storageClasses},
	{Edge: "class", From: "persistentvolumeclaims", Path: "spec.volumeAttributesClassName", To: attributesClasses},
	{Edge: "source", From: "persistentvolumeclaims", Path: "spec.dataSource", loose: true},
	{Edge: "source", From: "persistentvolumeclaims", Path: "spec.dataSourceRef", loose: true},
	{Edge: "class", From: "persistentvolumes", Path: "spec.storageClassName", To: storageClasses},
	{Edge: "class", From: "persistentvolumes", Path: "spec.volumeAttributesClassName", To: attributesClasses},
	{Edge: "driver", From: "persistentvolumes", Path: "spec.csi.driver", To: csiDrivers, loose: true},
	{Edge: "driver", From: storageClasses, Path: "provisioner", To: csiDrivers, loose: true},
	{Edge: "driver", From: attributesClasses, Path: "driverName", To: csiDrivers, loose: true},
	{Edge: "driver", From: "csinodes.storage.k8s.io", Path: "spec.drivers[*]", To: csiDrivers, loose: true},
	{Edge: "driver", From: "volumeattachments.storage.k8s.io", Path: "spec.attacher", To: csiDrivers, loose: true},
	{Edge: "attaches", From: "volumeattachments.storage.k8s.io", Path: "spec.source.persistentVolumeName", To: "persistentvolumes"},
	{Edge: "attaches", From: "volumeattachments.storage.k8s.io", Path: "spec.nodeName", To: "nodes"},
	{Edge: "source", From: snapshots, Path: "spec.source.persistentVolumeClaimName", To: "persistentvolumeclaims", loose: true},
	{Edge: "binds", From: snapshots, Path: "status.boundVolumeSnapshotContentName", To: snapshotContents},
	{Edge: "class", From: snapshots, Path: "spec.volumeSnapshotClassName", To: snapshotClasses},
	{Edge: "binds", From: snapshotContents, Path: "spec.volumeSnapshotRef", To: snapshots, flip: true, byUID: true},
	{Edge: "class", From: snapshotContents, Path: "spec.volumeSnapshotClassName", To: snapshotClasses},
	{Edge: "class", From: "resourceclaims.resource.k8s.io", Path: "spec.devices.requests[*].exactly.deviceClassName", To: deviceClasses},
	{Edge: "class", From: "resourceclaimtemplates.resource.k8s.io", Path: "spec.spec.devices.requests[*].exactly.deviceClassName", To: deviceClasses},
}

const deviceClasses = "deviceclasses.resource.k8s.io"

func networkRules() []Rule {
	const ingresses = "ingresses.networking.k8s.io"
	rules := []Rule{
		{Edge: "endpoint", From: "endpointslices.discovery.k8s.io", Path: "endpoints[*].targetRef"},
		{Edge: "routes", From: ingresses, Path: "spec.defaultBackend.service", To: "services"},
		{Edge: "routes", From: ingresses, Path: "spec.defaultBackend.resource"},
		{Edge: "routes", From: ingresses, Path: "spec.rules[*].http.paths[*].backend.service", To: "services"},
		{Edge: "routes", From: ingresses, Path: "spec.rules[*].http.paths[*].backend.resource"},
		{Edge: "tls", From: ingresses, Path: "spec.tls[*]", To: "secrets"},
		{Edge: "class", From: ingresses, Path: "spec.ingressClassName", To: "ingressclasses.networking.k8s.io"},
		{Edge: "parameters", From: "ingressclasses.networking.k8s.io", Path: "spec.parameters"},
		{Edge: "parameters", From: "gatewayclasses." + gateway, Path: "spec.parametersRef"},
		{Edge: "parameters", From: "gateways." + gateway, Path: "spec.infrastructure.parametersRef"},
		{Edge: "class", From: "gateways." + gateway, Path: "spec.gatewayClassName", To: "gatewayclasses." + gateway},
		{Edge: "tls", From: "gateways." + gateway, Path: "spec.listeners[*].tls.certificateRefs[*]", kind: schema.GroupKind{Kind: "Secret"}},
	}
	service := schema.GroupKind{Kind: "Service"}
	for _, route := range []string{"httproutes", "grpcroutes", "tcproutes", "tlsroutes", "udproutes"} {
		from := route + "." + gateway
		rules = append(rules,
			Rule{Edge: "attaches", From: from, Path: "spec.parentRefs[*]", kind: schema.GroupKind{Group: gateway, Kind: "Gateway"}},
			Rule{Edge: "routes", From: from, Path: "spec.rules[*].backendRefs[*]", kind: service},
			Rule{Edge: "routes", From: from, Path: "spec.rules[*].filters[*].requestMirror.backendRef", kind: service},
		)
	}
	return rules
}

var accessRules = []Rule{
	{Edge: "grants", From: "rolebindings.rbac.authorization.k8s.io", Path: "roleRef"},
	{Edge: "grants", From: "clusterrolebindings.rbac.authorization.k8s.io", Path: "roleRef"},
	{Edge: "subject", From: "rolebindings.rbac.authorization.k8s.io", Path: "subjects[*]", only: "ServiceAccount"},
	{Edge: "subject", From: "clusterrolebindings.rbac.authorization.k8s.io", Path: "subjects[*]", only: "ServiceAccount"},
	{Edge: "holds", From: "serviceaccounts", Path: "secrets[*]", To: "secrets"},
	{Edge: "holds", From: "secrets", Path: "metadata.annotations['kubernetes.io/service-account.name']", To: "serviceaccounts", flip: true},
	{Edge: "pulls", From: "serviceaccounts", Path: "imagePullSecrets[*]", To: "secrets"},
}

var extensionRules = []Rule{
	{Edge: "calls", From: "mutatingwebhookconfigurations." + admission, Path: "webhooks[*].clientConfig.service", To: "services"},
	{Edge: "calls", From: "validatingwebhookconfigurations." + admission, Path: "webhooks[*].clientConfig.service", To: "services"},
	{Edge: "calls", From: "apiservices.apiregistration.k8s.io", Path: "spec.service", To: "services"},
	{Edge: "calls", From: crds, Path: "spec.conversion.webhook.clientConfig.service", To: "services"},
	{Edge: "applies", From: "validatingadmissionpolicybindings." + admission, Path: "spec.policyName", To: "validatingadmissionpolicies." + admission},
	{Edge: "applies", From: "mutatingadmissionpolicybindings." + admission, Path: "spec.policyName", To: "mutatingadmissionpolicies." + admission},
	{Edge: "class", From: "flowschemas.flowcontrol.apiserver.k8s.io", Path: "spec.priorityLevelConfiguration", To: priorityLevels},
}

const (
	admission      = "admissionregistration.k8s.io"
	priorityLevels = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
)

const crds = "customresourcedefinitions.apiextensions.k8s.io"

// Events outlive what they are about.
var otherRules = []Rule{
	{Edge: "scales", From: "horizontalpodautoscalers.autoscaling", Path: "spec.scaleTargetRef"},
	{Edge: "scales", From: "verticalpodautoscalers.autoscaling.k8s.io", Path: "spec.targetRef"},
	{Edge: "about", From: "events", Path: "involvedObject", loose: true},
	{Edge: "about", From: "events", Path: "related", loose: true},
	{Edge: "about", From: "events.events.k8s.io", Path: "regarding", loose: true},
	{Edge: "about", From: "events.events.k8s.io", Path: "related", loose: true},
}

// hubs are related to so much that walking through them relates everything to
// everything. A name narrows it to one object of each namespace.
var hubs = map[string]string{
	"nodes":                                  "",
	"namespaces":                             "",
	storageClasses:                           "",
	attributesClasses:                        "",
	snapshotClasses:                          "",
	csiDrivers:                               "",
	deviceClasses:                            "",
	priorityLevels:                           "",
	"priorityclasses.scheduling.k8s.io":      "",
	"runtimeclasses.node.k8s.io":             "",
	"ingressclasses.networking.k8s.io":       "",
	"gatewayclasses." + gateway:              "",
	"clusterroles.rbac.authorization.k8s.io": "",
	crds:                                     "",
	"serviceaccounts":                        "default",
	"configmaps":                             "kube-root-ca.crt",
}
