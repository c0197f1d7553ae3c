package seed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A pool is a group of equal machines.
type pool struct {
	name, instance, cpu, memory string
	labels                      map[string]string
	taints                      []corev1.Taint
}

var (
	generalPool = pool{name: "general", instance: "m7i.2xlarge", cpu: "8", memory: "32Gi"}
	memoryPool  = pool{name: "memory", instance: "r7i.2xlarge", cpu: "8", memory: "64Gi"}
	gpuPool     = pool{name: "gpu", instance: "g6.2xlarge", cpu: "8", memory: "32Gi",
		labels: map[string]string{"nvidia.com/gpu.present": "true"},
		taints: []corev1.Taint{{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}}}
	// pools says which pool the n-th node belongs to; it repeats.
	pools = []pool{generalPool, generalPool, generalPool, memoryPool, generalPool, generalPool,
		memoryPool, generalPool, generalPool, memoryPool, generalPool, gpuPool}
)

// Nodes creates n nodes that kwok runs pods on.
func Nodes(ctx context.Context, config *rest.Config, n int) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for i := range n {
		if err := createNode(ctx, client, i); err != nil {
			return fmt.Errorf("create node %d: %w", i, err)
		}
	}
	return nil
}

func createNode(ctx context.Context, client kubernetes.Interface, i int) error {
	want := newNode(i)
	status := want.Status
	node, err := client.CoreV1().Nodes().Create(ctx, want, metav1.CreateOptions{FieldManager: "kubelet"})
	if apierrors.IsAlreadyExists(err) {
		node, err = client.CoreV1().Nodes().Get(ctx, want.Name, metav1.GetOptions{})
	}
	if err != nil || len(node.Status.NodeInfo.KubeletVersion) > 0 {
		return err
	}
	node.Status = status
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}

func newNode(i int) *corev1.Node {
	p := pools[i%len(pools)]
	zone := "eu-central-1" + string("abc"[i%3])
	ip := fmt.Sprintf("10.0.%d.%d", 16*(i%3)+i/240, 11+i%240)
	name := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", 16*(i%3)+i/240, 11+i%240)
	labels := map[string]string{
		"beta.kubernetes.io/arch":          "amd64",
		"beta.kubernetes.io/os":            "linux",
		"kubernetes.io/arch":               "amd64",
		"kubernetes.io/hostname":           name,
		"kubernetes.io/os":                 "linux",
		"node.kubernetes.io/instance-type": p.instance,
		"topology.kubernetes.io/region":    "eu-central-1",
		"topology.kubernetes.io/zone":      zone,
		"example.com/pool":                 p.name,
		"type":                             "kwok",
	}
	for k, v := range p.labels {
		labels[k] = v
	}
	capacity := corev1.ResourceList{
		"cpu":               resource.MustParse(p.cpu),
		"memory":            resource.MustParse(p.memory),
		"ephemeral-storage": resource.MustParse("100Gi"),
		"pods":              resource.MustParse("110"),
	}
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      labels,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{
			PodCIDR:    fmt.Sprintf("10.244.%d.0/24", i%250),
			ProviderID: fmt.Sprintf("aws:///%s/i-0%016x", zone, 0x4f1d00c0ffee+i),
			Taints:     p.taints,
		},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: ip},
				{Type: corev1.NodeHostName, Address: name},
			},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID:     fmt.Sprintf("ec2%029x", 0xa11ce+i),
				SystemUUID:    fmt.Sprintf("ec2a11ce-0000-4000-8000-%012x", i),
				BootID:        fmt.Sprintf("b007b007-0000-4000-8000-%012x", i),
				KernelVersion: "6.12.22-27.96.amzn2023.x86_64", OSImage: "Amazon Linux 2023",
				ContainerRuntimeVersion: "containerd://2.0.5", KubeletVersion: "v1.36.3",
				OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
}
