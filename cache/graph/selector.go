package graph

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache/rawjson"
)

// Edges from what has a selector to what it selects: the pods it is about, and
// those that a NetworkPolicy lets them talk with.
const (
	selects    = "selects"
	allowsFrom = "allowsFrom"
	allowsTo   = "allowsTo"
)

// selectorRule says where objects of a resource have a selector.
type selectorRule struct {
	*compiled
	parse func(raw []byte) (selection, bool)
}

// selection is one selector of an object.
type selection struct {
	rule *compiled
	// pods is nil where namespaces themselves are selected, with all that is in
	// them.
	pods labels.Selector
	// namespaces is nil for pods of the object's own namespace.
	namespaces labels.Selector
}

// text is what is selected by, for people.
func (s *selection) text() (pods, namespaces string) {
	if s.pods != nil {
		pods = s.pods.String()
	}
	if s.namespaces != nil {
		namespaces = s.namespaces.String()
	}
	return pods, namespaces
}

// selectorRules by the resource that has the selectors.
var selectorRules = map[schema.GroupResource][]*selectorRule{
	{Resource: "services"}:                              {newSelectorRule(selects, "spec.selector", parseLabels)},
	{Group: "policy", Resource: "poddisruptionbudgets"}: {newSelectorRule(selects, "spec.selector", parseSelector)},
	{Group: "networking.k8s.io", Resource: "networkpolicies"}: {
		newSelectorRule(selects, "spec.podSelector", parseSelector),
		newSelectorRule(allowsFrom, "spec.ingress[*].from[*]", parsePeer),
		newSelectorRule(allowsTo, "spec.egress[*].to[*]", parsePeer),
	},
}

func newSelectorRule(edge, path string, parse func([]byte) (selection, bool)) *selectorRule {
	return &selectorRule{&compiled{Rule: Rule{Edge: edge, Path: path}, why: path}, parse}
}

// read takes a selector out of a value. There is none where it selects nothing
// by intent, or is one that the API server would refuse.
func (r *selectorRule) read(v rawjson.Value) (selection, bool) {
	if v.Kind != rawjson.Object {
		return selection{}, false
	}
	s, ok := r.parse(v.Text)
	s.rule = r.compiled
	return s, ok
}

// parseLabels reads a map of labels, which selects nothing when it is empty.
func parseLabels(raw []byte) (selection, bool) {
	var set map[string]string
	if json.Unmarshal(raw, &set) != nil || len(set) == 0 {
		return selection{}, false
	}
	selector, err := labels.ValidatedSelectorFromSet(set)
	return selection{pods: selector}, err == nil
}

// parseSelector reads a LabelSelector, which selects all when it is empty.
func parseSelector(raw []byte) (selection, bool) {
	var structured metav1.LabelSelector
	if json.Unmarshal(raw, &structured) != nil {
		return selection{}, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&structured)
	return selection{pods: selector}, err == nil
}

// parsePeer reads a NetworkPolicyPeer; one that is a block of addresses selects
// nothing.
func parsePeer(raw []byte) (selection, bool) {
	var peer struct{ PodSelector, NamespaceSelector *metav1.LabelSelector }
	if json.Unmarshal(raw, &peer) != nil || peer.PodSelector == nil && peer.NamespaceSelector == nil {
		return selection{}, false
	}
	var s selection
	var err, err2 error
	if peer.PodSelector != nil {
		s.pods, err = metav1.LabelSelectorAsSelector(peer.PodSelector)
	}
	if peer.NamespaceSelector != nil {
		s.namespaces, err2 = metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
	}
	return s, err == nil && err2 == nil
}
