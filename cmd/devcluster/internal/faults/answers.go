package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasons are those that API servers give with a code.
var reasons = map[int32]metav1.StatusReason{
	401: metav1.StatusReasonUnauthorized,
	403: metav1.StatusReasonForbidden,
	404: metav1.StatusReasonNotFound,
	409: metav1.StatusReasonConflict,
	410: metav1.StatusReasonExpired,
	429: metav1.StatusReasonTooManyRequests,
	500: metav1.StatusReasonInternalError,
	503: metav1.StatusReasonServiceUnavailable,
	504: metav1.StatusReasonTimeout,
}

func (e *Error) status() *metav1.Status {
	s := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: e.Code, Reason: e.Reason, Message: e.Message,
	}
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	if s.Reason == "" {
		s.Reason = reasons[s.Code]
	}
	if s.Message == "" {
		s.Message = "a fault of devcluster"
	}
	if e.RetryAfter > 0 || len(e.Causes) > 0 {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: e.RetryAfter, Causes: e.Causes}
	}
	return s
}

// answer sends the error. A Status is JSON for all clients; as an event it is
// encoded like the others of the watch.
func (e *Error) answer(w http.ResponseWriter, r *http.Request, watches bool) {
	status := e.status()
	data, err := json.Marshal(status)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if !e.Event || !watches {
		w.Header().Set("Content-Type", "application/json")
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter)))
		}
		w.WriteHeader(int(status.Code))
		_, _ = w.Write(data)
		return
	}
	contentType, protobuf := negotiate(r, true)
	if protobuf {
		data, err = protobufObject("v1", "Status", status)
	}
	sendEvent(w, contentType, "ERROR", data, protobuf, err)
}

// sendEvent answers a watch with one event.
func sendEvent(w http.ResponseWriter, contentType, kind string, object []byte, protobuf bool, err error) {
	var event frame
	if err == nil {
		event, err = newFrame(kind, object, protobuf)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(event.data)
}

// bookmarkOnce answers a watch with a bookmark at the version that it asked for.
func (p *Proxy) bookmarkOnce(w http.ResponseWriter, r *http.Request) {
	apiVersion, kind, err := p.kind(r)
	if err != nil {
		resetClient(w)
		return
	}
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	if object.ResourceVersion, err = p.version(r); err != nil {
		resetClient(w)
		return
	}
	contentType, protobuf := negotiate(r, true)
	var data []byte
	if protobuf {
		data, err = protobufObject(apiVersion, kind, object)
	} else {
		data, err = json.Marshal(object)
	}
	sendEvent(w, contentType, "BOOKMARK", data, protobuf, err)
}

// version is that of the watch, or the present one if it names none.
func (p *Proxy) version(r *http.Request) (string, error) {
	if v := r.URL.Query().Get("resourceVersion"); v != "" && v != "0" {
		return v, nil
	}
	var list metav1.PartialObjectMetadataList
	data, err := p.fetch(r.Context(), r.URL.Path+"?limit=1")
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	return list.ResourceVersion, err
}

// kind is what the events of a watch are about, as the client wants them.
func (p *Proxy) kind(r *http.Request) (apiVersion, kind string, err error) {
	for _, as := range []string{"PartialObjectMetadata", "Table"} {
		if strings.Contains(strings.Split(r.Header.Get("Accept"), ",")[0], "as="+as+";") ||
			strings.HasSuffix(strings.Split(r.Header.Get("Accept"), ",")[0], "as="+as) {
			return "meta.k8s.io/v1", as, nil
		}
	}
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		return "", "", err
	}
	apiVersion = path.Join(info.APIGroup, info.APIVersion)
	data, err := p.fetch(r.Context(), path.Join("/", info.APIPrefix, apiVersion))
	if err != nil {
		return "", "", err
	}
	var resources metav1.APIResourceList
	if err := json.Unmarshal(data, &resources); err != nil {
		return "", "", err
	}
	for _, resource := range resources.APIResources {
		if resource.Name == info.Resource {
			return apiVersion, resource.Kind, nil
		}
	}
	return "", "", fmt.Errorf("there is no resource %s in %s", info.Resource, apiVersion)
}
