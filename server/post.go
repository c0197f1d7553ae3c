package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/reply"
)

// maxBody is the largest body of a POST. Whatever is put into one here are names and tokens.
const maxBody = 1 << 20

// ownPages refuses what a page of another origin makes its reader's browser send. Of another
// origin is also what another port of this machine serves: what it may only ask, since it is
// not shown the answer, it must not do.
var ownPages = http.NewCrossOriginProtection()

// post registers a handler for POST together with the parameters it knows. Every other
// method of the path is refused.
func (s *Server) post(r chi.Router, pattern string, h handler, parameters ...string) {
	s.parameters[pattern], s.posts[pattern] = parameters, true
	r.HandleFunc(pattern, s.handle(onlyPost))
	r.Post(pattern, s.handle(fromOwnPage(checkParameters(parameters, h))))
}

func onlyPost(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Allow", "POST")
	return statusError(reply.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		fmt.Sprintf("%s is not allowed: this is done with POST", r.Method)))
}

func fromOwnPage(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := ownPages.Check(r); err != nil && !showsToken(r) {
			return refused("a page of another site may not steer informerd through your browser")
		}
		return h(w, r)
	}
}

// readBody reads the body of a POST strictly into a value; there may be none. What a form of
// a page can send without asking, which is not JSON, is refused.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != typeJSON {
		return statusError(reply.Failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Sprintf("the body is of Content-Type %q: send application/json", r.Header.Get("Content-Type"))))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return statusError(reply.Failure(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
			fmt.Sprintf("the body has more than %d bytes", large.Limit)))
	}
	if err != nil {
		return invalid("body", "cannot be read: %v", err)
	}
	// It was read in time: the connection is good for more.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	w.Header().Del("Connection")
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid("body", "%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("body", "more follows after the JSON value")
	}
	return nil
}

// may refuses who may not do something to a path that is no resource.
func may(r *http.Request, verb, path string) error {
	who := access.From(r.Context())
	switch ok, err := who.Path(r.Context(), verb, path); {
	case err != nil:
		return access.Unknown(who, err)
	case !ok:
		return access.ForbiddenPath(who, verb, path)
	}
	return nil
}
