package graph

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cache/internal/brief"
)

// unmarshaled is a fragment as encoding/json reads it.
type unmarshaled struct {
	APIVersion string  `json:"apiVersion"`
	APIGroup   *string `json:"apiGroup"`
	Group      *string `json:"group"`
	Kind       string  `json:"kind"`
	Namespace  string  `json:"namespace"`
	Name       string  `json:"name"`
	SecretName string  `json:"secretName"`
	ClaimName  string  `json:"claimName"`
	UID        string  `json:"uid"`
	Optional   bool    `json:"optional"`
}

// TestFragment holds what is read of references against encoding/json.
func TestFragment(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"name":"a","namespace":"b"}`,
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","controller":true,"blockOwnerDeletion":true}`,
		`{"apiGroup":"","kind":"Role","name":"r"}`,
		`{"apiGroup":null,"group":"g","kind":"K","name":null}`,
		`{"secretName":"s","items":[{"key":"k","path":"name"}],"optional":true}`,
		`{"claimName":"c","optional":false,"name":{}}`,
		`{"name":"a\u0062\n","namespace":"ü","n\u0061me":"z"}`,
		`{"name":7}`, `{"optional":"true"}`, `{"group":[]}`, `{"optional":null,"uid":null}`,
		`{ "name" : "spaced" , "kind" : "K" }`,
	} {
		var want unmarshaled
		wanted := json.Unmarshal([]byte(text), &want) == nil
		texts := brief.New()
		f := fragment{texts: &texts}
		if read := f.read([]byte(text)); read != wanted {
			t.Errorf("%s: read %v, want %v", text, read, wanted)
			continue
		}
		got := unmarshaled{f.apiVersion, f.apiGroup, f.group, f.kind, f.namespace, f.name, f.secretName, f.claimName, f.uid, f.optional}
		if d := cmp.Diff(want, got); wanted && d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}
