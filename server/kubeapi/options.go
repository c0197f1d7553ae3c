package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/sharding"

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
		return opts, nil // with all of its terms: what may be seen was judged by them
	}
	opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.name)
	return opts, nil
}

// query is what opts select of a target.
func query(t *target, opts *internalversion.ListOptions) (cache.Query, error) {
	q := cache.Query{Labels: opts.LabelSelector}
	var err error
	if q.Shard, err = shardOf(opts); err != nil {
		return q, err
	}
	if t.namespace != "" {
		q.Namespaces = []string{escapeGlob.Replace(t.namespace)}
	}
	if opts.FieldSelector == nil || opts.FieldSelector.Empty() {
		return q, nil
	}
	if err := selectFields(&q, t.groupResource(), opts.FieldSelector); err != nil || t.reader == nil {
		return q, err
	}
	_, err = t.reader.Matcher(q)
	if hidden, ok := errors.AsType[*cache.InvalidError](err); ok {
		err = apierrors.NewBadRequest("field label not supported: " + hidden.Message)
	}
	return q, err
}

// shardOf is the part of all objects that is asked for, nil for all of them.
func shardOf(opts *internalversion.ListOptions) (*cache.Shard, error) {
	if opts.ShardSelector == "" {
		return nil, nil
	}
	selector, err := sharding.Parse(opts.ShardSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid shard selector: " + err.Error())
	}
	return cache.NewShard(selector)
}

// wantsShard reports whether a part of all objects is asked for. Of what is watched that is not
// passed on while the copy cannot answer: an API server that does not know the parameter answers
// with all objects, and whoever then goes on to watch here would keep those of other parts and
// never hear of them.
func wantsShard(r *http.Request) bool { return r.URL.Query().Get("shardSelector") != "" }

// escapeGlob keeps a namespace of a path from being read as a glob.
var escapeGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// canonicalVersion is a resourceVersion as the API server reads it: the number
// counts, however many zeros are in front of it. "" stays.
func canonicalVersion(version string) (string, error) {
	if version == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return "", fmt.Errorf("resourceVersion: Invalid value: %q: %w", version, err)
	}
	return strconv.FormatUint(n, 10), nil
}

// errListVersion is what the API server makes of a bad resourceVersion of a list.
func errListVersion(err error) error {
	return apierrors.NewBadRequest("invalid resource version: " + err.Error())
}

// errVersion is what it makes of one elsewhere: an error without a reason.
func errVersion(err error) error {
	return statusError(http.StatusInternalServerError, metav1.StatusReasonUnknown, "%v", err)
}

// requestTimeout is the parameter timeout of a request, 0 for none: all but those
// that go on for as long as their client likes have it, and the API server looks
// at it before all else.
func requestTimeout(r *http.Request, req *request) (time.Duration, error) {
	text := r.URL.Query().Get("timeout")
	if text == "" || req.class(r, Short) == Long || strings.HasPrefix(req.subresource, "log") {
		return 0, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	return max(timeout, 0), nil
}
