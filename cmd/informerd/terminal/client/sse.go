package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is more than any line of a stream: an event has one object, and etcd none over
// a few megabytes.
const maxLine = 64 << 20

var errLineTooLong = errors.New("an event of the stream is over 64 MB")

// Event is one server-sent event.
type Event struct {
	Type string // ADDED, MODIFIED, ...
	ID   string // where to go on after it; "" if it does not say
	Data []byte // valid until the next event is read
}

// reader reads server-sent events as the standard of HTML says, but for retry.
type reader struct {
	in   *bufio.Reader
	line []byte
	data []byte
}

func newReader(stream io.Reader) *reader { return &reader{in: bufio.NewReaderSize(stream, 64<<10)} }

// next reads one event. One that the stream ends in is not told: it may be cut off.
func (r *reader) next() (Event, error) {
	var e Event
	r.data = r.data[:0]
	told := false
	for {
		line, err := r.readLine()
		switch {
		case err != nil:
			return Event{}, err
		case len(line) == 0 && told:
			e.Data = r.data
			return e, nil
		case len(line) == 0: // nothing but comments, or an id, came before
			e = Event{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Type = string(value)
		case "id":
			e.ID = string(value)
		case "data":
			if told {
				r.data = append(r.data, '\n')
			}
			r.data, told = append(r.data, value...), true
		}
	}
}

// readLine reads a line without its end.
func (r *reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(r.line) > maxLine:
			return nil, errLineTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(r.line, []byte("\n")), []byte("\r")), nil
	}
}
