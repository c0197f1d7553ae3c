package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
)

// connects are the subresources whose GET does more than read.
var connects = []string{"exec", "attach", "portforward", "proxy"}

// isConnect reports whether a request opens a connection into a workload or
// through the API server, which is no read, whatever its method. It looks at the whole
// path of the subresource: pods/a//exec is pods/a/exec to who makes one slash of two on
// the way to the API server.
func (q *request) isConnect() bool {
	return slices.ContainsFunc(strings.Split(q.subresource, "/"), func(part string) bool { return slices.Contains(connects, part) })
}

// class is Long for a request that goes on for as long as its client likes, else
// the one given.
func (q *request) class(r *http.Request, short Class) Class {
	if q.watch || q.isConnect() || q.subresource == "log" && flag(r, "follow") {
		return Long
	}
	return short
}

// passRead forwards a read that the copy cannot answer; cause says why not and
// is the answer where reads are not passed on.
func (a *API) passRead(w http.ResponseWriter, r *http.Request, req *request, cause error) error {
	if !a.passesRead(req) {
		return cause
	}
	return a.pass(w, r, req)
}

func (a *API) passesRead(req *request) bool {
	modes := a.Modes()
	return modes.passesReads() && (!req.isConnect() || modes.passesWrites())
}

// passWrite forwards a write, or refuses it.
func (a *API) passWrite(w http.ResponseWriter, r *http.Request, req *request) error {
	if !a.Modes().passesWrites() {
		w.Header().Set("Allow", "GET, HEAD")
		return errReadOnly(r.Method)
	}
	return a.pass(w, r, req)
}

// pass forwards a request with the credentials it carries and no others, and
// the answer as it is.
func (a *API) pass(w http.ResponseWriter, r *http.Request, req *request) error {
	if known, ok := access.From(r.Context()).(reviewer); ok {
		if err := known.PassesOn(r.Context(), req.cluster); err != nil {
			return err
		}
	}
	up := a.Upstream(req.cluster)
	if up == nil {
		return errNoUpstream(req.cluster, nil)
	}
	class := req.class(r, Passed)
	release, err := a.Admit(r.Context(), class)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	base, transport := up.Passthrough()
	if class == Long {
		defer context.AfterFunc(a.Stopping, cancel)()
	} else {
		transport = impatient{transport}
	}
	var failed error
	proxy := httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches and logs
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Path, p.Out.URL.RawPath = upstreamPath(p.In), ""
			p.SetURL(base)
			keepIdentity(p.Out.Header, p.In.Header)
			dropProxyIdentity(p.Out.Header)
			if id := audit.From(p.In.Context()).ID(); id != "" {
				p.Out.Header.Set(audit.Header, id) // the API server's audit log says the same
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			a.noteWrite(r, req, answer)
			if w.Header().Get(audit.Header) != "" {
				answer.Header.Del(audit.Header)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if !neverSent(err) {
				a.noteWrite(r, req, nil) // it may have arrived
			}
			failed = err
		},
	}
	// How long the body may be is the API server's to say.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if class != Long {
		pace(w, r)
	}
	w.Header().Del("Cache-Control") // the API server says it for its own answers
	w.Header().Del("Vary")
	defer cache.Pause(r.Context())()
	proxy.ServeHTTP(w, r.WithContext(ctx))
	switch {
	case failed == nil:
		return nil
	case errors.Is(failed, errNotBegun):
		return errSilent(req.cluster)
	}
	return errNoUpstream(req.cluster, failed)
}

// upstreamPath is the path of r at its API server.
func upstreamPath(r *http.Request) string {
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, ClustersPrefix+"/"); ok {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	return path
}

// keepIdentity passes on all by which a caller was judged here. A header that is named in
// Connection is for the next hop alone and ends here: who names Impersonate-User would be
// judged as somebody else, and answered by the API server as themselves.
func keepIdentity(out, in http.Header) {
	for name, values := range in {
		if name == "Authorization" || name == "Sec-Websocket-Protocol" || strings.HasPrefix(name, "Impersonate-") {
			out[name] = values
		}
	}
}

// dropProxyIdentity takes out the headers by which an authenticating proxy tells
// an API server who asks. informerd is none.
func dropProxyIdentity(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "X-Forwarded-") {
			h.Del(name)
		}
	}
}
