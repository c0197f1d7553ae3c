package kubeapi

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// fieldLabel is a field that the API server selects by although the JSON has
// it under another path, under several, or leaves it out when it is the zero
// value. See the functions ToSelectableFields and AddFieldLabelConversion... of
// k8s.io/kubernetes; what is not here is where its label says.
type fieldLabel struct {
	path string // "": the label is the path
	zero string
	// first: the value is that of the first of these paths that has one; without
	// any it is always "". The path does not count then.
	first *firstOf
	// unknown: the API server refuses the label, which leads nowhere in this JSON
	// but is a field of the same objects in another API.
	unknown bool
}

var fieldLabels = map[string]map[string]fieldLabel{
	"pods": {
		"spec.host": {path: "spec.nodeName"}, "spec.hostNetwork": {zero: "false"},
		"status.podIPs": {first: newFirstOf()}, // allowed, and never given a value
	},
	"nodes": {"spec.unschedulable": {zero: "false"}},
	"events": unknownLabels(map[string]fieldLabel{"source": {first: newFirstOf("source.component", "reportingComponent")}},
		"reportingController", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
		"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath"),
	"events.events.k8s.io": unknownLabels(map[string]fieldLabel{},
		"source", "reportingComponent", "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath"),
	"jobs.batch":             {"status.successful": {path: "status.succeeded", zero: "0"}},
	"replicasets.apps":       {"status.replicas": {zero: "0"}},
	"replicationcontrollers": {"status.replicas": {zero: "0"}},
}

func unknownLabels(known map[string]fieldLabel, labels ...string) map[string]fieldLabel {
	for _, label := range labels {
		known[label] = fieldLabel{unknown: true}
	}
	return known
}

// selectFields adds a selector of the API server's grammar to q. Any path is
// possible, not only the few that the API server knows. What may be seen was judged
// by the requirements of s, so that each of them becomes one condition and none is
// read a second time: in text, quotes and brackets of another grammar would join them.
func selectFields(q *cache.Query, gr schema.GroupResource, s fields.Selector) error {
	var requirements []cache.FieldRequirement
	var computed computedFields
	for _, r := range s.Requirements() {
		label := fieldLabels[gr.String()][r.Field]
		switch {
		case label.unknown:
			return errFieldLabel(r.Field)
		case label.first != nil:
			computed = append(computed, computedField{label.first, r})
			continue
		case label.zero != "" && r.Value == "": // which it never is
			computed = append(computed, computedField{&firstOf{none: label.zero}, r})
			continue
		}
		requirement, err := fieldCondition(r, label)
		if err != nil {
			return err
		}
		requirements = append(requirements, requirement)
	}
	if len(computed) > 0 {
		q.Filter = computed
	}
	q.Fields = cache.NewFieldSelector(requirements...)
	return nil
}

// errFieldLabel is what the API server says of a field that it does not select by.
func errFieldLabel(what string) error {
	return apierrors.NewBadRequest("field label not supported: " + what)
}

// fieldCondition is r as a condition on a path. The zero value of label also is where
// the JSON has nothing.
func fieldCondition(r fields.Requirement, label fieldLabel) (cache.FieldRequirement, error) {
	path := r.Field
	if label.path != "" {
		path = label.path
	}
	operator, values := selection.Equals, []string{r.Value}
	if label.zero != "" && r.Value == label.zero {
		operator, values = selection.In, []string{r.Value, ""}
	}
	if r.Operator == selection.NotEquals {
		operator = map[selection.Operator]selection.Operator{selection.Equals: selection.NotEquals, selection.In: selection.NotIn}[operator]
	}
	c, err := cache.NewFieldRequirement(path, operator, values...)
	if err != nil {
		return c, errFieldLabel(fmt.Sprintf("%s (%v)", r.Field, err))
	}
	// Authorizers and fieldLabels know a field by one spelling. Under another, such as
	// ['spec'].nodeName, it would be another field to them and the same one here.
	if canonical := c.Path.String(); label.path == "" && canonical != r.Field &&
		(strings.HasPrefix(r.Field, ".") || strings.ContainsAny(r.Field, "[]{}$'\"\\ \t\r\n")) {
		return c, errFieldLabel(fmt.Sprintf("%s (write %s)", r.Field, canonical))
	}
	return c, nil
}

// firstOf is a value of an object that several paths may have: the first of
// them that is a string and not empty decides.
type firstOf struct {
	from      []rawjson.Path
	extractor *rawjson.Extractor // nil without paths
	none      string             // the value without paths
}

func newFirstOf(paths ...string) *firstOf {
	f := &firstOf{}
	if len(paths) == 0 {
		return f
	}
	var err error
	if f.from, err = rawjson.ParsePaths(strings.Join(paths, ",")); err == nil {
		f.extractor, err = rawjson.CompileExtractor(f.from)
	}
	if err != nil {
		panic(err)
	}
	return f
}

// equals reports whether the value of an object is want.
func (f *firstOf) equals(json []byte, want string) (bool, error) {
	if f.extractor == nil {
		return want == f.none, nil
	}
	decides, equal := len(f.from), want == ""
	err := f.extractor.Each(json, func(v rawjson.Value) bool {
		if v.Kind == rawjson.String && len(v.Text) > 0 && v.Path < decides {
			decides, equal = v.Path, string(v.Text) == want
		}
		return true
	})
	return equal, err
}

// computedField is a condition on a value that no path has.
type computedField struct {
	value *firstOf
	fields.Requirement
}

// computedFields are conditions that must all hold. They are a cache.Filter.
type computedFields []computedField

func (c computedFields) String() string {
	var parts []string
	for _, f := range c {
		parts = append(parts, fmt.Sprintf("%q %s %q", f.Field, f.Operator, f.Value))
	}
	return "fields " + strings.Join(parts, ",")
}

func (c computedFields) Match(_ context.Context, json []byte) (bool, uint64, error) {
	for _, f := range c {
		equal, err := f.value.equals(json, f.Value)
		if err != nil || equal == (f.Operator == selection.NotEquals) {
			return false, 1, err
		}
	}
	return true, 1, nil
}

// Reads are the paths of the values.
func (c computedFields) Reads() (paths []rawjson.Path) {
	for _, f := range c {
		paths = append(paths, f.value.from...)
	}
	return paths
}

func (computedFields) Hints() cache.Hints             { return cache.Hints{} }
func (computedFields) Clock() bool                    { return false }
func (computedFields) OfIdentity() bool               { return false }
func (computedFields) Within() ([]rawjson.Path, bool) { return nil, false }
