package server

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/reply"
)

const (
	handlersPath = "/v1/handlers"
	handlerRoute = handlersPath + "/{handler}"
	claimRoute   = handlerRoute + "/claim"

	maxDeadLetters = 1000
)

// handlerRoutes are those by which handlers are seen and steered. They take rights on
// paths, as /metrics does: get on those that are read, post on those that are done. Who may
// claim may acknowledge, give back and extend, too.
func (s *Server) handlerRoutes(r chi.Router) {
	s.get(r, handlersPath, s.listHandlers, "pretty")
	s.get(r, handlerRoute, s.getHandler, "pretty")
	s.get(r, handlerRoute+"/deadletters", s.listDeadLetters, "limit", "continue", "pretty")
	s.post(r, handlerRoute+"/ack", s.ack, "token")
	s.post(r, handlerRoute+"/nack", s.nack, "token", "after", "reason")
	s.post(r, handlerRoute+"/extend", s.extend, "token", "lease")
	s.post(r, handlerRoute+"/pause", s.pauseHandler)
	s.post(r, handlerRoute+"/resume", s.resumeHandler)
	s.post(r, handlerRoute+"/redrive", s.redrive)
}

var handlerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// handlerOf is the handler that a path names, for who may do verb to the rest of the path
// after it. Whether there is one is not said to others.
func (s *Server) handlerOf(r *http.Request, verb, rest string) (string, error) {
	name, err := pathValue(r, "handler")
	if err != nil {
		return "", err
	}
	if err := may(r, verb, handlersPath+"/"+name+rest); err != nil {
		return "", err
	}
	switch {
	case s.Handlers == nil && s.HandlersTrouble != "":
		return "", noHandlers(s.HandlersTrouble)
	case s.Handlers == nil, !handlerName.MatchString(name):
		return "", unknownHandler(name)
	}
	return name, nil
}

func noHandlers(trouble string) error {
	return statusError(reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "handlers do not run: "+trouble))
}

func unknownHandler(name string) error {
	return notFound("there is no handler %q; %s lists those there are", name, handlersPath)
}

// handlerError is what a client is told of an error of a handler.
func handlerError(name string, err error) error {
	switch {
	case errors.Is(err, handlers.ErrUnknown):
		return unknownHandler(name)
	case errors.Is(err, handlers.ErrHasSink):
		return statusError(withCause(reply.Failure(http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("%v: %q delivers by itself", handlers.ErrHasSink, name)), "HasSink", ""))
	case errors.Is(err, handlers.ErrPaused):
		return statusError(retryAfter(withCause(reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			fmt.Sprintf("the handler %q is paused: %s/%s says why", name, handlersPath, name)), "Paused", ""), pausedRetry))
	case errors.Is(err, handlers.ErrLease):
		return invalid("lease", "%v", err)
	}
	return err
}

// pausedRetry is after how many seconds it is worth asking again whether a handler is
// still paused.
const pausedRetry = 5

// listHandlers lists those that who asks may read one by one, too: what went wrong last with
// one names objects.
func (s *Server) listHandlers(w http.ResponseWriter, r *http.Request) error {
	if err := may(r, "get", handlersPath); err != nil {
		return err
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	pretty, err := paramsOf(r).flag("pretty")
	if err != nil {
		return err
	}
	if s.Handlers == nil && s.HandlersTrouble != "" {
		return noHandlers(s.HandlersTrouble)
	}
	answer := list[handlers.Status]{Kind: "HandlerList", APIVersion: apiVersion, Items: []handlers.Status{}}
	if s.Handlers != nil {
		who := access.From(r.Context())
		for _, h := range s.Handlers.Handlers() {
			ok, err := who.Path(r.Context(), "get", handlersPath+"/"+h.Name)
			if err != nil {
				return access.Unknown(who, err)
			}
			if ok {
				answer.Items = append(answer.Items, h)
			}
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, r, answer, pretty)
}

func (s *Server) getHandler(w http.ResponseWriter, r *http.Request) error {
	name, err := s.handlerOf(r, "get", "")
	if err != nil {
		return err
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	pretty, err := paramsOf(r).flag("pretty")
	if err != nil {
		return err
	}
	status, err := s.Handlers.Handler(name)
	if err != nil {
		return handlerError(name, err)
	}
	steering, err := allowedSteering(r, name)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, r, shownHandler{status, steering}, pretty)
}

func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request) error {
	name, err := s.handlerOf(r, "get", "/deadletters")
	if err != nil {
		return err
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	p := paramsOf(r)
	limit, err := p.between("limit", maxDeadLetters, 1, maxDeadLetters)
	pretty, bad := p.flag("pretty")
	if err = firstError([]error{err, bad}); err != nil {
		return err
	}
	letters, next, err := s.Handlers.DeadLetters(name, limit, p.Get("continue"))
	if err != nil {
		return handlerError(name, err)
	}
	answer := list[handlers.DeadLetter]{Kind: "DeadLetterList", APIVersion: apiVersion, Metadata: listMeta{Continue: next}, Items: letters}
	if letters == nil {
		answer.Items = []handlers.DeadLetter{}
	}
	audit.From(r.Context()).Returned(len(letters))
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, r, answer, pretty)
}

// steered is what is answered when a handler was paused or resumed. What else is known of
// it is for who may read that.
type steered struct {
	Name   string `json:"name"`
	Paused bool   `json:"paused"`
}

func (s *Server) pauseHandler(w http.ResponseWriter, r *http.Request) error {
	return s.steer(w, r, "pause", func(name string) (any, error) {
		return steered{name, true}, s.Handlers.Pause(r.Context(), name)
	})
}

func (s *Server) resumeHandler(w http.ResponseWriter, r *http.Request) error {
	return s.steer(w, r, "resume", func(name string) (any, error) {
		return steered{name, false}, s.Handlers.Resume(r.Context(), name)
	})
}

func (s *Server) steer(w http.ResponseWriter, r *http.Request, verb string, do func(name string) (any, error)) error {
	name, err := s.handlerOf(r, "post", "/"+verb)
	if err != nil {
		return err
	}
	if err := readBody(w, r, &struct{}{}); err != nil {
		return err
	}
	return s.did(w, r, name, func() (any, error) { return do(name) })
}

// did does something that is saved, for which it waits, and answers with what came of it.
func (s *Server) did(w http.ResponseWriter, r *http.Request, name string, do func() (any, error)) error {
	resume := cache.Pause(r.Context())
	answer, err := do()
	resume()
	if err != nil {
		return handlerError(name, err)
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, r, answer, false)
}

func (s *Server) redrive(w http.ResponseWriter, r *http.Request) error {
	name, err := s.handlerOf(r, "post", "/redrive")
	if err != nil {
		return err
	}
	var body struct {
		Keys []handlers.KeyName `json:"keys"`
	}
	if err := readBody(w, r, &body); err != nil {
		return err
	}
	if body.Keys != nil && len(body.Keys) == 0 {
		return invalid("body", "keys is empty: leave it out to send all dead letters again")
	}
	return s.did(w, r, name, func() (any, error) {
		n, err := s.Handlers.Redrive(r.Context(), name, body.Keys)
		return struct {
			Redriven int `json:"redriven"`
		}{n}, err
	})
}
