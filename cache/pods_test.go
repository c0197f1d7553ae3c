package cache

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var podResource = Resource{Cluster: "east", GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}

func podSpec() Spec {
	return Spec{
		Resource:   podResource,
		Kind:       "Pod",
		Namespaced: true,
		Watch:      true,
		Indexes:    map[string]string{"node": "spec.nodeName", "phase": "status.phase", "image": "spec.containers[*].image"},
		Drop:       []string{"metadata.managedFields"},
	}
}

// realPod returns pod i of a cluster of n at a resourceVersion: about 8 KB of
// JSON as an API server serves it, managedFields included, with the random parts
// (UIDs, hashes, addresses, times) that keep real pods from compressing well.
func realPod(i, version int) []byte {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	u := func() string {
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Uint32N(1<<16), r.Uint32N(1<<12), r.Uint32N(1<<12), r.Uint64N(1<<48))
	}
	app := i / 20
	hash := fmt.Sprintf("%x", 0x5d9f8b00+app*7919)
	ns := fmt.Sprintf("team-%02d", app%50)
	name := fmt.Sprintf("app-%04d-%s-%05x", app, hash, i)
	stamp := fmt.Sprintf("2026-0%d-%02dT%02d:%02d:%02dZ", 1+r.IntN(9), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60))
	ip := fmt.Sprintf("10.%d.%d.%d", r.IntN(200), r.IntN(256), r.IntN(256))
	node := fmt.Sprintf("node-%03d", r.IntN(330))
	phase := []string{"Running", "Running", "Running", "Running", "Running", "Pending", "Succeeded"}[r.IntN(7)]
	owner := fmt.Sprintf("%08x-aaaa-4bbb-8ccc-%012x", app, app*104729)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"generateName":"app-%04d-%s-","namespace":%q,"uid":%q,"resourceVersion":"%d","creationTimestamp":%q,`, name, app, hash, ns, u(), version, stamp)
	p(`"labels":{"app":"app-%04d","app.kubernetes.io/component":"backend","app.kubernetes.io/instance":"app-%04d","app.kubernetes.io/managed-by":"Helm","pod-template-hash":%q,"team":%q,"tier":"tier-%d"},`, app, app, hash, ns, app%5)
	p(`"annotations":{"checksum/config":"%016x%016x%016x%016x","prometheus.io/port":"9102","prometheus.io/scrape":"true","cni.projectcalico.org/containerID":"%016x%016x%016x%016x","cni.projectcalico.org/podIP":"%s/32"},`, app, app*31, app*37, app*41, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), ip)
	p(`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"app-%04d-%s","uid":%q,"controller":true,"blockOwnerDeletion":true}],"managedFields":[`, app, hash, owner)
	for m, manager := range []string{"kube-controller-manager", "kubelet"} {
		if m > 0 {
			p(",")
		}
		p(`{"manager":%q,"operation":"Update","apiVersion":"v1","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:app.kubernetes.io/component":{},"f:app.kubernetes.io/instance":{},"f:pod-template-hash":{},"f:team":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},"f:spec":{"f:affinity":{},"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"POD_IP\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}`, manager, stamp, owner)
	}
	p(`]},"spec":{"volumes":[{"name":"config","configMap":{"name":"app-%04d-config","defaultMode":420}},{"name":"kube-api-access-%05x","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[`, app, r.Uint32N(1<<20))
	for c, cname := range []string{"main", "sidecar"} {
		if c > 0 {
			p(",")
		}
		p(`{"name":%q,"image":"registry.example.com/%s/app-%04d:%d.%d.%d","args":["--listen=:8080","--verbosity=%d"],"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"SHARD","value":"%d"},{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],"resources":{"limits":{"cpu":"500m","memory":"%dMi"},"requests":{"cpu":"100m","memory":"128Mi"}},"volumeMounts":[{"name":"config","readOnly":true,"mountPath":"/etc/app"},{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"livenessProbe":{"httpGet":{"path":"/healthz","port":"http","scheme":"HTTP"},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"runAsNonRoot":true}}`,
			cname, ns, app, 1+app%3, app%10, app%7, app%4, i%16, 128<<(app%4))
	}
	p(`],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"app-%04d","serviceAccount":"app-%04d","nodeName":%q,"securityContext":{},"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":{"labelSelector":{"matchLabels":{"app":"app-%04d"}},"topologyKey":"kubernetes.io/hostname"}}]}},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":%q,"conditions":[`, app, app, node, app, phase)
	for c, cond := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		if c > 0 {
			p(",")
		}
		p(`{"type":%q,"status":"True","lastProbeTime":null,"lastTransitionTime":%q}`, cond, stamp)
	}
	p(`],"hostIP":"192.168.%d.%d","hostIPs":[{"ip":"192.168.1.7"}],"podIP":%q,"podIPs":[{"ip":%q}],"startTime":%q,"containerStatuses":[`, r.IntN(4), r.IntN(255), ip, ip, stamp)
	for c, cname := range []string{"main", "sidecar"} {
		if c > 0 {
			p(",")
		}
		p(`{"name":%q,"state":{"running":{"startedAt":%q}},"lastState":{},"ready":true,"restartCount":%d,"image":"registry.example.com/%s/app-%04d:1.%d","imageID":"registry.example.com/app@sha256:%016x%016x%016x%016x","containerID":"containerd://%016x%016x%016x%016x","started":true}`,
			cname, stamp, r.IntN(4), ns, app, app%10, app, app*3, app*5, app*11, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
	}
	p(`],"qosClass":"Burstable"}}`)
	return []byte(b.String())
}
