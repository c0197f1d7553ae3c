package seed

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// volumesFor makes the PersistentVolumes that a StatefulSet's claims will bind
// to: there is no provisioner that would.
func volumesFor(o object) []object {
	if o.GetKind() != "StatefulSet" {
		return nil
	}
	replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
	var volumes []object
	for _, t := range templates {
		template := &unstructured.Unstructured{Object: t.(map[string]any)}
		size, _, _ := unstructured.NestedString(template.Object, "spec", "resources", "requests", "storage")
		class, _, _ := unstructured.NestedString(template.Object, "spec", "storageClassName")
		for i := range replicas {
			claim := fmt.Sprintf("%s-%s-%d", template.GetName(), o.GetName(), i)
			volumes = append(volumes, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1",
				"kind":       "PersistentVolume",
				"metadata": map[string]any{
					"name":        fmt.Sprintf("pvc-%s-%s", o.GetNamespace(), claim),
					"annotations": map[string]any{"pv.kubernetes.io/provisioned-by": "ebs.csi.example.com"},
				},
				"spec": map[string]any{
					"capacity":                      map[string]any{"storage": size},
					"accessModes":                   []any{"ReadWriteOnce"},
					"persistentVolumeReclaimPolicy": "Retain",
					"storageClassName":              class,
					"claimRef": map[string]any{
						"apiVersion": "v1",
						"kind":       "PersistentVolumeClaim",
						"namespace":  o.GetNamespace(),
						"name":       claim,
					},
					"csi": map[string]any{
						"driver":       "ebs.csi.example.com",
						"volumeHandle": fmt.Sprintf("vol-%s-%s", o.GetNamespace(), claim),
						"fsType":       "ext4",
					},
				},
			}})
		}
	}
	return volumes
}
