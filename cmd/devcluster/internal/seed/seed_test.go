package seed

import (
	"encoding/json"
	"testing"
)

// TestManifests checks what would otherwise be seen only in a running cluster.
func TestManifests(t *testing.T) {
	entries, err := manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(files) {
		t.Errorf("%d files in manifests, %d are applied", len(entries), len(files))
	}
	seen, namespaces, kinds := map[string]bool{}, map[string]bool{"kube-system": true}, map[string]int{}
	for _, file := range files {
		objects, err := readManifest("manifests/" + file.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			if seen[key] {
				t.Errorf("%s: %s is there twice", file.name, key)
			}
			seen[key] = true
			kinds[o.GetKind()]++
			if o.GetKind() == "Namespace" {
				namespaces[o.GetName()] = true
			}
			if ns := o.GetNamespace(); ns != "" && !namespaces[ns] {
				t.Errorf("%s: %s comes before its namespace", file.name, key)
			}
			if _, ok := o.Object["status"]; ok && statusManagers[o.GetKind()] == "" {
				t.Errorf("%s: %s has a status that nobody writes", file.name, key)
			}
			if o.GetKind() == "Secret" && o.Object["stringData"] != nil {
				t.Errorf("%s: %s still has stringData", file.name, key)
			}
		}
	}
	for kind, least := range map[string]int{
		"Deployment": 15, "StatefulSet": 3, "DaemonSet": 2, "Queue": 10, "CustomResourceDefinition": 2, "Namespace": 6,
	} {
		if kinds[kind] < least {
			t.Errorf("%d of kind %s, want at least %d", kinds[kind], kind, least)
		}
	}
}

func TestLastApplied(t *testing.T) {
	objects, err := readManifest("manifests/payments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		value, ok := o.GetAnnotations()[lastApplied]
		if !ok {
			continue
		}
		var applied struct {
			Data map[string]string `json:"data"`
		}
		if err := json.Unmarshal([]byte(value), &applied); err != nil {
			t.Fatal(err)
		}
		if len(applied.Data) == 0 {
			t.Errorf("the annotation holds no data: %s", value)
		}
		return
	}
	t.Error("no object has the annotation of kubectl apply")
}

func TestVolumesFor(t *testing.T) {
	objects, err := readManifest("manifests/data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, o := range objects {
		for _, volume := range volumesFor(o) {
			names[volume.GetName()] = true
		}
	}
	if len(names) != 9 || !names["pvc-data-data-postgres-2"] {
		t.Errorf("volumes: %v, want three for each of three databases", names)
	}
}

func TestNodes(t *testing.T) {
	names, ips := map[string]bool{}, map[string]bool{}
	for i := range 2000 {
		node := newNode(i)
		names[node.Name] = true
		ips[node.Status.Addresses[0].Address] = true
	}
	if len(names) != 2000 || len(ips) != 2000 {
		t.Errorf("%d names and %d addresses of 2000 nodes", len(names), len(ips))
	}
	if len(newNode(0).Spec.Taints) != 0 {
		t.Error("nothing could be scheduled to a cluster of one node")
	}
}
