package main

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/discovery"
)

// TestAbsences: a resource has gone when its cluster says so, and not when it says nothing of it.
func TestAbsences(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "metrics.example.com", Version: "v1", Resource: "things"}
	for name, c := range map[string]struct {
		set   discovery.Set
		lacks bool
	}{
		"served":             {discovery.Set{Resources: []discovery.Resource{{GVR: gvr}}}, false},
		"gone":               {discovery.Set{}, true},
		"other group failed": {discovery.Set{Failed: map[schema.GroupVersion]error{{Group: "x", Version: "v1"}: errors.New("503")}}, true},
		"group failed":       {discovery.Set{Failed: map[schema.GroupVersion]error{gvr.GroupVersion(): errors.New("503")}}, false},
		"other version":      {discovery.Set{Failed: map[schema.GroupVersion]error{{Group: gvr.Group, Version: "v2"}: errors.New("503")}}, false},
		"pending":            {discovery.Set{Pending: []schema.GroupVersionResource{gvr}}, false},
		"provisional":        {discovery.Set{Provisional: true}, false},
	} {
		a := &absences{}
		if a.lacks("c", gvr.GroupResource()) {
			t.Error("it is gone before the cluster has told anything")
		}
		a.hear("c", c.set)
		if got := a.lacks("c", gvr.GroupResource()); got != c.lacks {
			t.Errorf("%s: gone is %v", name, got)
		}
		if a.lacks("other", gvr.GroupResource()) {
			t.Errorf("%s: another cluster has told nothing", name)
		}
	}
}
