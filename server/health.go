package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/reply"
)

// livez says that the process answers. Nothing about clusters: restarting
// informerd would not mend them.
func (s *Server) livez(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", typeText+"; charset=utf-8")
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte("ok\n"))
	}
	return nil
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready     bool             `json:"ready"`
	Reason    string           `json:"reason,omitempty"`
	Clusters  []clusterHealth  `json:"clusters"`
	Resources []resourceHealth `json:"resources"`
	Snapshot  snapshotHealth   `json:"snapshot"`
	Mirror    *mirrorHealth    `json:"mirror,omitempty"`

	hidden bool // only Ready and Reason are told
}

type clusterHealth struct {
	Name      string `json:"name"`
	Server    string `json:"server,omitempty"`
	Version   string `json:"version,omitempty"`
	Reachable bool   `json:"reachable"`
	Error     string `json:"error,omitempty"`
	// Ready is false while the cluster holds up readiness, or would if it were the only one.
	Ready bool `json:"ready"`
	// Reason says what is wrong with its resources together.
	Reason string `json:"reason,omitempty"`
	// ProvenTime is when the API server last proved any of them current.
	ProvenTime time.Time `json:"provenTime,omitzero"`
	// AccessError is why it cannot be told who asks, or what they may.
	AccessError string `json:"accessError,omitempty"`

	fault string // Reason in a word
}

type resourceHealth struct {
	Cluster string      `json:"cluster,omitempty"`
	Name    string      `json:"name"`
	State   cache.State `json:"state"`
	Reason  string      `json:"reason,omitempty"`
	Since   time.Time   `json:"since,omitzero"`
	// Ready is false while the resource holds up readiness.
	Ready bool `json:"ready"`
}

type snapshotHealth struct {
	Enabled    bool      `json:"enabled"`
	Reason     string    `json:"reason,omitempty"`
	Error      string    `json:"error,omitempty"`
	LastCommit time.Time `json:"lastCommit,omitzero"`
}

// mirrorHealth is that of the mirror for SQL, where there is one.
type mirrorHealth struct {
	Error string `json:"error,omitempty"`
}

func (s *Server) mirrorHealth() *mirrorHealth {
	if s.Options.Mirror == nil {
		return nil
	}
	on, trouble := s.Options.Mirror()
	if !on && trouble == "" {
		return nil
	}
	return &mirrorHealth{trouble}
}

// readiness decides: ready is when there is something to answer from, no resource
// is still syncing, and no cluster has been silent for longer than a proof lasts.
// Each is what waiting, or another informerd, can change. A resource that is
// forbidden or has failed does not count, because its fault is its own; nor does
// trouble with the snapshot, or the mirror; nor, with staleOK, that answers are old. All of these
// are named.
//
// Several clusters do not hold up each other, see ofSeveral.
func (s *Server) readiness(staleOK bool) readiness {
	a := readiness{Clusters: []clusterHealth{}, Resources: []resourceHealth{}}
	snap := s.Caches.SnapshotStatus()
	a.Snapshot = snapshotHealth{snap.Enabled, snap.Reason, snap.Err, snap.LastCommit.UTC()}
	a.Mirror = s.mirrorHealth()
	clusters, now := s.Caches.Clusters(), time.Now()
	known := a.look(clusters, s.Caches.Resources(), now)
	for _, c := range clusters {
		h := clusterHealth{Name: c.Name, Server: c.Server, Version: c.Version, Reachable: c.Reachable, Error: c.Err, Ready: true}
		if s.AccessTrouble != nil {
			h.AccessError = s.AccessTrouble(c.Name)
		}
		if e := known[c.Name]; e != nil {
			h.fault, h.Reason = e.judge(c.Name, now, s.Lease)
			h.Ready = h.fault == "" || h.fault == clusterSilent && staleOK
			h.ProvenTime = e.proven.UTC()
		}
		a.Clusters = append(a.Clusters, h)
	}
	if len(clusters) > 1 {
		a.ofSeveral(clusters, known, now, s.wasReady.Load() || now.Sub(s.began) > startLimit)
	} else {
		a.ofOne(known)
	}
	if a.Ready {
		s.wasReady.Store(true)
	}
	return a
}

// look notes the watched resources, and returns what those of each cluster say together.
func (a *readiness) look(clusters []cache.ClusterStatus, resources []Resource, now time.Time) map[string]*evidence {
	known := map[string]*evidence{}
	for _, res := range resources {
		view := res.View()
		cluster := view.Spec.Cluster
		if len(clusters) == 1 {
			cluster = clusters[0].Name // its resources may leave it unnamed
		}
		e := known[cluster]
		if e == nil {
			e = &evidence{}
			known[cluster] = e
		}
		if view.State == cache.Unwatched {
			continue
		}
		e.add(view, now)
		a.Resources = append(a.Resources, resourceHealth{
			view.Spec.Cluster, view.Spec.Name(), view.State, view.Reason, view.Since.UTC(), view.State != cache.Syncing,
		})
	}
	return known
}

// ofOne decides where there is one cluster, or none.
func (a *readiness) ofOne(known map[string]*evidence) {
	waiting := 0
	for _, e := range known {
		waiting += e.waiting
	}
	switch {
	case len(a.Clusters) == 0 && len(known) == 0:
		a.Reason = "there is no cluster yet"
	case len(known) == 0:
		a.Reason = "no resource has been discovered yet"
	case waiting > 0:
		a.Reason = fmt.Sprintf("%d of %d resources have no data yet", waiting, len(a.Resources))
	case len(a.Clusters) > 0 && !a.Clusters[0].Ready:
		a.Reason = a.Clusters[0].Reason
	default:
		a.Ready = true
	}
}

const (
	// awayAfter is how long a cluster may not answer before it holds up others no more.
	awayAfter = 15 * time.Second
	// startLimit is how long the start may wait for one that answers and has no data.
	startLimit = 5 * time.Minute
)

// ofSeveral decides where there are several clusters: one that fails must not take the
// others from those who read them. So it is enough that one is in order, but for the
// start: until informerd was ready once, whatever answers and may still have data is
// waited for, though not for ever.
func (a *readiness) ofSeveral(clusters []cache.ClusterStatus, known map[string]*evidence, now time.Time, started bool) {
	good, holding := 0, ""
	for n, c := range clusters {
		h := &a.Clusters[n]
		switch e := known[c.Name]; {
		case e == nil:
			h.fault, h.Reason = clusterUndiscovered, fmt.Sprintf("no resource of cluster %s has been discovered yet", c.Name)
			h.Ready = false
		case e.waiting > 0 && h.Ready:
			h.fault, h.Reason = clusterSyncing, fmt.Sprintf("%d of %d resources of cluster %s have no data yet", e.waiting, e.watched(), c.Name)
			h.Ready = false
		}
		switch away := !c.Reachable && now.Sub(c.Since) > awayAfter; {
		case h.Ready:
			good++
		case holding == "" && !away && !started && h.fault != clusterDataless:
			holding = h.Reason
		}
	}
	switch {
	case holding != "":
		a.Reason = holding
	case good == 0:
		a.Reason = a.Clusters[0].Reason
	default:
		a.Ready = true
	}
}

// evidence is what the watched resources of a cluster say of it together.
type evidence struct {
	waiting, readable, refused int
	proven                     time.Time // the last proof of any of them
	// sign is when one was live last, as far as can be told. A copy from the
	// snapshot begins with a sign: whether the API server proves it is yet to be
	// seen.
	sign time.Time
}

func (e *evidence) add(view *cache.View, now time.Time) {
	switch {
	case view.State == cache.Syncing:
		e.waiting++
		return
	case !view.State.Readable():
		e.refused++
		return
	}
	e.readable++
	e.proven = latest(e.proven, view.Proof)
	sign := view.Proof
	switch {
	case view.State == cache.Live:
		sign = now
	case view.State == cache.Warm, sign.IsZero():
		sign = latest(sign, view.Since)
	}
	e.sign = latest(e.sign, sign)
}

// watched is how many resources are.
func (e *evidence) watched() int { return e.waiting + e.readable + e.refused }

// Faults of a cluster.
const (
	clusterUndiscovered = "undiscovered"
	clusterSyncing      = "syncing"

	clusterSilent   = "silent"
	clusterDataless = "without data"
)

// judge says what is wrong, "" for nothing. One resource that is live shows that
// the API server answers: what is wrong with others is their own.
func (e *evidence) judge(cluster string, now time.Time, lease time.Duration) (fault, reason string) {
	of := ""
	if cluster != "" {
		of = " of cluster " + cluster
	}
	silence := now.Sub(e.sign)
	switch {
	case e.readable == 0 && e.waiting == 0 && e.refused > 0:
		return clusterDataless, "no resource" + of + " can be read"
	case e.readable > 0 && silence > lease:
		return clusterSilent, fmt.Sprintf("the API server%s has not proven anything current for %.0f s", of, silence.Seconds())
	}
	return "", ""
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	verbose, err := paramsOf(r).flag("verbose")
	if err != nil {
		return err
	}
	stale, err := paramsOf(r).oneOf("stale", "", "ok")
	if err != nil {
		return err
	}
	answer := s.readiness(stale == "ok")
	// Probes show nothing of who makes them. They learn what they must: what there is
	// and why it is not ready is for those who may know, as system:monitoring may.
	if known, err := access.From(r.Context()).Path(r.Context(), "get", "/readyz/verbose"); err != nil || !known {
		answer = answer.discreet()
	}
	body, mediaType := answer.text(verbose), typeText+"; charset=utf-8"
	w.Header().Add("Vary", "Accept")
	if !accepts(r, typeText) && accepts(r, typeJSON) {
		encoded, err := reply.JSON(answer, false)
		if err != nil {
			return err
		}
		body, mediaType = string(encoded)+"\n", typeJSON
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "no-store")
	if !answer.Ready {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body))
	}
	return nil
}

// discreet is the answer without what only those may know who may read it: whether it
// is ready, and whether who asks can be told.
func (a readiness) discreet() readiness {
	d := readiness{Ready: a.Ready, Clusters: []clusterHealth{}, Resources: []resourceHealth{}, hidden: true}
	if !a.Ready {
		d.Reason = "who may read /readyz/verbose sees why"
	}
	for _, c := range a.Clusters {
		if c.AccessError != "" {
			d.Reason = "who asks, or what they may, cannot be told now"
		}
	}
	return d
}

// trouble is what is wrong with a cluster and why.
func (c clusterHealth) trouble() string {
	if c.Error == "" {
		return c.Reason
	}
	return c.Reason + " (unreachable: " + c.Error + ")"
}

// text is the answer in the form of Kubernetes' readyz: [+] is in order, [-]
// holds up readiness, [!] is in trouble and does not.
func (a readiness) text(verbose bool) string {
	if a.Ready && !verbose {
		return "ok\n"
	}
	var b strings.Builder
	line := func(mark, name, text, reason string) {
		if reason != "" {
			text += ": " + strings.ReplaceAll(reason, "\n", " ")
		}
		fmt.Fprintf(&b, "[%s]%s %s\n", mark, name, text)
	}
	holds := "-"
	if a.Ready {
		holds = "!" // it would, if there was no other cluster
	}
	for _, c := range a.Clusters {
		name := "cluster"
		if c.Name != "" {
			name += " " + c.Name
		}
		switch {
		case !c.Ready:
			line(holds, name, c.fault, c.trouble())
		case c.fault != "":
			line("!", name, c.fault, c.trouble())
		case !c.Reachable:
			line("!", name, "unreachable", c.Error)
		default:
			line("+", name, "ok", "")
		}
		if c.AccessError != "" {
			line("!", "access to "+name, "unknown", c.AccessError)
		}
	}
	if a.hidden {
		return a.summary(&b)
	}
	switch {
	case a.Snapshot.Error != "":
		line("!", "snapshot", "failing", a.Snapshot.Error)
	case a.Snapshot.Enabled:
		line("+", "snapshot", "ok", "")
	default:
		line("!", "snapshot", "off", a.Snapshot.Reason)
	}
	switch {
	case a.Mirror == nil:
	case a.Mirror.Error != "":
		line("!", "mirror", "failing", a.Mirror.Error)
	default:
		line("+", "mirror", "ok", "")
	}
	for _, res := range a.Resources {
		name := res.Name
		if len(a.Clusters) > 1 {
			name = res.Cluster + "/" + name
		}
		switch {
		case !res.Ready:
			line(holds, name, string(res.State), res.Reason)
		case res.State == cache.Live:
			line("+", name, "ok", "")
		case res.State == cache.Warm:
			line("+", name, string(res.State), res.Reason)
		default:
			line("!", name, string(res.State), res.Reason)
		}
	}
	return a.summary(&b)
}

func (a readiness) summary(b *strings.Builder) string {
	switch {
	case !a.Ready:
		fmt.Fprintf(b, "readyz check failed: %s\n", a.Reason)
	case a.Reason != "":
		fmt.Fprintf(b, "readyz check passed: %s\n", a.Reason)
	default:
		b.WriteString("readyz check passed\n")
	}
	return b.String()
}
