package kubeapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/informerd/informerd/cache"
)

// listOptions reads the parameters of a list or watch with the API server's own
// code, which words the errors.
func listOptions(r *http.Request, t *target) (*internalversion.ListOptions, error) {
	opts := &internalversion.ListOptions{}
	if err := internalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, opts); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	opts.Watch = opts.Watch || t.watch
	internalversion.SetListOptionsDefaults(opts, true)
	if errs := validation.ValidateListOptions(opts, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if t.name == "" { // else it is a watch of one object by its path
		return opts, nil
	}
	if opts.FieldSelector != nil && !opts.FieldSelector.Empty() {
		if name, ok := opts.FieldSelector.RequiresExactMatch("metadata.name"); !ok || name != t.name {
			return nil, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.name)
	return opts, nil
}

// query is what opts select of a target.
func query(t *target, opts *internalversion.ListOptions) (cache.Query, error) {
	q := cache.Query{Labels: opts.LabelSelector}
	if t.namespace != "" {
		q.Namespaces = []string{escapeGlob.Replace(t.namespace)}
	}
	if opts.FieldSelector == nil || opts.FieldSelector.Empty() {
		return q, nil
	}
	var err error
	q.Fields, err = fieldSelector(t.groupResource(), opts.FieldSelector)
	return q, err
}

// escapeGlob keeps a namespace of a path from being read as a glob.
var escapeGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// fieldLabel is a field that the API server selects by although the JSON has
// it under another path, or leaves it out when it is the zero value.
type fieldLabel struct {
	path string // "": the label is the path
	zero string
}

var fieldLabels = map[string]map[string]fieldLabel{
	"pods":                   {"spec.host": {path: "spec.nodeName"}, "spec.hostNetwork": {zero: "false"}},
	"nodes":                  {"spec.unschedulable": {zero: "false"}},
	"events":                 {"source": {path: "source.component"}},
	"events.events.k8s.io":   {"source": {path: "deprecatedSource.component"}},
	"jobs.batch":             {"status.successful": {path: "status.succeeded", zero: "0"}},
	"replicasets.apps":       {"status.replicas": {zero: "0"}},
	"replicationcontrollers": {"status.replicas": {zero: "0"}},
}

// fieldSelector translates a selector of the API server's grammar. Any path is
// possible, not only the few that the API server knows.
func fieldSelector(gr schema.GroupResource, s fields.Selector) (cache.FieldSelector, error) {
	var parts []string
	for _, r := range s.Requirements() {
		label := fieldLabels[gr.String()][r.Field]
		path := r.Field
		if label.path != "" {
			path = label.path
		}
		parts = append(parts, path+fieldCondition(r, label.zero))
	}
	selector, err := cache.ParseFieldSelector(strings.Join(parts, ","))
	if err != nil {
		return selector, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s (%v)", s, err))
	}
	return selector, nil
}

// fieldCondition is the operator and the values of r. The zero value also is
// where the JSON has nothing.
func fieldCondition(r fields.Requirement, zero string) string {
	negated := r.Operator == selection.NotEquals
	switch {
	case zero != "" && r.Value == zero && negated:
		return " notin (" + escapeValue.Replace(zero) + ",)"
	case zero != "" && r.Value == zero:
		return " in (" + escapeValue.Replace(zero) + ",)"
	case negated:
		return "!=" + escapeValue.Replace(r.Value)
	}
	return "=" + escapeValue.Replace(r.Value)
}

var escapeValue = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`, `(`, `\(`, `)`, `\)`, ` `, `\ `)

// checkVersion refuses what is no resourceVersion.
func checkVersion(version string) error {
	if version == "" {
		return nil
	}
	if _, err := strconv.ParseUint(version, 10, 64); err != nil {
		return apierrors.NewBadRequest("invalid resource version: " + invalidVersion(version))
	}
	return nil
}

// errVersion is what the API server makes of a bad resourceVersion elsewhere
// than in a list: an error without a reason.
func errVersion(version string) error {
	return statusError(http.StatusInternalServerError, metav1.StatusReasonUnknown, "%s", invalidVersion(version))
}

func invalidVersion(version string) string {
	_, err := strconv.ParseUint(version, 10, 64)
	return fmt.Sprintf("resourceVersion: Invalid value: %q: %v", version, err)
}
