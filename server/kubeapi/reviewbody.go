package kubeapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/informerd/informerd/cache"
)

// maxReview bounds what a client may ask with.
const maxReview = 256 << 10

// typeProtobuf is what typed clients send and prefer.
const typeProtobuf = runtime.ContentTypeProtobuf

// reviewForms are the forms that reviews have: those in which clients send what is
// built in.
var reviewForms = func() []runtime.SerializerInfo {
	scheme := runtime.NewScheme()
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	utilruntime.Must(authorizationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme).SupportedMediaTypes()
}()

// readReview is the object in the body of a request.
func readReview(w http.ResponseWriter, r *http.Request, kind schema.GroupVersionKind) (runtime.Object, error) {
	mediaType := typeJSON
	if header := r.Header.Get("Content-Type"); header != "" {
		var err error
		if mediaType, _, err = mime.ParseMediaType(header); err != nil {
			return nil, errMediaType(header)
		}
	}
	form, ok := runtime.SerializerInfoForMediaType(reviewForms, mediaType)
	if !ok || form.MediaType != typeJSON && form.MediaType != typeYAML && form.MediaType != typeProtobuf {
		return nil, errMediaType(mediaType)
	}
	resume := cache.Pause(r.Context()) // it may come slowly
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	resume()
	if tooLarge, is := errors.AsType[*http.MaxBytesError](err); is {
		return nil, apierrors.NewRequestEntityTooLargeError("limit is " + strconv.FormatInt(tooLarge.Limit, 10))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("read the body: " + err.Error())
	}
	object, actual, err := form.Serializer.Decode(body, &kind, nil)
	switch {
	case err != nil && actual != nil && *actual != kind:
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case *actual == kind:
		return object, nil
	}
	return nil, apierrors.NewBadRequest("the API version in the data (" + actual.GroupVersion().String() + "), kind " + actual.Kind +
		", does not match the expected " + kind.GroupVersion().String() + ", kind " + kind.Kind)
}

func errMediaType(got string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format (%s) - accepted media types include: %s, %s, %s", got, typeJSON, typeYAML, typeProtobuf)
}

// writeReview answers with an object in the form that the client likes best, as one
// that was made.
func writeReview(w http.ResponseWriter, r *http.Request, object runtime.Object) error {
	form, pretty, err := reviewForm(r)
	if err != nil {
		return err
	}
	encoder := form.Serializer
	if pretty && form.PrettySerializer != nil {
		encoder = form.PrettySerializer
	}
	var body bytes.Buffer
	if err := encoder.Encode(object, &body); err != nil {
		return err
	}
	w.Header().Set("Content-Type", form.MediaType)
	w.Header().Set("Cache-Control", "no-store") // who asks is in no URL
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(http.StatusCreated)
	_, err = w.Write(body.Bytes())
	return cut(err)
}

func reviewForm(r *http.Request) (form runtime.SerializerInfo, pretty bool, err error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if header == "" {
		header = "*/*"
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		mediaType := clause.Type + "/" + clause.SubType
		if mediaType == "*/*" || mediaType == "application/*" {
			mediaType = typeJSON
		}
		if mediaType != typeJSON && mediaType != typeYAML && mediaType != typeProtobuf || clause.Params["as"] != "" {
			continue
		}
		form, _ = runtime.SerializerInfoForMediaType(reviewForms, mediaType)
		return form, isPretty(r), nil
	}
	return form, false, statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: %s, %s, %s", typeJSON, typeYAML, typeProtobuf)
}
