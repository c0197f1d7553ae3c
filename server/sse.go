package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// eventBuffer is what a stream collects before it writes: there may be many
// streams.
const eventBuffer = 8 << 10

// eventWriter writes server-sent events. What is written leaves with flush; the
// first error of the client is kept and returned there.
type eventWriter struct {
	out     *bufio.Writer
	control *http.ResponseController
	enc     encoder
	buf     []byte
	flushed time.Time // when something last left
}

func newEventWriter(w http.ResponseWriter, v view) *eventWriter {
	return &eventWriter{
		out:     bufio.NewWriterSize(&clientWriter{w: w}, eventBuffer),
		control: http.NewResponseController(w),
		enc:     encoder{view: v},
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
	b := append(e.buf[:0], `{"type":"`...)
	b = append(b, t...)
	if resume != "" {
		b = append(b, `","resourceVersion":"`...)
		b = append(b, resume...)
	}
	b = append(b, `","object":`...)
	b, err := e.enc.append(b, o, "")
	if err != nil {
		return err
	}
	e.buf = append(b, '}')
	return e.event(string(t), resume, e.buf)
}

// bookmark writes the version reached, in the form of a Kubernetes bookmark;
// the first one marks the end of the initial objects.
func (e *eventWriter) bookmark(spec cache.Spec, version string, initial bool) {
	object := map[string]any{
		"kind":       spec.Kind,
		"apiVersion": schema.GroupVersion{Group: spec.GVR.Group, Version: spec.GVR.Version}.String(),
	}
	meta := map[string]any{"resourceVersion": version}
	if initial {
		meta["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	object["metadata"] = meta
	e.value("BOOKMARK", version, map[string]any{"type": "BOOKMARK", "resourceVersion": version, "object": object})
}

// resync says that everything received before is void: the objects that follow,
// up to the bookmark, are all there are.
func (e *eventWriter) resync(version string) {
	e.value("RESYNC", "", map[string]any{"type": "RESYNC", "resourceVersion": version})
}

// state says that the data is worth more or less than before.
func (e *eventWriter) state(status cache.Status) {
	value := map[string]any{"type": "STATE", "state": status.State, "reason": status.Reason}
	if age, known := ageOf(status); known {
		value["age"] = json.Number(strconv.FormatFloat(age.Seconds(), 'f', 3, 64))
	}
	e.value("STATE", "", value)
}

// failure is the last event of a stream that cannot go on.
func (e *eventWriter) failure(status metav1.Status) error {
	e.value("ERROR", "", map[string]any{"type": "ERROR", "object": status})
	return e.flush()
}

func (e *eventWriter) value(name, id string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings and numbers only
	}
	_ = e.event(name, id, data)
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
	if id != "" {
		_, _ = e.out.WriteString("id: " + id + "\n")
	}
	_, _ = e.out.WriteString("data: ")
	_, _ = e.out.Write(data)
	_, err := e.out.WriteString("\n\n")
	return err
}
