// Package bench fills a cluster with pods for benchmarks: as large and as
// varied as those of a production cluster, but quiet. Nothing changes them once
// they are loaded: their nodes and owners exist, their ReplicaSets want exactly
// them, and no kubelet, real or simulated, reports on them.
//
// All names and contents follow from a pod's number, so that a load that was
// interrupted can be continued, and two clusters hold the same pods.
package bench

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	namespaces = 20
	nodes      = 500
	apps       = 300 // each with one ReplicaSet, in one namespace
)

// Label is on everything that this package creates in the cluster's scope.
const Label = "devcluster.informerd.io/bench"

// podID is where pod i of n belongs.
type podID struct {
	app     int
	replica int
}

func id(i int) podID { return podID{app: i % apps, replica: i / apps} }

// node spreads the replicas of an app over different nodes, and all pods evenly.
func (p podID) node() int { return (p.app*167 + p.replica*13) % nodes }

// replicas is how many of n pods belong to app.
func replicas(app, n int) int {
	if app >= n {
		return 0
	}
	return (n - app + apps - 1) / apps
}

func namespaceName(app int) string { return fmt.Sprintf("bench-%02d", app%namespaces) }

func nodeName(node int) string { return fmt.Sprintf("bench-node-%03d", node) }

func nodeIP(node int) string { return fmt.Sprintf("10.1.%d.%d", node/250, node%250+1) }

var (
	domains = []string{"billing", "catalog", "checkout", "delivery", "fraud", "identity", "inventory", "ledger",
		"loyalty", "media", "notify", "orders", "pricing", "profile", "quote", "returns", "search", "session",
		"shipping", "tax"}
	roles = []string{"api", "worker", "consumer", "gateway", "scheduler", "indexer", "exporter", "cache",
		"frontend", "sync", "webhook", "batch", "stream", "proxy", "store"}
	teams = []string{"atlas", "borealis", "cobalt", "dune", "ember", "fjord", "granite", "harbor"}
	tiers = []string{"backend", "frontend", "data"}
)

func appName(app int) string {
	return domains[app%len(domains)] + "-" + roles[app/len(domains)%len(roles)]
}

func replicaSetName(app int) string { return appName(app) + "-" + templateHash(app) }

func templateHash(app int) string { return suffix(scatter(app, 9), 9) }

func version(app int) string { return fmt.Sprintf("v%d.%d.%d", 1+app%4, app%17, app%9) }

func image(app int) string {
	return fmt.Sprintf("registry.example.com/%s/%s:%s", domains[app%len(domains)], appName(app), version(app))
}

// suffix makes names like Kubernetes does: no vowels, nothing to misread.
// Different x below 27^n have different suffixes.
func suffix(x uint64, n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[x%uint64(len(letters))]
		x /= uint64(len(letters))
	}
	return string(b)
}

// scatter maps x to a number below 27^n, different ones to different ones. It
// makes neighbours look unrelated.
func scatter(x, n int) uint64 {
	space := uint64(1)
	for range n {
		space *= 27
	}
	return uint64(x+1) * 2654435761 % space // a prime, so coprime to 27
}

func digest(parts ...any) string { return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, parts...))) }

// newPod returns pod i, owned by the ReplicaSet with the given UID.
func newPod(i int, owner types.UID) *corev1.Pod {
	p := id(i)
	template := podTemplate(p.app)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace = namespaceName(p.app)
	pod.Name = podName(i)
	pod.GenerateName = replicaSetName(p.app) + "-"
	// What the network plugin writes.
	pod.Annotations["cni.projectcalico.org/containerID"] = digest("sandbox", i)
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion:         "apps/v1",
		Kind:               "ReplicaSet",
		Name:               replicaSetName(p.app),
		UID:                owner,
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(true),
	}}
	pod.Spec.NodeName = nodeName(p.node())
	return pod
}

func podName(i int) string {
	return replicaSetName(id(i).app) + "-" + suffix(scatter(i, 5), 5)
}

func podIP(i int) string { return fmt.Sprintf("10.%d.%d.%d", 128+i/62500, i/250%250, i%250+1) }

// podTemplate is what all pods of an app have in common.
func podTemplate(app int) corev1.PodTemplateSpec {
	name, domain := appName(app), domains[app%len(domains)]
	quantity := resource.MustParse
	config := func(key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: configName(app)}, Key: key}}
	}
	secret := func(key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secretName(app)}, Key: key}}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				"app":                       name,
				"app.kubernetes.io/name":    name,
				"app.kubernetes.io/part-of": domain,
				"app.kubernetes.io/version": version(app),
				"pod-template-hash":         templateHash(app),
				"team":                      teams[app%len(teams)],
				"tier":                      tiers[app%len(tiers)],
			},
			Annotations: map[string]string{
				"checksum/config":      digest("config", app),
				"prometheus.io/port":   "9090",
				"prometheus.io/scrape": "true",
			},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "app",
			ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "registry"}},
			Containers: []corev1.Container{{
				Name:  name,
				Image: image(app),
				Args:  []string{"--config=/etc/app/config.yaml", "--listen=:8080", "--log-format=json"},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Env: []corev1.EnvVar{
					{Name: "LOG_LEVEL", ValueFrom: config("log-level")},
					{Name: "DATABASE_URL", ValueFrom: secret("database-url")},
				},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": quantity("100m"), "memory": quantity("256Mi")},
					Limits:   corev1.ResourceList{"memory": quantity(strconv.Itoa(320+app%8*64) + "Mi")},
				},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "config", MountPath: "/etc/app", ReadOnly: true},
				},
			}, {
				Name:  "proxy",
				Image: "registry.example.com/platform/envoy:v1.31.2",
			}},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: configName(app)}}}},
			},
		},
	}
}

// podStatus is what a kubelet reports of pod i when all is well.
func podStatus(i int, now metav1.Time) corev1.PodStatus {
	p := id(i)
	status := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		HostIP:    nodeIP(p.node()),
		HostIPs:   []corev1.HostIP{{IP: nodeIP(p.node())}},
		PodIP:     podIP(i),
		PodIPs:    []corev1.PodIP{{IP: podIP(i)}},
		StartTime: &now,
		QOSClass:  corev1.PodQOSBurstable,
	}
	for _, t := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	container := func(name, image string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name:        name,
			Image:       image,
			ImageID:     image[:len(image)-len(version(p.app))-1] + "@sha256:" + digest(image),
			ContainerID: "containerd://" + digest(name, i),
			Ready:       true,
			Started:     ptr.To(true),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}
	}
	status.ContainerStatuses = []corev1.ContainerStatus{
		container(appName(p.app), image(p.app)),
		container("proxy", "registry.example.com/platform/envoy:v1.31.2"),
	}
	return status
}

// newReplicaSet returns the owner of an app's pods, wanting exactly those that
// exist when n pods are loaded.
func newReplicaSet(app, n int) *appsv1.ReplicaSet {
	template := podTemplate(app)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceName(app),
			Name:      replicaSetName(app),
			Labels:    template.Labels,
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(replicas(app, n))),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"app": template.Labels["app"], "pod-template-hash": template.Labels["pod-template-hash"]}},
			Template: template,
		},
	}
}

func configName(app int) string { return appName(app) + "-config" }
func secretName(app int) string { return appName(app) + "-credentials" }

func newConfigMap(app int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(app), Name: configName(app), Labels: map[string]string{"app": appName(app)}},
		Data: map[string]string{
			"log-level":   "info",
			"config.yaml": fmt.Sprintf("service: %s\nversion: %s\nworkers: %d\n", appName(app), version(app), 4+app%5),
		},
	}
}

func newSecret(app int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(app), Name: secretName(app), Labels: map[string]string{"app": appName(app)}},
		Data:       map[string][]byte{"database-url": fmt.Appendf(nil, "postgres://%s:%s@db.data:5432/%s", appName(app), digest("password", app)[:16], domains[app%len(domains)])},
	}
}

// newNode returns a ready node that nothing else is scheduled to.
func newNode(node int) *corev1.Node {
	zone := string(rune('a' + node%3))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName(node),
			Labels: map[string]string{
				Label:                              "true",
				"beta.kubernetes.io/arch":          "amd64",
				"beta.kubernetes.io/os":            "linux",
				"kubernetes.io/arch":               "amd64",
				"kubernetes.io/hostname":           nodeName(node),
				"kubernetes.io/os":                 "linux",
				"node.kubernetes.io/instance-type": "m6i.4xlarge",
				"topology.kubernetes.io/region":    "eu-central-1",
				"topology.kubernetes.io/zone":      "eu-central-1" + zone,
			},
		},
		Spec: corev1.NodeSpec{
			ProviderID: fmt.Sprintf("aws:///eu-central-1%s/i-%s", zone, digest("node", node)[:17]),
			Taints:     []corev1.Taint{{Key: Label, Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
}

func nodeStatus(node int, now metav1.Time) corev1.NodeStatus {
	capacity := corev1.ResourceList{
		"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"),
		"ephemeral-storage": resource.MustParse("100Gi"), "pods": resource.MustParse("1000"),
	}
	status := corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: nodeIP(node)},
			{Type: corev1.NodeHostName, Address: nodeName(node)},
		},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: digest("machine", node)[:32], SystemUUID: digest("system", node)[:32], BootID: digest("boot", node)[:32],
			KernelVersion: "6.8.0-1021-aws", OSImage: "Ubuntu 24.04.2 LTS", ContainerRuntimeVersion: "containerd://2.0.4",
			KubeletVersion: "v1.36.3", KubeProxyVersion: "", OperatingSystem: "linux", Architecture: "amd64",
		},
	}
	for _, c := range []struct {
		kind   corev1.NodeConditionType
		status corev1.ConditionStatus
		reason string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"},
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"},
	} {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{
			Type: c.kind, Status: c.status, Reason: c.reason, LastHeartbeatTime: now, LastTransitionTime: now})
	}
	return status
}
