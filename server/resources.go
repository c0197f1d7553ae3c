package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/informerd/informerd/cache"
)

// apiVersion is that of the answers which are no Kubernetes objects.
const apiVersion = "informerd/v1"

// list is a list of things that are no Kubernetes objects.
type list[T any] struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   listMeta `json:"metadata"`
	Items      []T      `json:"items"`
}

// resourceItem is one resource and what is held of it. docs/api.md says what
// the fields mean.
type resourceItem struct {
	Cluster    string   `json:"cluster,omitempty"`
	Group      string   `json:"group"`
	Version    string   `json:"version"`
	Resource   string   `json:"resource"`
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Singular   string   `json:"singular,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Namespaced bool     `json:"namespaced"`

	Namespaces    []string `json:"namespaces,omitempty"`
	LabelSelector string   `json:"labelSelector,omitempty"`
	FieldSelector string   `json:"fieldSelector,omitempty"`
	ShardSelector string   `json:"shardSelector,omitempty"`

	// Redacted are paths whose values are served as "": who shows them can say so.
	Redacted []string `json:"redacted,omitempty"`

	Missing []missingItem `json:"missing,omitempty"`

	State           cache.State `json:"state"`
	Reason          string      `json:"reason,omitempty"`
	Since           time.Time   `json:"since,omitzero"`
	Objects         int         `json:"objects"`
	Bytes           int64       `json:"bytes"`
	RawBytes        int64       `json:"rawBytes"`
	ResourceVersion string      `json:"resourceVersion,omitempty"`
	LastEventTime   time.Time   `json:"lastEventTime,omitzero"`
	ProvenTime      time.Time   `json:"provenTime,omitzero"`
	Age             *float64    `json:"age,omitempty"`
	Indexes         []string    `json:"indexes"`
	Counts          counts      `json:"counts"`
	Snapshot        *snapshot   `json:"snapshot,omitempty"`
}

type missingItem struct {
	Namespace string      `json:"namespace"`
	State     cache.State `json:"state"`
	Reason    string      `json:"reason,omitempty"`
}

type counts struct {
	Events      uint64 `json:"events"`
	Relists     uint64 `json:"relists"`
	Compared    uint64 `json:"compared"`
	Fetched     uint64 `json:"fetched"`
	Expired     uint64 `json:"expired"`
	Restarts    uint64 `json:"restarts"`
	Unextracted uint64 `json:"unextracted"`
	Undecoded   uint64 `json:"undecoded"`
	Mended      uint64 `json:"mended"`
	Subscribers int    `json:"subscribers"`
}

type snapshot struct {
	Time       time.Time `json:"time,omitzero"`
	Drops      uint64    `json:"drops"`
	DropReason string    `json:"dropReason,omitempty"`
}

func itemOf(s cache.Status) resourceItem {
	item := resourceItem{
		Cluster: s.Spec.Cluster, Group: s.Spec.GVR.Group, Version: s.Spec.GVR.Version, Resource: s.Spec.GVR.Resource,
		Name: s.Spec.Name(), Kind: s.Spec.Kind, Singular: s.Spec.Singular, ShortNames: s.Spec.ShortNames, Namespaced: s.Spec.Namespaced,
		Namespaces: s.Spec.Namespaces, LabelSelector: s.Spec.LabelSelector, FieldSelector: s.Spec.FieldSelector, ShardSelector: s.Spec.ShardSelector, Redacted: s.Spec.Redact,
		State: s.State, Reason: s.Reason, Since: s.Since.UTC(), Objects: s.Objects, Bytes: s.Bytes, RawBytes: s.RawBytes,
		ResourceVersion: s.ResourceVersion, LastEventTime: s.LastEvent.UTC(), ProvenTime: s.Proof.UTC(),
		Indexes: append([]string{}, s.Indexes...),
		Counts:  counts{s.Events, s.Relists, s.Compared, s.Fetched, s.Expired, s.Restarts, s.Unextracted, s.Undecoded, s.Mended, s.Subscribers},
	}
	for _, m := range s.Missing {
		item.Missing = append(item.Missing, missingItem(m))
	}
	if age, known := s.Age(); known && s.State.Readable() {
		seconds := age.Round(time.Millisecond).Seconds()
		item.Age = &seconds
	}
	if !s.SnapshotAt.IsZero() || s.SnapshotDrops > 0 {
		item.Snapshot = &snapshot{s.SnapshotAt.UTC(), s.SnapshotDrops, s.SnapshotReason}
	}
	return item
}

// seenStatus is a Status as it may be shown to who sees no more than scope. Of what is
// seen in part, objects and their bytes are counted anew; when and how often others
// changed is not told. Of what is not seen at all nothing is told but that it is served.
func seenStatus(s cache.Status, scope cache.Scope) cache.Status {
	if scope.Whole() {
		return s
	}
	seen := cache.Status{View: *s.View.SeenBy(scope), Indexes: s.Indexes}
	// Of a rule's namespaces those are named that something is seen of.
	seen.Spec.Namespaces = seenNamespaces(s.Spec.Namespaces, scope)
	if scope.Empty() {
		seen.Spec.LabelSelector, seen.Spec.FieldSelector, seen.Spec.ShardSelector, seen.Spec.Redact = "", "", "", nil
		seen.Since, seen.Proof, seen.Missing = time.Time{}, time.Time{}, nil
		return seen
	}
	seen.ResourceVersion = s.ResourceVersion
	if reader := seen.Reader(scope); reader != nil {
		// How well objects are compressed tells what is in others: the dictionary is
		// made of all.
		seen.Objects, _, seen.RawBytes = reader.Size()
	}
	return seen
}

// seenNamespaces are those of globs that stand for a namespace which something may be
// seen of.
func seenNamespaces(globs []string, scope cache.Scope) []string {
	known := slices.AppendSeq(scope.Namespaces(), maps.Keys(scope.Names()))
	var seen []string
	for _, glob := range globs {
		if !cache.IsGlob(glob) && scope.Touches(glob) || slices.ContainsFunc(known, func(namespace string) bool {
			ok, _ := path.Match(glob, namespace)
			return ok && namespace != ""
		}) {
			seen = append(seen, glob)
		}
	}
	return seen
}

func (s *Server) listResources(w http.ResponseWriter, r *http.Request) error {
	pretty, err := paramsOf(r).flag("pretty")
	if err != nil {
		return err
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	cluster := paramsOf(r).Get("cluster")
	if err := s.checkCluster(r.Context(), cluster); err != nil {
		return err
	}
	answer := list[resourceItem]{Kind: "ResourceList", APIVersion: apiVersion, Items: []resourceItem{}}
	known := s.clusterNames(r.Context())
	if cluster != "" {
		known = []string{cluster}
	}
	sights, err := s.sights(r.Context(), known, cache.List)
	if err != nil {
		return err
	}
	for _, res := range s.Caches.Resources() {
		spec := res.Spec()
		if sight, ok := sights[spec.Cluster]; ok {
			answer.Items = append(answer.Items, itemOf(seenStatus(res.Status(), sight.Of(spec.GVR.GroupResource()))))
		}
	}
	tag, err := contentTag(r, answer.Items...)
	if err != nil {
		return err
	}
	if notModified(w, r, tag) {
		return nil
	}
	return writeJSON(w, r, answer, pretty)
}

func (s *Server) getResource(w http.ResponseWriter, r *http.Request) error {
	pretty, err := paramsOf(r).flag("pretty")
	if err != nil {
		return err
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	res, err := s.lookup(r)
	if err != nil && !errors.Is(err, cache.ErrNotWatched) {
		return err // of one that is not watched the answer says just that
	}
	g, err := granted(r.Context(), res.Spec(), cache.List)
	if err != nil {
		return err
	}
	status := seenStatus(res.Status(), g.scope)
	item := itemOf(status)
	setFreshness(w.Header(), &status.View, status.ResourceVersion)
	tag, err := contentTag(r, item)
	if err != nil {
		return err
	}
	if notModified(w, r, tag) {
		return nil
	}
	return writeJSON(w, r, item, pretty)
}

// contentTag is a tag of what items say, less what changes by itself: the age,
// the last proof of a live resource, and when the snapshot was written.
func contentTag(r *http.Request, items ...resourceItem) (string, error) {
	h := fnv.New64a()
	enc := json.NewEncoder(h)
	for _, item := range items {
		item.Age, item.Snapshot = nil, nil
		if item.State == cache.Live {
			item.ProvenTime = time.Time{}
		}
		if err := enc.Encode(item); err != nil {
			return "", err
		}
	}
	return etag(r, fmt.Sprintf("%x", h.Sum64())), nil
}
