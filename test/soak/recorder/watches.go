package recorder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/history"
	"github.com/informerd/informerd/test/sse"
)

// errExpired asks for a new list.
var errExpired = errors.New("expired")

// watch keeps a copy of a resource as a Reflector does: a list, or a stream that
// begins with one, and watches from its version on, until one says 410.
func (r *Recorder) watch(ctx context.Context, resource history.Resource, streaming bool) {
	reader := r.Target.Name + " watch"
	if streaming {
		reader = r.Target.Name + " stream"
	}
	w := &watcher{Recorder: r, resource: resource, reader: reader, watch: r.Checker.Watch(reader, resource.Name(), checker.Selection{})}
	r.settler(w.watch)
	for ctx.Err() == nil {
		err := w.step(ctx, streaming)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errExpired) {
			r.refuse(err)
		}
		if gone := errors.Is(err, errExpired) || code(err) == http.StatusGone; gone || code(err) == http.StatusNotFound {
			if gone && !resource.Loose {
				w.watch.Expired(w.instance != r.Target.Instance())
			}
			w.version = 0
		}
		pause(ctx, 200*time.Millisecond)
	}
}

type watcher struct {
	*Recorder
	resource history.Resource
	reader   string
	watch    *checker.Watch
	version  int64  // everything up to here has come; 0: nothing
	instance string // the process that told something last
	session  string // the process that tells now
}

func (w *watcher) step(ctx context.Context, streaming bool) error {
	if w.version == 0 && !streaming {
		if err := w.relist(ctx); err != nil {
			return err
		}
	}
	params := []string{"watch=true", "allowWatchBookmarks=true", "timeoutSeconds=240"}
	if w.version == 0 {
		params = append(params, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan")
	} else {
		params = append(params, "resourceVersion="+strconv.FormatInt(w.version, 10))
	}
	instance := w.Target.Instance()
	resp, err := w.open(ctx, w.reader, joined(path(w.resource, ""), params...))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	w.session = instance
	initial := w.version == 0
	if !initial {
		w.watch.Begin(w.version, false)
	}
	err = w.read(resp.Body, initial)
	w.watch.End()
	if err == io.EOF {
		return nil
	}
	return err
}

func (w *watcher) relist(ctx context.Context) error {
	p, instance := path(w.resource, ""), w.Target.Instance()
	a, err := w.ask(ctx, w.reader, p)
	if err != nil {
		return err
	}
	objects := map[string]history.Object{}
	version, _, err := parseList(w.resource, a.body, objects)
	if err != nil {
		w.bad(w.reader, p, err)
		return err
	}
	w.watch.List(version, objects)
	w.version, w.instance = version, instance
	return nil
}

// read reads a watch to its end. One that begins with the present objects has
// them up to a bookmark that says so.
func (w *watcher) read(body io.Reader, initial bool) error {
	lines := bufio.NewReaderSize(body, 256<<10)
	present := map[string]history.Object{}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err // half a line is none
		}
		var e struct {
			Type   string
			Object map[string]any
		}
		if err := json.Unmarshal(line, &e); err != nil {
			w.bad(w.reader, "watch", err)
			return err
		}
		switch e.Type {
		case "ERROR":
			if c, _ := e.Object["code"].(float64); c == http.StatusGone {
				return errExpired
			}
			return fmt.Errorf("event ERROR: %v", e.Object["message"])
		case "BOOKMARK":
			version, end, err := bookmark(e.Object)
			if err != nil {
				w.bad(w.reader, "watch", err)
				return err
			}
			switch {
			case initial && end:
				w.watch.List(version, present)
				w.watch.Begin(version, false)
				initial, w.version, w.instance = false, version, w.session
			case !initial:
				w.watch.Bookmark(version)
				w.version, w.instance = max(w.version, version), w.session
			}
		default:
			key, o, err := history.Parse(w.resource, e.Object)
			if err != nil {
				w.bad(w.reader, "watch", err)
				return err
			}
			if initial {
				present[key] = o
				continue
			}
			w.watch.Event(e.Type, key, o)
			w.version, w.instance = max(w.version, o.Version), w.session
		}
	}
}

func bookmark(o map[string]any) (version int64, end bool, err error) {
	meta, _ := o["metadata"].(map[string]any)
	text, _ := meta["resourceVersion"].(string)
	annotations, _ := meta["annotations"].(map[string]any)
	version, err = strconv.ParseInt(text, 10, 64)
	return version, annotations[metav1.InitialEventsAnnotationKey] == "true", err
}

// events follows the event stream of /v1, which resumes by the id of its last
// event.
func (r *Recorder) events(ctx context.Context, resource history.Resource) {
	reader := r.Target.Name + " events"
	s := &streamer{Recorder: r, resource: resource, reader: reader, watch: r.Checker.Watch(reader, resource.Name(), checker.Selection{})}
	r.settler(s.watch)
	for ctx.Err() == nil {
		err := s.step(ctx)
		if err != nil && ctx.Err() == nil {
			r.refuse(err)
		}
		if code(err) == http.StatusGone || code(err) == http.StatusNotFound {
			s.expired(code(err) == http.StatusGone)
			s.id = ""
		}
		pause(ctx, 200*time.Millisecond)
	}
}

type streamer struct {
	*Recorder
	resource history.Resource
	reader   string
	watch    *checker.Watch
	id       string
	instance string                    // the process that told something last
	session  string                    // the process that tells now
	present  map[string]history.Object // being received, after RESYNC or at the start
}

// expired tells the checker of a 410, in whatever form.
func (s *streamer) expired(gone bool) {
	if gone && s.present == nil && !s.resource.Loose {
		s.watch.Expired(s.instance != s.Target.Instance())
	}
}

func (s *streamer) step(ctx context.Context) error {
	headers := []string{"Accept", "text/event-stream"}
	s.present = nil
	if s.id != "" {
		headers = append(headers, "Last-Event-ID", s.id)
	} else {
		s.present = map[string]history.Object{}
	}
	instance := s.Target.Instance()
	resp, err := s.open(ctx, s.reader, "/v1/resources/"+s.resource.Name()+"/objects?watch=true", headers...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	s.session = instance
	if version, err := strconv.ParseInt(s.id, 10, 64); err == nil && version > 0 {
		s.watch.Begin(version, true)
	}
	defer s.watch.End()
	return s.read(resp.Body)
}

func (s *streamer) read(body io.Reader) error {
	return sse.Read(body, func(id, data string) error {
		if id != "" {
			s.id = id // of an ERROR as well, as in an EventSource
		}
		return s.event(data)
	})
}

func (s *streamer) event(data string) error {
	var e struct {
		Type            string
		ResourceVersion string
		Object          map[string]any
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		s.bad(s.reader, "events", err)
		return err
	}
	switch e.Type {
	case "RESYNC":
		s.expired(true)
		s.watch.End()
		s.present = map[string]history.Object{}
	case "BOOKMARK":
		version, err := strconv.ParseInt(e.ResourceVersion, 10, 64)
		if err != nil {
			s.bad(s.reader, "events", err)
			return err
		}
		if s.present != nil {
			s.watch.List(version, s.present)
			s.watch.Begin(version, false)
			s.present = nil
		} else {
			s.watch.Bookmark(version)
		}
		s.instance = s.session
	case "ADDED", "MODIFIED", "DELETED":
		key, o, err := history.Parse(s.resource, e.Object)
		if err != nil {
			s.bad(s.reader, "events", err)
			return err
		}
		if s.present != nil {
			s.present[key] = o
		} else {
			s.watch.Event(e.Type, key, o)
		}
		s.instance = s.session
	case "ERROR":
		return fmt.Errorf("event ERROR: %v", e.Object["message"])
	}
	return nil
}
