// Package standin is a stand-in for an API server, for sizes at which a real one does not fit
// on the machine beside what is measured. It serves pods that are made when they are asked for,
// and namespaces: discovery, get, list with limit and continue, of pods or their metadata, and watch
// with bookmarks. It has no selectors, tables, protobuf or streaming lists, and refuses them; nobody is asked who they
// are, and its history does not expire unless Forget is called. It says nothing about API servers.
package standin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// first is the version before that of pod 0, so that pod i is made at first+1+i.
const first = 1000

// Created is the version at which pod i is made.
func Created(i int) int { return first + 1 + i }

// Server serves Pods. It is safe for concurrent use.
type Server struct {
	pods   *Pods
	system string // its namespace kube-system, which says which cluster it is
	mux    *http.ServeMux

	mu      sync.Mutex // guards all below
	changed chan struct{}
	events  []int       // the pod that changed with version s.created()+1+k
	last    map[int]int // the version of each pod that changed
	oldest  int         // the version from which on it can be watched
}

// New makes a Server of so many pods.
func New(pods int) *Server { return NewOf(0, pods) }

// NewOf makes that of cluster k of many with so many pods each: see PodsOf.
func NewOf(k, pods int) *Server {
	s := &Server{pods: PodsOf(k, pods), system: fmt.Sprintf(kubeSystem, k), mux: http.NewServeMux(), changed: make(chan struct{}), last: map[int]int{}}
	s.mux.HandleFunc("GET /version", say(`{"major":"1","minor":"36","gitVersion":"v1.36.3"}`))
	s.mux.HandleFunc("GET /api", say(`{"kind":"APIVersions","versions":["v1"]}`))
	s.mux.HandleFunc("GET /apis", say(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
	s.mux.HandleFunc("GET /api/v1", say(`{"kind":"APIResourceList","groupVersion":"v1","resources":[`+
		`{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"],"shortNames":["po"]},`+
		`{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["get","list","watch"]}]}`))
	s.mux.HandleFunc("GET /api/v1/namespaces/kube-system", say(s.system))
	s.mux.HandleFunc("GET /api/v1/namespaces", s.listNamespaces)
	s.mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", s.getPod)
	s.mux.HandleFunc("GET /api/v1/pods", s.listPods)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "a stand-in does not have "+r.URL.Path)
	})
	return s
}

const kubeSystem = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"00000000-0000-4000-8000-%012x","resourceVersion":"1"}}`

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	if accept := r.Header.Get("Accept"); accept != "" && !slices.ContainsFunc(strings.Split(accept, ","), isPlain) {
		refuse(w, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "a stand-in has objects as JSON alone")
		return
	}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if q.Get(name) != "" {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "a stand-in has no "+name)
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// isPlain says of a part of an Accept header that it takes objects as they are, as JSON.
func isPlain(accept string) bool {
	return !strings.Contains(accept, "as=") && (strings.Contains(accept, "json") || strings.Contains(accept, "*/*"))
}

// wantsMetadata says of a list that it is to have no more of objects than that.
func wantsMetadata(r *http.Request) bool {
	return slices.ContainsFunc(strings.Split(r.Header.Get("Accept"), ","), func(accept string) bool {
		return strings.Contains(accept, "json") && strings.Contains(accept, "as=PartialObjectMetadataList")
	})
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// Change changes so many pods, each to a new version.
func (s *Server) Change(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeLocked(n)
}

func (s *Server) changeLocked(n int) {
	for range n {
		i := int(mixed(uint64(len(s.events))*7) % uint64(s.pods.Count))
		s.events = append(s.events, i)
		s.last[i] = s.created() + len(s.events)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Forget changes so many pods, of which no watch tells: what was before is forgotten, so that
// every watch ends, and who goes on from before has to list again.
func (s *Server) Forget(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = s.created() + len(s.events) + n
	s.changeLocked(n)
}

// forgot reports whether it cannot be watched from a version any more.
func (s *Server) forgot(version int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return version < s.oldest
}

// created is the version at which all pods had been made.
func (s *Server) created() int { return first + s.pods.Count }

// now is the present version, and the events after a version until then. changed is closed
// when there are more.
func (s *Server) now(after int) (version int, events []int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := min(max(after-s.created(), 0), len(s.events))
	return s.created() + len(s.events), s.events[from:], s.changed
}

// versions are those of the pods that had changed by a version.
func (s *Server) versions(at int) map[int]int {
	_, events, _ := s.now(0)
	changed := map[int]int{}
	for k, i := range events[:min(max(at-s.created(), 0), len(events))] {
		changed[i] = s.created() + 1 + k
	}
	return changed
}

// versionNow is that of a pod.
func (s *Server) versionNow(i int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return versionOf(i, s.last)
}

func versionOf(i int, changed map[int]int) int {
	version, ok := changed[i]
	if !ok {
		version = Created(i)
	}
	return version
}

func (s *Server) getPod(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	i, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	i -= s.pods.first
	if err != nil || i < 0 || i >= s.pods.Count || s.pods.Name(i) != name || s.pods.Namespace(i) != r.PathValue("namespace") {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", name))
		return
	}
	_, _ = w.Write(s.pods.Append(nil, i, s.versionNow(i)))
}

func (s *Server) listPods(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("watch") != "" {
		s.watch(w, r, "Pod")
		return
	}
	version, _, _ := s.now(0)
	start, err := 0, error(nil)
	if next := q.Get("continue"); next != "" {
		if _, err = fmt.Sscanf(next, "%d:%d", &version, &start); err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "continue: not of this list")
			return
		}
	}
	end := s.pods.Count
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 {
		end = min(end, start+limit)
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}
	if left := int64(s.pods.Count - end); left > 0 {
		meta.Continue, meta.RemainingItemCount = fmt.Sprintf("%d:%d", version, end), &left
	}
	text, _ := json.Marshal(meta)
	out := bufio.NewWriterSize(w, 1<<20)
	is, appendItem := `"kind":"PodList","apiVersion":"v1"`, s.pods.AppendItem
	if wantsMetadata(r) {
		is, appendItem = `"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`, s.pods.appendMetadata
	}
	fmt.Fprintf(out, `{%s,"metadata":%s,"items":[`, is, text)
	changed := s.versions(version)
	var b []byte
	for i := start; i < end; i++ {
		if b = b[:0]; i > start {
			b = append(b, ',')
		}
		if _, err := out.Write(appendItem(b, i, versionOf(i, changed))); err != nil {
			return
		}
	}
	fmt.Fprint(out, "]}")
	_ = out.Flush()
}

func (s *Server) listNamespaces(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, "Namespace")
		return
	}
	version, _, _ := s.now(0)
	fmt.Fprintf(w, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, s.system)
}

// bookmarks is the time between two bookmarks of a watch.
const bookmarks = 2 * time.Second

func (s *Server) watch(w http.ResponseWriter, r *http.Request, kind string) {
	q := r.URL.Query()
	if q.Get("sendInitialEvents") == "true" {
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")
		return
	}
	at, err := strconv.Atoi(q.Get("resourceVersion"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "a stand-in watches from a resourceVersion")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(q))
	defer cancel()
	mark := time.NewTicker(bookmarks)
	defer mark.Stop()
	out, flusher := bufio.NewWriter(w), http.NewResponseController(w)
	for {
		if err := flusher.Flush(); err != nil {
			return
		}
		_, events, changed := s.now(at)
		if s.forgot(at) {
			fmt.Fprintf(out, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: %d","reason":"Expired","code":410}}`+"\n", at)
			_ = out.Flush()
			return
		}
		if kind == "Pod" {
			for k, i := range events {
				out.Write(append(s.pods.Append([]byte(`{"type":"MODIFIED","object":`), i, max(at, s.created())+1+k), "}\n"...))
			}
		}
		at = max(at, s.created()) + len(events)
		if len(events) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				continue
			case <-mark.C:
				if q.Get("allowWatchBookmarks") != "true" {
					continue
				}
				fmt.Fprintf(out, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", kind, at)
			}
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
}

func timeoutOf(q url.Values) time.Duration {
	if seconds, _ := strconv.Atoi(q.Get("timeoutSeconds")); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return 5 * time.Minute
}
