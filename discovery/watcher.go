package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	watchTimeout   = 5 * time.Minute  // and up to twice that, as reflectors do
	initialTimeout = 60 * time.Second // for the initial events of a watch
	listPage       = 100

	retryFirst   = 500 * time.Millisecond // after a transient fault
	retryLast    = 10 * time.Second
	refusedFirst = 5 * time.Second // after a refusal
	refusedLast  = 5 * time.Minute
)

// row is what is kept of one object.
type row[S any] struct {
	uid        string
	generation int64
	ready      bool // the watcher's condition is True
	spec       S
}

// table is what a watcher knows. Its rows, by object name, are never modified.
type table[S any] struct {
	rows     map[string]row[S]
	known    bool // rows were complete at some time
	live     bool // and are current
	revision uint64
}

// watcher keeps a table of all objects of one cluster-scoped resource current,
// from a watch that begins with a streaming list. Reading each object into the
// few fields of S costs a fraction of an informer's memory: the schemas of
// CRDs never become a tree.
//
// It sends a LIST only to a server that rejects streaming lists. After an
// outage it streams again rather than resume, as it may meet another server,
// or an older etcd.
type watcher[S any] struct {
	client    *client
	path      string
	condition string
	changed   func() // called after the table changed, from Run's goroutine
	log       *slog.Logger

	kick     chan struct{} // wakes a retry
	answered chan struct{} // closed once the table is known or refused
	watches  atomic.Uint64
	lists    atomic.Uint64

	mu    sync.Mutex // guards table
	table table[S]

	// The rest belongs to run's goroutine.
	resourceVersion string // "" begins with a streaming list
	faults          int    // since the last good stream
	cuts            int    // in a row, of streams that were accepted and cut at once
	unlisted        bool   // the server rejects streaming lists
}

func newWatcher[S any](c *client, path, condition string, changed func(), log *slog.Logger) *watcher[S] {
	return &watcher[S]{
		client:    c,
		path:      path,
		condition: condition,
		changed:   changed,
		log:       log.With("path", path),
		kick:      make(chan struct{}, 1),
		answered:  make(chan struct{}),
	}
}

// current returns the table as it is now.
func (w *watcher[S]) current() table[S] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.table
}

// retryNow ends a pause between two attempts.
func (w *watcher[S]) retryNow() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// run watches until ctx ends.
func (w *watcher[S]) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := w.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := w.settle(err, time.Since(began))
		if err == nil && time.Since(began) < time.Second {
			pause = max(pause, retryFirst)
		}
		w.wait(ctx, pause)
	}
}

// settle draws the conclusions of one attempt, and of how long it lasted, and says
// how long to wait.
func (w *watcher[S]) settle(err error, lasted time.Duration) time.Duration {
	if lasted >= time.Second {
		w.cuts = 0
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errCut):
		// Resume soon; a server that is down refuses that, but what is in front
		// of it may accept, and cut, every attempt.
		w.cuts++
		return jitter(backoff(retryFirst/5, retryLast, w.cuts))
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		w.resourceVersion = ""
		return jitter(retryFirst / 5)
	case w.resourceVersion == "" && !w.unlisted && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		w.unlisted = true // the next attempt lists
		return 0
	}
	w.resourceVersion, w.unlisted = "", false // the server may be another one now
	w.setLive(false)
	w.faults++
	if refused(err) {
		w.setAnswered()
		if w.faults == 1 {
			w.log.Warn("watch refused, relying on polls", "err", err)
		}
		return jitter(backoff(refusedFirst, refusedLast, w.faults))
	}
	if w.faults == 2 {
		w.log.Warn("watch interrupted, relying on polls", "err", err)
	}
	delay, _ := apierrors.SuggestsClientDelay(err)
	return max(jitter(backoff(retryFirst, retryLast, w.faults)), min(time.Duration(delay)*time.Second, time.Minute))
}

func (w *watcher[S]) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.kick:
	case <-timer.C:
	}
}

// errCut is a stream that broke after it worked.
var errCut = errors.New("watch cut")

// watch runs one watch to its end; nil if the server closed it in due time.
func (w *watcher[S]) watch(ctx context.Context) error {
	if w.resourceVersion == "" && w.unlisted {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	timeout := watchTimeout + rand.N(watchTimeout)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(timeout+30*time.Second, cancel)
	defer watchdog.Stop()

	query := url.Values{
		"watch":               {"true"},
		"allowWatchBookmarks": {"true"},
		"timeoutSeconds":      {strconv.Itoa(int(timeout.Seconds()))},
	}
	s := stream[S]{watcher: w}
	if w.resourceVersion == "" {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
		s.initial = map[string]row[S]{}
		s.late = time.AfterFunc(initialTimeout, cancel)
		defer s.late.Stop()
	} else {
		query.Set("resourceVersion", w.resourceVersion)
	}
	w.watches.Add(1)
	resp, err := w.client.get(ctx, w.path, query, "application/json", "")
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.path, err)
	}
	defer resp.Body.Close()
	if s.initial == nil {
		w.good()
	}
	return s.read(resp)
}

// good notes that the table follows the server.
func (w *watcher[S]) good() {
	if w.faults > 1 {
		w.log.Info("watch is back")
	}
	w.faults = 0
	w.setLive(true)
}

// stream reads one watch.
type stream[S any] struct {
	*watcher[S]
	initial map[string]row[S] // collects the initial events, then nil
	late    *time.Timer       // ends the watch if they take too long
}

// event is one frame of a watch. Of an error event's Status, status is a
// string, and its fields lie beside metadata.
type event[S any] struct {
	Type   string `json:"type"`
	Object struct {
		object[S]
		Code    int32               `json:"code"`
		Reason  metav1.StatusReason `json:"reason"`
		Message string              `json:"message"`
	} `json:"object"`
}

type object[S any] struct {
	Metadata struct {
		Name            string `json:"name"`
		UID             string `json:"uid"`
		Generation      int64  `json:"generation"`
		ResourceVersion string `json:"resourceVersion"`
		Annotations     struct {
			InitialEventsEnd string `json:"k8s.io/initial-events-end"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec   S               `json:"spec"`
	Status json.RawMessage `json:"status"`
}

func (s *stream[S]) read(resp *http.Response) error {
	frames := json.NewDecoder(resp.Body)
	for {
		var e event[S]
		if err := frames.Decode(&e); err != nil {
			return s.ended(err)
		}
		if err := s.take(&e); err != nil {
			return err
		}
	}
}

// ended tells a regular end from a cut one.
func (s *stream[S]) ended(err error) error {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) || errors.As(err, &mistyped):
		return fmt.Errorf("decode watch event of %s: %w", s.path, err)
	case s.initial != nil:
		return fmt.Errorf("read initial events of %s: %w", s.path, err)
	case err == io.EOF:
		return nil
	default:
		return fmt.Errorf("%w: read %s: %w", errCut, s.path, err)
	}
}

func (s *stream[S]) take(e *event[S]) error {
	o := &e.Object.object
	switch e.Type {
	case "ADDED", "MODIFIED":
		s.put(o.Metadata.Name, s.row(o))
	case "DELETED":
		s.remove(o.Metadata.Name)
	case "BOOKMARK":
		if s.initial != nil && o.Metadata.Annotations.InitialEventsEnd == "true" {
			s.late.Stop()
			s.replace(s.initial)
			s.initial = nil
			s.resourceVersion = o.Metadata.ResourceVersion
			s.good()
			return nil
		}
	case "ERROR":
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: e.Object.Code, Reason: e.Object.Reason, Message: e.Object.Message,
		}}
	default:
		return fmt.Errorf("decode watch event of %s: unknown type %q", s.path, e.Type)
	}
	if s.initial == nil {
		s.resourceVersion = o.Metadata.ResourceVersion
	}
	return nil
}

func (w *watcher[S]) row(o *object[S]) row[S] {
	var status struct {
		Conditions []struct{ Type, Status string } `json:"conditions"`
	}
	_ = json.Unmarshal(o.Status, &status) // without a status it is not ready
	r := row[S]{uid: o.Metadata.UID, generation: o.Metadata.Generation, spec: o.Spec}
	for _, c := range status.Conditions {
		if c.Type == w.condition {
			r.ready = c.Status == "True"
		}
	}
	return r
}

// list fills the table page by page.
func (w *watcher[S]) list(ctx context.Context) error {
	rows := map[string]row[S]{}
	query := url.Values{"limit": {strconv.Itoa(listPage)}}
	for {
		var page struct {
			Metadata struct{ ResourceVersion, Continue string } `json:"metadata"`
			Items    []object[S]                                `json:"items"`
		}
		w.lists.Add(1)
		if err := w.client.getJSON(ctx, w.path, query, &page); err != nil {
			return fmt.Errorf("list %s: %w", w.path, err)
		}
		for i := range page.Items {
			rows[page.Items[i].Metadata.Name] = w.row(&page.Items[i])
		}
		if page.Metadata.Continue == "" {
			w.replace(rows)
			w.resourceVersion = page.Metadata.ResourceVersion
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

func (s *stream[S]) put(name string, r row[S]) {
	if s.initial != nil {
		s.initial[name] = r
		return
	}
	old, ok := s.current().rows[name]
	if ok && reflect.DeepEqual(old, r) {
		return
	}
	s.update(func(rows map[string]row[S]) { rows[name] = r })
}

func (s *stream[S]) remove(name string) {
	if s.initial != nil {
		delete(s.initial, name)
		return
	}
	s.update(func(rows map[string]row[S]) { delete(rows, name) })
}

func (w *watcher[S]) update(edit func(map[string]row[S])) {
	rows := maps.Clone(w.current().rows) // readers hold the old one
	edit(rows)
	w.set(func(t *table[S]) { t.rows = rows })
}

// replace takes over all rows at once, and notes that they are current.
func (w *watcher[S]) replace(rows map[string]row[S]) {
	if old := w.current(); !old.known || !old.live || !reflect.DeepEqual(old.rows, rows) {
		w.set(func(t *table[S]) { t.rows, t.known, t.live = rows, true, true })
	}
	w.setAnswered()
}

func (w *watcher[S]) setLive(live bool) {
	if w.current().live != live {
		w.set(func(t *table[S]) { t.live = live })
	}
}

func (w *watcher[S]) set(edit func(*table[S])) {
	w.mu.Lock()
	edit(&w.table)
	w.table.revision++
	w.mu.Unlock()
	w.changed()
}

func (w *watcher[S]) setAnswered() {
	select {
	case <-w.answered:
	default:
		close(w.answered)
	}
}

// backoff doubles first with each fault after the first, up to last.
func backoff(first, last time.Duration, faults int) time.Duration {
	return min(first<<min(faults-1, 16), last)
}

// jitter spreads d over half of itself, up and down.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
