package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
)

// eventBuffer is what a stream collects before it writes: there may be many
// streams.
const eventBuffer = 8 << 10

// keptBuffer is how much memory a stream keeps from one event to the next. It may say
// nothing for days after a large one.
const keptBuffer = 64 << 10

// eventWriter writes server-sent events. What is written leaves with flush; the
// first error of the client is kept and returned there.
type eventWriter struct {
	out     *bufio.Writer
	control *http.ResponseController
	enc     encoder
	buf     []byte
	mark    string    // ends the ids: of the rights that the stream shows, see watcher.resume
	flushed time.Time // when something last left
	record  *audit.Record
}

// markSeparator is between a version and the rights that events are seen by.
const markSeparator = "~"

func newEventWriter(w http.ResponseWriter, r *http.Request, v view) *eventWriter {
	return &eventWriter{
		out:     bufio.NewWriterSize(clientWriter{w}, eventBuffer),
		control: http.NewResponseController(w),
		enc:     encoder{view: v},
		record:  audit.From(r.Context()),
	}
}

func (e *eventWriter) flush() error {
	if e.out.Buffered() == 0 {
		return e.out.Flush() // an earlier error
	}
	if err := e.out.Flush(); err != nil {
		return err
	}
	if err := e.control.Flush(); err != nil {
		return &writeError{err}
	}
	e.flushed = time.Now()
	return nil
}

// comment is a line that clients ignore.
func (e *eventWriter) comment(text string) { _, _ = e.out.WriteString(": " + text + "\n\n") }

// object writes a change of an object; resume is "" while there is nothing to
// resume from.
func (e *eventWriter) object(t cache.EventType, o *cache.Object, resume string) error {
	return e.change("", t, o, resume, resume)
}

// objectOf writes a change of an object of one among many resources. It has no
// id: that of the next bookmark covers it.
func (e *eventWriter) objectOf(resource string, t cache.EventType, o *cache.Object, version string) error {
	return e.change(resource, t, o, version, "")
}

func (e *eventWriter) change(resource string, t cache.EventType, o *cache.Object, resume, id string) error {
	b := append(e.buf[:0], `{"type":"`...)
	b = append(b, t...)
	if resource != "" {
		b = append(b, `","resource":"`...)
		b = append(b, resource...)
	}
	if resume != "" {
		b = append(b, `","resourceVersion":"`...)
		b = append(b, resume...)
	}
	b = append(b, `","object":`...)
	b, err := e.enc.append(b, 0, o)
	if err != nil {
		return err
	}
	e.buf = append(b, '}')
	e.record.Returned(1)
	defer e.forgetLarge()
	return e.event(string(t), id, e.buf)
}

func (e *eventWriter) forgetLarge() {
	if cap(e.buf) > keptBuffer {
		e.buf = nil
	}
	if cap(e.enc.raw) > keptBuffer {
		e.enc.raw = nil
	}
}

// message is the data of every event but those of objects.
type message struct {
	Type            string      `json:"type"`
	Resource        string      `json:"resource,omitempty"` // of a stream about many
	ResourceVersion string      `json:"resourceVersion,omitempty"`
	State           cache.State `json:"state,omitempty"`
	Reason          string      `json:"reason,omitempty"`
	Age             *float64    `json:"age,omitempty"`
	Object          any         `json:"object,omitempty"`

	FilterErrors *filterErrors `json:"filterErrors,omitempty"`
	Answered     *bool         `json:"answered,omitempty"`         // in a stream about many
	Initial      bool          `json:"initialEventsEnd,omitempty"` // in a stream about many
}

// bookmark writes the version reached, in the form of a Kubernetes bookmark;
// the first one marks the end of the initial objects.
func (e *eventWriter) bookmark(spec cache.Spec, version string, initial bool) {
	object := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
		Kind:       spec.Kind,
		APIVersion: spec.GVR.GroupVersion().String(),
	}}
	object.ResourceVersion = version
	if initial {
		object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	e.message(version, message{Type: "BOOKMARK", ResourceVersion: version, Object: object})
}

// resync says that everything received before is void: the objects that follow,
// up to the bookmark, are all there are. Its id is that of no version: a client that
// is cut off among them must not go on from where it was before, since the version
// may have come to be again in another history.
func (e *eventWriter) resync(version string) {
	e.message("0", message{Type: "RESYNC", ResourceVersion: version})
}

// state says that the data is worth more or less than before.
func (e *eventWriter) state(view *cache.View) {
	m := message{Type: "STATE", State: view.State, Reason: view.Reason}
	if age, known := view.Age(); known {
		seconds := age.Round(time.Millisecond).Seconds()
		m.Age = &seconds
	}
	e.message("", m)
}

// warning says that the filter had no value for some objects.
func (e *eventWriter) warning(f cache.Faults) {
	e.message("", message{Type: "WARNING", FilterErrors: faultsOf(f)})
}

// failure is the last event of a stream that cannot go on.
func (e *eventWriter) failure(status metav1.Status) error {
	e.message("", message{Type: "ERROR", Object: status})
	return e.flush()
}

// voided is a failure after which nothing that was told holds. Its id is that of
// no version: who comes back with it begins anew, with RESYNC.
func (e *eventWriter) voided(status metav1.Status) error {
	e.message("0", message{Type: "ERROR", Object: status})
	return e.flush()
}

func (e *eventWriter) message(id string, m message) {
	data, err := reply.JSON(m, false)
	if err != nil {
		panic(err) // strings and numbers only
	}
	_ = e.event(m.Type, id, data) // flush returns what the client did
}

// event writes one event. Its data is one line: JSON has line breaks only
// between tokens, and loses them here.
func (e *eventWriter) event(name, id string, data []byte) error {
	if bytes.ContainsAny(data, "\r\n") {
		var line bytes.Buffer
		if err := json.Compact(&line, data); err != nil {
			return err
		}
		data = line.Bytes()
	}
	_, _ = e.out.WriteString("event: " + name + "\n")
	if id != "" && id != void && e.mark != "" {
		id += markSeparator + e.mark
	}
	if id != "" {
		_, _ = e.out.WriteString("id: " + id + "\n")
	}
	_, _ = e.out.WriteString("data: ")
	_, _ = e.out.Write(data)
	_, err := e.out.WriteString("\n\n")
	return err
}
