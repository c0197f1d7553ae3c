package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
)

// testPod returns a pod of about 7.6 KB as an API server writes it.
func testPod() []byte {
	env := []any{}
	fieldsEnv := map[string]any{".": map[string]any{}}
	for _, name := range []string{"POD_NAME", "POD_NAMESPACE", "LOG_LEVEL", "DATABASE_URL", "CACHE_TTL", "OTEL_EXPORTER"} {
		env = append(env, map[string]any{"name": name, "value": "value-of-" + strings.ToLower(name)})
		fieldsEnv[`k:{"name":"`+name+`"}`] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
	}
	probe := map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8080, "scheme": "HTTP"},
		"initialDelaySeconds": 5, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
	container := func(name, image string) map[string]any {
		return map[string]any{"name": name, "image": image, "args": []any{"--port=8080", "--verbose"},
			"ports": []any{map[string]any{"name": "http", "containerPort": 8080, "protocol": "TCP"}}, "env": env,
			"resources":     map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "256Mi"}, "requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
			"volumeMounts":  []any{map[string]any{"name": "kube-api-access-9x2lk", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
			"livenessProbe": probe, "readinessProbe": probe, "terminationMessagePath": "/dev/termination-log",
			"terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent"}
	}
	fieldsContainer := func() any {
		return map[string]any{".": map[string]any{}, "f:args": map[string]any{}, "f:env": fieldsEnv, "f:image": map[string]any{},
			"f:imagePullPolicy": map[string]any{}, "f:livenessProbe": map[string]any{".": map[string]any{}, "f:failureThreshold": map[string]any{},
				"f:httpGet": map[string]any{".": map[string]any{}, "f:path": map[string]any{}, "f:port": map[string]any{}, "f:scheme": map[string]any{}}},
			"f:name": map[string]any{}, "f:resources": map[string]any{".": map[string]any{}, "f:limits": map[string]any{".": map[string]any{}, "f:cpu": map[string]any{}, "f:memory": map[string]any{}}}}
	}
	status := func(name string) any {
		return map[string]any{"name": name, "state": map[string]any{"running": map[string]any{"startedAt": "2026-05-04T10:11:14Z"}}, "lastState": map[string]any{},
			"ready": true, "restartCount": 0, "image": "registry.example.com/shop/" + name + ":1.42.0", "started": true,
			"imageID":     "registry.example.com/shop/" + name + "@sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
			"containerID": "containerd://c8a8f3e7d9b84d6f8a7f0c3a6b1e2d4f5c6b7a8d9e0f1a2b3c4d5e6f7a8b9c0d"}
	}
	conditions := []any{}
	fieldsConditions := map[string]any{".": map[string]any{}}
	for _, c := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, map[string]any{"type": c, "status": "True", "lastProbeTime": nil, "lastTransitionTime": "2026-05-04T10:11:12Z", "observedGeneration": 1})
		fieldsConditions[`k:{"type":"`+c+`"}`] = map[string]any{".": map[string]any{}, "f:lastProbeTime": map[string]any{}, "f:lastTransitionTime": map[string]any{}, "f:status": map[string]any{}, "f:type": map[string]any{}}
	}
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": "checkout-7d9c5b8f6d-x2v9k", "generateName": "checkout-7d9c5b8f6d-", "namespace": "shop",
			"uid": "3e9f2c1a-4b5d-4e6f-8a7b-9c0d1e2f3a4b", "resourceVersion": "123456789", "generation": 1, "creationTimestamp": "2026-05-04T10:11:12Z",
			"labels": map[string]any{"app": "checkout", "app.kubernetes.io/name": "checkout", "app.kubernetes.io/part-of": "shop",
				"pod-template-hash": "7d9c5b8f6d", "team": "payments", "tier": "backend"},
			"annotations":     map[string]any{"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": "0f3c5d0b6f0d4d5a8e7c9b1a2f3e4d5c6b7a8f9e"},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "checkout-7d9c5b8f6d", "uid": "0a1b2c3d-1111-2222-3333-444455556666", "controller": true, "blockOwnerDeletion": true}},
			"managedFields": []any{
				map[string]any{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-05-04T10:11:12Z", "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}, "f:app": map[string]any{}, "f:team": map[string]any{}}},
						"f:spec": map[string]any{"f:containers": map[string]any{`k:{"name":"app"}`: fieldsContainer()}}}},
				map[string]any{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-05-04T10:11:14Z", "fieldsType": "FieldsV1", "subresource": "status",
					"fieldsV1": map[string]any{"f:status": map[string]any{"f:conditions": fieldsConditions, "f:containerStatuses": map[string]any{}, "f:phase": map[string]any{}}}},
			}},
		"spec": map[string]any{
			"volumes": []any{map[string]any{"name": "kube-api-access-9x2lk", "projected": map[string]any{"defaultMode": 420, "sources": []any{
				map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": 3607, "path": "token"}},
				map[string]any{"configMap": map[string]any{"name": "kube-root-ca.crt", "items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}}}}}}}},
			"containers":    []any{container("app", "registry.example.com/shop/checkout:1.42.0"), container("proxy", "registry.example.com/mesh/proxy:2.7.1")},
			"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "checkout", "serviceAccount": "checkout",
			"nodeName": "node-0042", "securityContext": map[string]any{}, "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
			"tolerations": []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}}},
		"status": map[string]any{"phase": "Running", "conditions": conditions, "hostIP": "10.0.3.7", "podIP": "10.244.5.12",
			"startTime": "2026-05-04T10:11:12Z", "qosClass": "Burstable", "containerStatuses": []any{status("app"), status("proxy")}},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(pod); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}
