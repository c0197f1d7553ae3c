package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// noon is when objects are judged.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ago is a time before noon as Kubernetes writes it.
func ago(d time.Duration) string { return noon.Add(-d).Format(time.RFC3339) }

// made is an object: "apps/v1 Deployment", how long ago it was made, and what else it has.
func made(kind string, age time.Duration, rest string) string {
	version, name, _ := strings.Cut(kind, " ")
	if rest != "" {
		rest = "," + rest
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x","namespace":"a","creationTimestamp":%q}%s}`, version, name, ago(age), rest)
}

// verdict is a Health as "status Reason: message".
func (h Health) verdict() string {
	s := h.Status.String()
	if h.Reason != "" {
		s += " " + h.Reason
	}
	if h.Message != "" {
		s += ": " + h.Message
	}
	return s
}

func container0(state, last string, restarts int) string {
	return fmt.Sprintf(`{"name":"web","state":{%s},"lastState":{%s},"restartCount":%d}`, state, last, restarts)
}

func waits(reason, message string) string {
	return fmt.Sprintf(`"waiting":{"reason":%q,"message":%q}`, reason, message)
}

func ended(code int, reason string, d time.Duration) string {
	return fmt.Sprintf(`"terminated":{"exitCode":%d,"reason":%q,"finishedAt":%q}`, code, reason, ago(d))
}

func podStatusOf(phase, ready string, containers ...string) string {
	return fmt.Sprintf(`"status":{"phase":%q,"startTime":%q,"conditions":[{"type":"Ready","status":%q,"reason":"ContainersNotReady","message":"containers with unready status: [web]","lastTransitionTime":%q}],"containerStatuses":[%s]}`,
		phase, ago(time.Minute), ready, ago(time.Minute), strings.Join(containers, ","))
}

const running = `"running":{"startedAt":"2026-01-02T11:00:00Z"}`

// cond is a condition; the time is how long ago it came to be so.
func cond(kind, status, reason, message string, d time.Duration) string {
	return fmt.Sprintf(`{"type":%q,"status":%q,"reason":%q,"message":%q,"lastTransitionTime":%q}`, kind, status, reason, message, ago(d))
}

func conditionsOf(all ...string) string { return `"conditions":[` + strings.Join(all, ",") + `]` }

func conds(all ...string) string {
	return `"status":{"conditions":[` + strings.Join(all, ",") + `]}`
}

// conditions beside other members of a status.
func statusWith(members string, all ...string) string {
	return `"status":{` + members + `,"conditions":[` + strings.Join(all, ",") + `]}`
}

var verdicts = []struct{ name, object, want string }{
	{"pod, ready", made("v1 Pod", time.Hour, podStatusOf("Running", "True", container0(running, "", 0))), "good"},
	{"pod, image", made("v1 Pod", time.Minute, podStatusOf("Pending", "False", container0(waits("ImagePullBackOff", "image not found"), "", 0))),
		"bad ImagePullBackOff: container web: image not found"},
	{"pod, config", made("v1 Pod", time.Minute, podStatusOf("Pending", "False", container0(waits("CreateContainerConfigError", `secret "s" not found`), "", 0))),
		`bad CreateContainerConfigError: container web: secret "s" not found`},
	{"pod, crash loop", made("v1 Pod", time.Hour, podStatusOf("Running", "False", container0(waits("CrashLoopBackOff", "back-off 5m0s"), ended(2, "Error", time.Minute), 7))),
		"bad CrashLoopBackOff: container web ended with exit code 2; 7 restarts"},
	{"pod, out of memory", made("v1 Pod", time.Hour, podStatusOf("Running", "False", container0(waits("CrashLoopBackOff", "back-off 5m0s"), ended(137, "OOMKilled", time.Minute), 7))),
		"bad OOMKilled: container web was killed for its use of memory (exit code 137); 7 restarts"},
	{"pod, just out of memory", made("v1 Pod", time.Hour, podStatusOf("Running", "False", container0(ended(137, "OOMKilled", time.Second), "", 0))),
		"bad OOMKilled: container web was killed for its use of memory (exit code 137)"},
	{"pod, ran into memory a minute ago", made("v1 Pod", time.Hour, podStatusOf("Running", "True", container0(running, ended(137, "OOMKilled", time.Minute), 1))),
		"progressing OOMKilled: container web was killed for its use of memory (exit code 137); it runs again after 1 restart"},
	{"pod, flapping", made("v1 Pod", time.Hour, podStatusOf("Running", "True", container0(running, ended(1, "Error", time.Minute), 9))),
		"bad Error: container web ended with exit code 1; it runs again after 9 restarts"},
	{"pod, failed long ago", made("v1 Pod", time.Hour, podStatusOf("Running", "True", container0(running, ended(1, "Error", time.Hour), 9))), "good"},
	{"pod, not ready", made("v1 Pod", time.Hour, podStatusOf("Running", "False", container0(running, "", 0))), "progressing NotReady: containers with unready status: [web]"},
	{"pod, init container", made("v1 Pod", time.Minute, `"status":{"phase":"Pending","initContainerStatuses":[`+container0(waits("CrashLoopBackOff", "back-off"), ended(1, "Error", time.Second), 3)+`],"containerStatuses":[`+container0(waits("PodInitializing", ""), "", 0)+`]}`),
		"bad CrashLoopBackOff: init container web ended with exit code 1; 3 restarts"},
	{"pod, starting", made("v1 Pod", time.Minute, podStatusOf("Pending", "False", container0(waits("ContainerCreating", ""), "", 0))), "progressing ContainerCreating: container web: it is being started"},
	{"pod, starting for long", made("v1 Pod", time.Hour, `"status":{"phase":"Pending","startTime":"`+ago(time.Hour)+`","containerStatuses":[`+container0(waits("ContainerCreating", ""), "", 0)+`]}`),
		"bad ContainerCreating: container web: it is being started"},
	{"pod, unschedulable", made("v1 Pod", time.Minute, `"status":{"phase":"Pending","conditions":[`+cond("PodScheduled", "False", "Unschedulable", "0/3 nodes are available", time.Minute)+`]}`),
		"bad Unschedulable: 0/3 nodes are available"},
	{"pod, unschedulable yet", made("v1 Pod", time.Second, `"status":{"phase":"Pending","conditions":[`+cond("PodScheduled", "False", "Unschedulable", "0/3 nodes are available", time.Second)+`]}`),
		"progressing Unschedulable: 0/3 nodes are available"},
	{"pod, held back", made("v1 Pod", time.Hour, `"status":{"phase":"Pending","conditions":[`+cond("PodScheduled", "False", "SchedulingGated", "Scheduling is blocked", time.Hour)+`]}`),
		"progressing SchedulingGated: Scheduling is blocked"},
	{"pod, evicted", made("v1 Pod", time.Hour, `"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}`), "bad Evicted: The node was low on resource: memory."},
	{"pod, failed", made("v1 Pod", time.Hour, podStatusOf("Failed", "False", container0(ended(3, "Error", time.Minute), "", 0))), "bad Error: container web ended with exit code 3"},
	{"pod, completed", made("v1 Pod", time.Hour, podStatusOf("Succeeded", "False", container0(ended(0, "Completed", time.Minute), "", 0))), "good Completed: it has completed"},
	{"pod, lost", made("v1 Pod", time.Hour, `"status":{"phase":"Unknown"}`), "unknown Unknown: its node does not answer"},

	{"deployment", made("apps/v1 Deployment", time.Hour, `"spec":{"replicas":2},`+statusWith(`"replicas":2,"readyReplicas":2,"updatedReplicas":2,"availableReplicas":2`, cond("Available", "True", "", "", time.Hour))), "good: 2 of 2 replicas are ready"},
	{"deployment, stuck", made("apps/v1 Deployment", time.Hour, `"spec":{"replicas":8},`+statusWith(`"replicas":10,"readyReplicas":4,"updatedReplicas":4,"availableReplicas":4`, cond("Available", "True", "", "", time.Hour), cond("Progressing", "False", "ProgressDeadlineExceeded", "", time.Hour))),
		"bad ProgressDeadlineExceeded: 4 of 8 replicas are ready: the rollout makes no progress"},
	{"deployment, rolling out", made("apps/v1 Deployment", time.Hour, `"spec":{"replicas":8},`+statusWith(`"replicas":10,"readyReplicas":8,"updatedReplicas":4,"availableReplicas":8`, cond("Available", "True", "", "", time.Hour), cond("Progressing", "True", "ReplicaSetUpdated", "", time.Minute))),
		"progressing Progressing: 8 of 8 replicas are ready; 4 of 8 are of the latest version"},
	{"deployment, paused", made("apps/v1 Deployment", time.Hour, `"spec":{"replicas":8,"paused":true},`+statusWith(`"replicas":8,"readyReplicas":8,"updatedReplicas":4,"availableReplicas":8`, cond("Available", "True", "", "", time.Hour))),
		"progressing Paused: 8 of 8 replicas are ready; 4 of 8 are of the latest version, and the rollout is paused"},
	{"deployment, unavailable", made("apps/v1 Deployment", time.Hour, `"spec":{"replicas":9},`+statusWith(`"replicas":9,"updatedReplicas":9`, cond("Available", "False", "MinimumReplicasUnavailable", "no", time.Minute))),
		"progressing MinimumReplicasUnavailable: 0 of 9 replicas are ready"},
	{"deployment, unavailable for long", made("apps/v1 Deployment", time.Hour, `"spec":{"replicas":9},`+statusWith(`"replicas":9,"updatedReplicas":9`, cond("Available", "False", "MinimumReplicasUnavailable", "no", time.Hour))),
		"bad MinimumReplicasUnavailable: 0 of 9 replicas are ready"},
	{"deployment, quota", made("apps/v1 Deployment", time.Minute, `"spec":{"replicas":9},`+conds(cond("ReplicaFailure", "True", "FailedCreate", "exceeded quota: x", time.Minute))), "bad FailedCreate: 0 of 9 replicas are ready: exceeded quota: x"},
	{"deployment, none wanted", made("apps/v1 Deployment", time.Hour, `"spec":{"replicas":0},"status":{}`), "good"},
	{"deployment, unseen", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":4},"status":{"observedGeneration":3}}`, "progressing LatestGenerationNotObserved: its controller has seen generation 3, and not yet 4"},
	{"replica set, an old one", made("apps/v1 ReplicaSet", time.Hour, `"spec":{"replicas":0},"status":{"replicas":0,"observedGeneration":2}`), "good: 0 of 0 replicas are ready"},
	{"stateful set, none", made("apps/v1 StatefulSet", time.Hour, `"spec":{"replicas":3},"status":{"replicas":1,"currentRevision":"a","updateRevision":"a"}`), "bad NotReady: 0 of 3 replicas are ready"},
	{"stateful set, new", made("apps/v1 StatefulSet", time.Minute, `"spec":{"replicas":3},"status":{"replicas":1,"readyReplicas":1,"currentRevision":"a","updateRevision":"a"}`), "progressing NotReady: 1 of 3 replicas are ready"},
	{"daemon set, none", made("apps/v1 DaemonSet", time.Hour, `"status":{"desiredNumberScheduled":12,"currentNumberScheduled":12,"updatedNumberScheduled":12}`), "bad NotReady: 0 of 12 pods are ready"},
	{"daemon set, updating", made("apps/v1 DaemonSet", time.Hour, `"status":{"desiredNumberScheduled":12,"currentNumberScheduled":12,"updatedNumberScheduled":5,"numberReady":12,"numberAvailable":12}`),
		"progressing Progressing: 12 of 12 pods are ready; 5 of 12 are of the latest version"},

	{"node", made("v1 Node", time.Hour, conds(cond("Ready", "True", "KubeletReady", "", time.Hour))), "good"},
	{"node, cordoned", made("v1 Node", time.Hour, `"spec":{"unschedulable":true},`+conds(cond("Ready", "True", "KubeletReady", "", time.Hour))), "good SchedulingDisabled: it takes no new pods"},
	{"node, not ready", made("v1 Node", time.Hour, conds(cond("Ready", "False", "KubeletNotReady", "runtime is down", time.Hour))), "bad NotReady: runtime is down"},
	{"node, silent", made("v1 Node", time.Hour, conds(cond("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", time.Hour))), "bad NotReady: Kubelet stopped posting node status."},
	{"node, kernel", made("v1 Node", time.Hour, conds(cond("Ready", "True", "", "", time.Hour), cond("KernelDeadlock", "True", "DockerHung", "", time.Hour))), "bad KernelDeadlock: its kernel is in a deadlock"},
	{"node, disk", made("v1 Node", time.Hour, conds(cond("Ready", "True", "", "", time.Hour), cond("DiskPressure", "True", "KubeletHasDiskPressure", "", time.Hour))), "bad DiskPressure: it is short of disk space"},
	{"node, new", made("v1 Node", time.Hour, `"spec":{"taints":[{"key":"node.cloudprovider.kubernetes.io/uninitialized","effect":"NoSchedule"}]},`+conds(cond("Ready", "True", "", "", time.Hour))),
		"progressing Uninitialized: its cloud provider has not set it up yet"},

	{"widget, degraded, and why", made("example.com/v1 Widget", time.Hour, `"status":{"phase":"Degraded","conditions":[`+cond("Ready", "False", "BrokerLost", "broker 3 is away", time.Second)+`]}`), "bad BrokerLost: broker 3 is away"},
	{"claim", made("v1 PersistentVolumeClaim", time.Hour, `"status":{"phase":"Bound"}`), "good"},
	{"claim, pending", made("v1 PersistentVolumeClaim", time.Minute, `"spec":{"storageClassName":"fast"},"status":{"phase":"Pending"}`), "progressing Pending: no volume is bound to it; its storage class is fast"},
	{"claim, unbound", made("v1 PersistentVolumeClaim", time.Hour, `"status":{"phase":"Pending"}`), "unknown Pending: no volume is bound to it"},
	{"claim, not provisioned", `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","annotations":{"volume.kubernetes.io/storage-provisioner":"csi.example"}},"status":{"phase":"Pending"}}`, "bad Pending: no volume is bound to it"},
	{"claim, lost", made("v1 PersistentVolumeClaim", time.Hour, `"spec":{"volumeName":"pv-1"},"status":{"phase":"Lost"}`), "bad ClaimLost: its volume pv-1 is gone"},
	{"volume, failed", made("v1 PersistentVolume", time.Hour, `"status":{"phase":"Failed","reason":"VolumeFailedDelete","message":"still attached"}`), "bad VolumeFailedDelete: still attached"},
	{"volume, released", made("v1 PersistentVolume", time.Hour, `"status":{"phase":"Released"}`), "good Released"},

	{"job, complete", made("batch/v1 Job", time.Hour, conds(cond("Complete", "True", "CompletionsReached", "", time.Minute))), "good Completed: it has completed"},
	{"job, failed", made("batch/v1 Job", time.Hour, conds(cond("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit", time.Minute))), "bad BackoffLimitExceeded: Job has reached the specified backoff limit"},
	{"job, runs", made("batch/v1 Job", time.Hour, `"status":{"startTime":"`+ago(time.Minute)+`","active":1}`), "good Running: it runs: 1 active, 0 succeeded, 0 failed"},
	{"cron job, suspended", made("batch/v1 CronJob", time.Hour, `"spec":{"suspend":true}`), "good Suspended: it is suspended"},
	{"autoscaler", made("autoscaling/v2 HorizontalPodAutoscaler", time.Hour, conds(cond("AbleToScale", "True", "", "", time.Hour), cond("ScalingActive", "False", "FailedGetResourceMetric", "no metrics", time.Hour))), "bad FailedGetResourceMetric: no metrics"},
	{"autoscaler, off", made("autoscaling/v2 HorizontalPodAutoscaler", time.Hour, conds(cond("ScalingActive", "False", "ScalingDisabled", "", time.Hour))), "good"},
	{"budget", made("policy/v1 PodDisruptionBudget", time.Hour, `"status":{"currentHealthy":1,"desiredHealthy":2,"expectedPods":3}`), "progressing InsufficientPods: 1 of 2 pods are healthy that have to be: none may be evicted"},
	{"budget, nothing to spare", made("policy/v1 PodDisruptionBudget", time.Hour, `"status":{"currentHealthy":2,"desiredHealthy":2,"expectedPods":2,"disruptionsAllowed":0}`), "good"},

	{"service", made("v1 Service", time.Hour, `"spec":{"type":"ClusterIP"},"status":{"loadBalancer":{}}`), "good"},
	{"load balancer", made("v1 Service", time.Hour, `"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{}}`), "bad NoAddress: its load balancer has no address"},
	{"load balancer, new", made("v1 Service", time.Minute, `"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{}}`), "progressing NoAddress: its load balancer has no address"},
	{"load balancer, with an address", made("v1 Service", time.Hour, `"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}`), "good"},
	{"ingress, new", made("networking.k8s.io/v1 Ingress", time.Minute, `"status":{"loadBalancer":{}}`), "progressing NoAddress: no controller has given it an address"},
	{"ingress, old", made("networking.k8s.io/v1 Ingress", time.Hour, `"status":{"loadBalancer":{}}`), "unknown NoAddress: no controller has given it an address"},

	{"namespace", made("v1 Namespace", time.Hour, `"status":{"phase":"Active"}`), "good"},
	{"namespace, terminating", `{"apiVersion":"v1","kind":"Namespace","metadata":{"deletionTimestamp":"` + ago(time.Hour) + `"},` + conds(cond("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", "x/y in 1 resource instances", time.Hour)) + `}`,
		"bad Terminating: it is being deleted: x/y in 1 resource instances"},
	{"definition", made("apiextensions.k8s.io/v1 CustomResourceDefinition", time.Hour, conds(cond("NamesAccepted", "True", "", "", time.Hour), cond("Established", "True", "", "", time.Hour))), "good"},
	{"definition, in conflict", made("apiextensions.k8s.io/v1 CustomResourceDefinition", time.Hour, conds(cond("NamesAccepted", "False", "PluralConflict", "taken", time.Hour))), "bad PluralConflict: taken"},
	{"api service", made("apiregistration.k8s.io/v1 APIService", time.Hour, conds(cond("Available", "False", "MissingEndpoints", "no endpoints", time.Hour))), "bad MissingEndpoints: no endpoints"},
	{"quota", made("v1 ResourceQuota", time.Hour, `"status":{"hard":{"pods":"10","services.loadbalancers":"0"},"used":{"pods":"9","services.loadbalancers":"0"}}`), "good"},
	{"quota, full", made("v1 ResourceQuota", time.Hour, `"status":{"hard":{"requests.memory":"1Gi","pods":"10"},"used":{"requests.memory":"1024Mi","pods":"10"}}`), "bad QuotaExhausted: 1024Mi of 1Gi requests.memory are used, and all of 1 resource more"},
	{"request", made("certificates.k8s.io/v1 CertificateSigningRequest", time.Hour, `"status":{}`), "bad Pending: nobody has approved it"},

	{"certificate", made("cert-manager.io/v1 Certificate", time.Hour, statusWith(`"notAfter":"2026-03-01T00:00:00Z"`, cond("Ready", "True", "Ready", "", time.Hour))), "good"},
	{"certificate, not renewed", made("cert-manager.io/v1 Certificate", time.Hour, statusWith(`"notAfter":"2026-03-01T00:00:00Z"`, cond("Ready", "True", "Ready", "", time.Hour), cond("Issuing", "False", "Failed", "the order is invalid", time.Minute))), "bad IssuingFailed: the order is invalid"},
	{"certificate, being renewed", made("cert-manager.io/v1 Certificate", time.Hour, statusWith(`"notAfter":"2026-03-01T00:00:00Z"`, cond("Ready", "True", "Ready", "", time.Hour), cond("Issuing", "True", "Renewing", "", time.Minute))), "good"},
	{"certificate, expired", made("cert-manager.io/v1 Certificate", time.Hour, statusWith(`"notAfter":"2026-01-01T00:00:00Z"`, cond("Ready", "True", "Ready", "", time.Hour))), "bad Expired: it expired at 2026-01-01T00:00:00Z"},
	{"custom, degraded", made("example.com/v1 Widget", time.Hour, conds(cond("Ready", "True", "", "", time.Hour), cond("Degraded", "True", "DiskFull", "no room", time.Hour))), "bad DiskFull: no room"},
	{"custom, reconciles", made("example.com/v1 Widget", time.Hour, conds(cond("Reconciling", "True", "Applying", "step 2", time.Hour))), "progressing Applying: step 2"},
	{"custom, not ready", made("example.com/v1 Widget", time.Hour, conds(cond("Ready", "False", "Provisioning", "", time.Minute))), "progressing Provisioning: its condition Ready is false: Provisioning"},
	{"custom, not ready for long", made("example.com/v1 Widget", time.Hour, conds(cond("Ready", "False", "Provisioning", "", time.Hour))), "bad Provisioning: its condition Ready is false: Provisioning"},
	{"custom, error", made("example.com/v1 Widget", time.Hour, conds(cond("Synced", "False", "ReconcileError", "403", time.Second))), "bad ReconcileError: 403"},
	{"custom, nobody knows", made("example.com/v1 Widget", time.Hour, conds(cond("Ready", "Unknown", "", "", time.Hour))), "unknown Unknown: its condition Ready is unknown"},
	{"custom, phase", made("example.com/v1 Widget", time.Hour, `"status":{"phase":"Failed","message":"out of luck"}`), "bad Failed: out of luck"},
	{"attachment", made("storage.k8s.io/v1 VolumeAttachment", time.Hour, `"spec":{"nodeName":"n1"},"status":{"attached":true}`), "good"},
	{"attachment, failed", made("storage.k8s.io/v1 VolumeAttachment", time.Hour, `"spec":{"nodeName":"n1"},"status":{"attached":false,"attachError":{"time":"2026-01-02T11:00:00Z","message":"in use by n2"}}`), "bad AttachError: in use by n2"},
	{"attachment, new", made("storage.k8s.io/v1 VolumeAttachment", time.Second, `"spec":{"nodeName":"n1"}`), "progressing NotAttached: it is being attached to node n1"},
	{"snapshot", made("snapshot.storage.k8s.io/v1 VolumeSnapshot", time.Hour, `"status":{"readyToUse":true}`), "good"},
	{"snapshot, failed", made("snapshot.storage.k8s.io/v1 VolumeSnapshot", time.Hour, `"status":{"readyToUse":false,"error":{"message":"no such class"}}`), "bad SnapshotError: no such class"},
	{"snapshot, new", made("snapshot.storage.k8s.io/v1 VolumeSnapshot", time.Second, ``), "progressing NotReadyToUse: it is not ready to use yet"},
	{"custom, available and degraded", made("argoproj.io/v1alpha1 Rollout", time.Hour, statusWith(`"phase":"Degraded","message":"ProgressDeadlineExceeded"`, cond("Available", "True", "", "", time.Hour))), "bad Degraded: ProgressDeadlineExceeded"},
	{"custom, ready and pending", made("example.com/v1 Widget", time.Hour, statusWith(`"phase":"Pending"`, cond("Ready", "True", "", "", time.Hour))), "good"},
	{"custom, phase and health", made("elasticsearch.k8s.elastic.co/v1 Elasticsearch", time.Hour, `"status":{"phase":"Ready","health":"red"}`), "bad red: its health is red"},
	{"custom, failed in part", made("velero.io/v1 Backup", time.Hour, `"status":{"phase":"PartiallyFailed"}`), "bad PartiallyFailed: its phase is PartiallyFailed"},
	{"custom, ran and failed", made("tekton.dev/v1 TaskRun", time.Hour, conds(cond("Succeeded", "False", "TaskRunTimeout", "too slow", time.Second))), "bad TaskRunTimeout: too slow"},
	{"custom, runs", made("tekton.dev/v1 TaskRun", time.Hour, conds(cond("Succeeded", "Unknown", "Running", "1 of 2 done", time.Hour))), "progressing Running: 1 of 2 done"},
	{"custom, ready before the last change", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":4},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":3}]}}`,
		"progressing LatestGenerationNotObserved: its controller has seen generation 3, and not yet 4"},
	{"route", made("gateway.networking.k8s.io/v1 HTTPRoute", time.Hour, `"status":{"parents":[{`+conditionsOf(cond("Accepted", "True", "", "", time.Hour))+`},{`+conditionsOf(cond("Accepted", "True", "", "", time.Hour), cond("ResolvedRefs", "False", "BackendNotFound", "no Service web", time.Second))+`}]}`),
		"bad BackendNotFound: no Service web"},
	{"custom, parents by name", made("example.com/v1 Widget", time.Hour, `"status":{"parents":["a"],"listeners":{"x":1}}`), "good"},
	{"custom, state", made("example.com/v1 Widget", time.Hour, `"status":{"state":"Swimming"}`), "good Swimming: its state is Swimming"},
	{"argo", made("argoproj.io/v1alpha1 Application", time.Hour, `"status":{"health":{"status":"Degraded","message":"pods crash"},"sync":{"status":"Synced"}}`), "bad Degraded: pods crash"},
	{"custom, without status", made("example.com/v1 Widget", time.Hour, `"spec":{}`), "good"},
	{"being deleted", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"deletionTimestamp":"` + ago(time.Minute) + `","finalizers":["x/y","a/b","c/d","e/f"]}}`,
		"progressing Terminating: it is being deleted and waits for its finalizers: x/y, a/b, c/d and 1 more"},
	{"pod that does not go", `{"apiVersion":"v1","kind":"Pod","metadata":{"deletionTimestamp":"` + ago(2*time.Minute) + `"}}`, "bad Terminating: it is being deleted"},
}

func TestVerdicts(t *testing.T) {
	for _, test := range verdicts {
		if !json.Valid([]byte(test.object)) {
			t.Errorf("%s is no JSON: %s", test.name, test.object)
			continue
		}
		if got := Of([]byte(test.object), noon); got.verdict() != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.verdict(), test.want)
		}
	}
}

// TestSince: when it came to this is told where the object tells it.
func TestSince(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"pod, crash loop": time.Minute, "pod, image": time.Minute, "node, not ready": time.Hour, "deployment, unavailable": time.Minute, "claim, unbound": time.Hour,
		"custom, degraded": time.Hour, "stateful set, none": 0, "being deleted": time.Minute,
	} {
		for _, test := range verdicts {
			if test.name != name {
				continue
			}
			var at time.Time
			if want > 0 {
				at = noon.Add(-want)
			}
			if got := Of([]byte(test.object), noon); !got.Since.Equal(at) {
				t.Errorf("%s: since %v, want %v", name, got.Since, at)
			}
		}
	}
}

// TestUntil: until the time that a verdict says it lasts it is the same, and then it is
// another.
func TestUntil(t *testing.T) {
	met := 0
	for _, test := range verdicts {
		h := Of([]byte(test.object), noon)
		if h.Until.IsZero() {
			if later := Of([]byte(test.object), noon.AddDate(10, 0, 0)); later != h {
				t.Errorf("%s: without an end, and ten years later it is %v, not %v", test.name, later.verdict(), h.verdict())
			}
			continue
		}
		met++
		if before := Of([]byte(test.object), h.Until.Add(-time.Nanosecond)); before != h {
			t.Errorf("%s: before its end it is %v, not %v", test.name, before.verdict(), h.verdict())
		}
		if after := Of([]byte(test.object), h.Until); after.Status == h.Status && after.Reason == h.Reason && after.Until.Equal(h.Until) {
			t.Errorf("%s: at its end it is still %v", test.name, after.verdict())
		}
	}
	if met < 10 {
		t.Errorf("only %d verdicts have an end", met)
	}
}

// FuzzOf: any JSON has a verdict of valid text, and the same again.
func FuzzOf(f *testing.F) {
	for _, test := range verdicts {
		f.Add(test.object)
	}
	for kind := range rules {
		version := "v1"
		if kind.Group != "" {
			version = kind.Group + "/v1"
		}
		f.Add(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":[],"spec":"x","status":{"conditions":{},"phase":3}}`, version, kind.Kind))
		f.Add(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"ownerReferences":{}},"status":{"conditions":[null,1,{"type":1}],"containerStatuses":[[],{"state":1}]}}`, version, kind.Kind))
		f.Add(fmt.Sprintf(`{"apiVersion":%q,"kind":%q}`, version, kind.Kind))
	}
	f.Add(`[]`)
	f.Add(`""`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		h := Of([]byte(text), noon)
		if !utf8.ValidString(h.Reason+h.Message) || len(h.Message) > maxMessage || len(h.Reason) > maxReason || strings.ContainsAny(h.Message, "\n\r") {
			t.Errorf("%q: %q", text, h.verdict())
		}
		if again := Of([]byte(text), noon); again != h {
			t.Errorf("%q: %v, and then %v", text, h, again)
		}
		o := parse([]byte(text), noon)
		o.owner()
		o.over()
	})
}

// TestUntilTheFirst: of two conditions that lose patience at different times the first one
// that does says until when a verdict lasts.
func TestUntilTheFirst(t *testing.T) {
	o := made("example.com/v1 Widget", time.Hour, conds(cond("Ready", "False", "Busy", "", time.Minute), cond("Available", "False", "Busy", "", 5*time.Minute)))
	h := Of([]byte(o), noon)
	if want := noon.Add(stuckAfter - 5*time.Minute); h.Status != Progressing || !h.Until.Equal(want) {
		t.Errorf("%v until %v, want %v", h.Status, h.Until, want)
	}
	if h = Of([]byte(o), h.Until); h.Status != Bad {
		t.Errorf("then it is %v", h.Status)
	}
}
