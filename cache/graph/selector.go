package graph

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selects is the edge from what has a selector to the pods it selects.
const selects = "selects"

// selectorRule says where a resource has a selector over the pods of its own
// namespace.
type selectorRule struct {
	*compiled
	path string
	// plain: a map of labels, which selects nothing when it is empty, rather
	// than a LabelSelector, which then selects all.
	plain bool
}

// selectorRules by the resource that has the selector.
var selectorRules = map[schema.GroupResource]*selectorRule{
	{Resource: "services"}:                                    newSelectorRule("spec.selector", true),
	{Group: "policy", Resource: "poddisruptionbudgets"}:       newSelectorRule("spec.selector", false),
	{Group: "networking.k8s.io", Resource: "networkpolicies"}: newSelectorRule("spec.podSelector", false),
}

func newSelectorRule(path string, plain bool) *selectorRule {
	return &selectorRule{&compiled{Rule: Rule{Edge: selects, Path: path}, why: path}, path, plain}
}

// parse reads a selector. It returns nil for one that selects nothing by
// intent, or that the API server would refuse.
func (s *selectorRule) parse(raw []byte) labels.Selector {
	if s.plain {
		var set map[string]string
		if json.Unmarshal(raw, &set) != nil || len(set) == 0 {
			return nil
		}
		selector, err := labels.ValidatedSelectorFromSet(set)
		if err != nil {
			return nil
		}
		return selector
	}
	var structured metav1.LabelSelector
	if json.Unmarshal(raw, &structured) != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&structured)
	if err != nil {
		return nil
	}
	return selector
}
