package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
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
}

type clusterHealth struct {
	Name      string `json:"name"`
	Server    string `json:"server,omitempty"`
	Version   string `json:"version,omitempty"`
	Reachable bool   `json:"reachable"`
	Error     string `json:"error,omitempty"`
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

// readiness decides: ready is when there are resources and none of them is
// still syncing. One that is forbidden or has failed does not count, because
// waiting would not change it; nor does a cluster that is away while its
// resources are answered from memory, nor trouble with the snapshot. All of
// these are named.
func (s *Server) readiness() readiness {
	a := readiness{Clusters: []clusterHealth{}, Resources: []resourceHealth{}}
	for _, c := range s.Caches.Clusters() {
		a.Clusters = append(a.Clusters, clusterHealth{c.Name, c.Server, c.Version, c.Reachable, c.Err})
	}
	snap := s.Caches.SnapshotStatus()
	a.Snapshot = snapshotHealth{snap.Enabled, snap.Reason, snap.Err, snap.LastCommit.UTC()}
	resources := s.Caches.Resources()
	known, waiting := map[string]bool{}, 0
	for _, res := range resources {
		status := res.Status()
		known[status.Spec.Cluster] = true
		if status.State == cache.Unwatched {
			continue
		}
		h := resourceHealth{status.Spec.Cluster, status.Spec.Name(), status.State, status.Reason, status.Since.UTC(), true}
		if status.State == cache.Syncing {
			h.Ready = false
			waiting++
		}
		a.Resources = append(a.Resources, h)
	}
	switch empty := undiscovered(a.Clusters, known); {
	case len(resources) == 0:
		a.Reason = "no resource has been discovered yet"
	case empty != "":
		a.Reason = fmt.Sprintf("no resource of cluster %s has been discovered yet", empty)
	case waiting > 0:
		a.Reason = fmt.Sprintf("%d of %d resources have no data yet", waiting, len(a.Resources))
	default:
		a.Ready = true
	}
	return a
}

// undiscovered is the first cluster nothing is known of. With one cluster only
// its resources may leave it unnamed.
func undiscovered(clusters []clusterHealth, known map[string]bool) string {
	if len(clusters) < 2 {
		return ""
	}
	for _, c := range clusters {
		if !known[c.Name] {
			return c.Name
		}
	}
	return ""
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	verbose, err := paramsOf(r).flag("verbose")
	if err != nil {
		return err
	}
	answer := s.readiness()
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
	for _, c := range a.Clusters {
		name := "cluster"
		if c.Name != "" {
			name += " " + c.Name
		}
		if c.Reachable {
			line("+", name, "ok", "")
		} else {
			line("!", name, "unreachable", c.Error)
		}
	}
	switch {
	case a.Snapshot.Error != "":
		line("!", "snapshot", "failing", a.Snapshot.Error)
	case a.Snapshot.Enabled:
		line("+", "snapshot", "ok", "")
	default:
		line("!", "snapshot", "off", a.Snapshot.Reason)
	}
	for _, res := range a.Resources {
		name := res.Name
		if len(a.Clusters) > 1 {
			name = res.Cluster + "/" + name
		}
		switch {
		case !res.Ready:
			line("-", name, string(res.State), res.Reason)
		case res.State == cache.Live:
			line("+", name, "ok", "")
		case res.State.Readable():
			line("+", name, string(res.State), res.Reason)
		default:
			line("!", name, string(res.State), res.Reason)
		}
	}
	if a.Ready {
		b.WriteString("readyz check passed\n")
	} else {
		fmt.Fprintf(&b, "readyz check failed: %s\n", a.Reason)
	}
	return b.String()
}
