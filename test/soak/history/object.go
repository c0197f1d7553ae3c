package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// Read reads an object's JSON, from etcd or from an answer. The version is 0
// where the JSON has none, as in etcd.
func Read(r Resource, data []byte) (key string, o Object, err error) {
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return "", Object{}, err
	}
	return Parse(r, m)
}

// Parse is Read of an object that is decoded already. It changes m.
func Parse(r Resource, m map[string]any) (key string, o Object, err error) {
	meta, _ := m["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		return "", Object{}, fmt.Errorf("an object without a name: %.200v", m)
	}
	namespace, _ := meta["namespace"].(string)
	key = name
	if namespace != "" {
		key = namespace + "/" + name
	}
	o.UID, _ = meta["uid"].(string)
	if v, _ := meta["resourceVersion"].(string); v != "" {
		if o.Version, err = strconv.ParseInt(v, 10, 64); err != nil {
			return "", Object{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	labels, _ := meta["labels"].(map[string]any)
	o.Tier, _ = labels["tier"].(string)
	o.Hash, err = Hash(m, r.Loose)
	return key, o, err
}

// Hash is of an object's content: all of it but its version, its managedFields
// and the names of its type, which lists may leave out. It changes m.
func Hash(m map[string]any, loose bool) (string, error) {
	delete(m, "apiVersion")
	delete(m, "kind")
	if meta, ok := m["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
		delete(meta, "resourceVersion")
		delete(meta, "creationTimestamp")
	}
	if loose {
		meta, _ := m["metadata"].(map[string]any)
		m = map[string]any{"uid": meta["uid"], "labels": meta["labels"], "annotations": meta["annotations"]}
	}
	data, err := json.Marshal(m) // with sorted keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}
