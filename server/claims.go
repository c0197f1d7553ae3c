package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/fair"
	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/reply"
)

const (
	// maxClaims bounds the keys of one claim, and the tokens of one request.
	maxClaims = 1000
	// maxLease is what a lease is bounded by before the handler is asked.
	maxLease = 24 * time.Hour
	// defaultClaimWait and maxClaimWait are how long a claim waits for its first key. A worker
	// that does not say it must not ask a thousand times a second.
	defaultClaimWait = 30 * time.Second
	maxClaimWait     = time.Minute
	// maxNack is the longest time after which a key is to be had again.
	maxNack = 24 * time.Hour
	// maxReason bounds what is kept of why a key was given back.
	maxReason = 1 << 10
)

// claimItem is one key that was claimed; its object is appended to it.
type claimItem struct {
	Token           string              `json:"token"`
	Expires         time.Time           `json:"expires"`
	ID              string              `json:"id"`
	Transition      handlers.Transition `json:"transition"`
	Cluster         string              `json:"cluster"`
	Group           string              `json:"group"`
	Version         string              `json:"version"`
	Resource        string              `json:"resource"`
	Kind            string              `json:"kind"`
	Namespace       string              `json:"namespace,omitempty"`
	Name            string              `json:"name"`
	UID             string              `json:"uid,omitempty"`
	ResourceVersion string              `json:"resourceVersion,omitempty"`
	Attempt         int                 `json:"attempt"`
	Since           time.Time           `json:"since"`
	Sequence        uint64              `json:"sequence"`
}

// append appends the JSON of one claim. That of its object passes through as it is.
func (i claimItem) append(dst []byte, object json.RawMessage) ([]byte, error) {
	text, err := reply.JSON(i, false)
	if err != nil {
		return dst, err
	}
	dst = append(append(dst, text[:len(text)-1]...), `,"object":`...)
	if len(object) == 0 {
		object = json.RawMessage("null")
	}
	return append(append(dst, object...), '}'), nil
}

func itemOfClaim(c handlers.Claimed) claimItem {
	return claimItem{
		Token: c.Token, Expires: c.Expires, ID: c.ID, Transition: c.Transition, Cluster: c.Cluster,
		Group: c.GVR.Group, Version: c.GVR.Version, Resource: c.GVR.Resource, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name,
		UID: c.UID, ResourceVersion: c.ResourceVersion, Attempt: c.Attempt, Since: c.Since, Sequence: c.Sequence,
	}
}

// claim waits for keys of a handler, and lends them.
func (s *Server) claim(w http.ResponseWriter, r *http.Request) error {
	name, err := s.handlerOf(r, "post", "/claim")
	if err != nil {
		return err
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	o, err := claimOptions(r)
	if err != nil {
		return err
	}
	if err := readBody(w, r, &struct{}{}); err != nil {
		return err
	}
	release, err := s.watches.Take(r.Context(), ownerOf(r.Context()), 1, 0)
	if errors.Is(err, fair.ErrFull) {
		return tooMany("watches and claims", s.watches.Limit())
	}
	if err != nil {
		return err
	}
	defer release()
	claimed, err := s.waitForClaims(r, name, o)
	if err != nil {
		return handlerError(name, err)
	}
	recordClaims(r, claimed)
	w.Header().Set("Cache-Control", "no-store")
	l := &listing{
		Kind: "ClaimList", APIVersion: apiVersion, count: len(claimed),
		item: func(dst []byte, i int) ([]byte, error) { return itemOfClaim(claimed[i]).append(dst, claimed[i].Object) },
	}
	return writeList(w, r, l, view{output: outputJSON})
}

// waitForClaims waits for as long as the server is to run, and who asks may claim.
func (s *Server) waitForClaims(r *http.Request, name string, o handlers.ClaimOptions) ([]handlers.Claimed, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.stopping, func() { cancel(context.Canceled) })()
	if o.Wait > rightsInterval && !access.Settled(access.From(ctx)) {
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			cancel(watchRight(ctx, r, handlersPath+"/"+name+"/claim"))
		}()
		defer func() { <-watching }()
		defer cancel(nil)
	}
	defer cache.Pause(r.Context())()
	claimed, err := s.Handlers.Claim(ctx, name, o)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	return claimed, err
}

// watchRight returns when ctx ends, or why who asks may not post to path any more.
func watchRight(ctx context.Context, r *http.Request, path string) error {
	tick := time.NewTicker(rightsInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := may(r, "post", path); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// recordClaims notes what was given to who claims.
func recordClaims(r *http.Request, claimed []handlers.Claimed) {
	record := audit.From(r.Context())
	if record == nil || len(claimed) == 0 {
		return
	}
	names, clusters := map[string]bool{}, map[string]bool{}
	for _, c := range claimed {
		names[c.GVR.GroupResource().String()], clusters[c.Cluster] = true, true
	}
	cluster := ""
	if len(clusters) == 1 {
		cluster = claimed[0].Cluster
	}
	record.AboutMany("claim", cluster, slices.Sorted(maps.Keys(names)))
}

func claimOptions(r *http.Request) (o handlers.ClaimOptions, err error) {
	p := paramsOf(r)
	var errs [3]error
	o.Owner = access.From(r.Context()).Name()
	o.Max, errs[0] = p.between("max", 1, 1, maxClaims)
	o.Lease, errs[1] = p.duration("lease", 0, time.Second, maxLease)
	o.Wait, errs[2] = p.duration("wait", defaultClaimWait, 0, maxClaimWait)
	return o, firstError(errs[:])
}

// duration reads a duration, or a number of seconds.
func (p params) duration(name string, def, least, most time.Duration) (time.Duration, error) {
	if !p.Has(name) {
		return def, nil
	}
	v := p.Get(name)
	d, err := time.ParseDuration(v)
	if seconds, nerr := strconv.ParseUint(v, 10, 32); nerr == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < least || d > most {
		return 0, invalid(name, "%q is not a duration from %v to %v, such as 500ms, 30s or 30", v, least, most)
	}
	return d, nil
}

func (s *Server) ack(w http.ResponseWriter, r *http.Request) error {
	return s.settle(w, r, func(name, owner string, tokens []string) ([]error, error) {
		return s.Handlers.Ack(r.Context(), name, owner, tokens)
	})
}

func (s *Server) nack(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	var after *time.Duration
	if p.Has("after") {
		d, err := p.duration("after", 0, 0, maxNack)
		if err != nil {
			return err
		}
		after = &d
	}
	reason := p.Get("reason")
	if len(reason) > maxReason {
		return invalid("reason", "%d bytes long; at most %d are kept", len(reason), maxReason)
	}
	return s.settle(w, r, func(name, owner string, tokens []string) ([]error, error) {
		return s.Handlers.Nack(r.Context(), name, owner, tokens, after, reason)
	})
}

func (s *Server) extend(w http.ResponseWriter, r *http.Request) error {
	lease, err := paramsOf(r).duration("lease", 0, time.Second, maxLease)
	if err != nil {
		return err
	}
	return s.settle(w, r, func(name, owner string, tokens []string) ([]error, error) {
		return s.Handlers.Extend(r.Context(), name, owner, tokens, lease)
	})
}

// tokenResult is what became of one token.
type tokenResult struct {
	Token  string `json:"token"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// settle does something with claims, by their tokens. Each has a result of its own; where
// none was good, that is the answer: nothing was done.
func (s *Server) settle(w http.ResponseWriter, r *http.Request, do func(name, owner string, tokens []string) ([]error, error)) error {
	name, err := s.handlerOf(r, "post", "/claim")
	if err != nil {
		return err
	}
	tokens, err := tokensOf(w, r)
	if err != nil {
		return err
	}
	resume := cache.Pause(r.Context())
	errs, err := do(name, access.From(r.Context()).Name(), tokens)
	resume()
	if err != nil {
		return handlerError(name, err)
	}
	results, good := make([]tokenResult, len(tokens)), 0
	for i, token := range tokens {
		results[i] = tokenResult{Token: token, OK: errs[i] == nil}
		if errs[i] == nil {
			good++
			continue
		}
		results[i].Reason = errs[i].Error()
	}
	if good == 0 {
		return noneGood(results)
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, r, struct {
		Results []tokenResult `json:"results"`
	}{results}, false)
}

func noneGood(results []tokenResult) error {
	message := results[0].Reason
	if len(results) > 1 {
		message = fmt.Sprintf("none of %d tokens: %s", len(results), message)
	}
	status := reply.Failure(http.StatusConflict, metav1.StatusReasonConflict, message)
	status.Details = &metav1.StatusDetails{}
	for _, result := range results {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: "BadToken", Message: result.Reason, Field: result.Token})
	}
	return statusError(status)
}

// tokensOf are the tokens of a request: those of its body, or those of the URL.
func tokensOf(w http.ResponseWriter, r *http.Request) ([]string, error) {
	var body struct {
		Tokens []string `json:"tokens"`
	}
	if err := readBody(w, r, &body); err != nil {
		return nil, err
	}
	tokens := paramsOf(r).Values["token"]
	switch {
	case len(tokens) > 0 && len(body.Tokens) > 0:
		return nil, invalid("token", "given in the body, too: use one of them")
	case len(tokens) == 0:
		tokens = body.Tokens
	}
	if len(tokens) == 0 {
		return nil, invalid("token", `is missing: send {"tokens":["..."]} as JSON, or ?token=`)
	}
	if len(tokens) > maxClaims {
		return nil, invalid("token", "%d are given; at most %d are possible", len(tokens), maxClaims)
	}
	if slices.Contains(tokens, "") {
		return nil, invalid("token", "one is empty")
	}
	return tokens, nil
}
