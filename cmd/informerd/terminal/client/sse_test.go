package client

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/test/sse"
)

// readAll reads events to the end of a stream.
func readAll(stream io.Reader) (events []string, err error) {
	r := newReader(stream)
	for {
		e, err := r.next()
		if err != nil {
			return events, err
		}
		events = append(events, e.Type+"|"+e.ID+"|"+string(e.Data))
	}
}

func TestEvents(t *testing.T) {
	for stream, want := range map[string][]string{
		"event: ADDED\nid: 7\ndata: {}\n\n":             {"ADDED|7|{}"},
		"event:ADDED\r\ndata:{}\r\n\r\n":                {"ADDED||{}"},
		"data: a\ndata: b\n\n":                          {"||a\nb"},
		": a comment\n\nevent: X\n\nid: 1\ndata: y\n\n": {"|1|y"},
		"data\n\n":                           {"||"},
		"data: cut off":                      nil,
		"data: cut off\n":                    nil,
		"unknown: x\ndata: 1\n\ndata: 2\n\n": {"||1", "||2"},
		"data: " + strings.Repeat("x", 300<<10) + "\n\n": {"||" + strings.Repeat("x", 300<<10)},
	} {
		got, err := readAll(strings.NewReader(stream))
		if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
			t.Errorf("%.40q: %.80q, %v; want %.80q", stream, got, err, want)
		}
	}
}

// endless is a stream whose line never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestEventWithoutEnd(t *testing.T) {
	stream := &endless{}
	if _, err := readAll(stream); !errors.Is(err, errLineTooLong) || stream.read > 2*maxLine {
		t.Errorf("%v after %d bytes", err, stream.read)
	}
}

// FuzzEvents: whatever comes, and in whatever pieces, the same events are read as by the
// reader that the tests of the server use, and nothing of one that is cut off.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: ADDED\nid: 7\ndata: {}\n\n"), 3)
	f.Add([]byte(": c\n\ndata: a\ndata: b\n\nid: 3\n\n"), 1)
	f.Add([]byte("data:x\r\n\r\n\n\n"), 2)
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		whole, err := readAll(bytes.NewReader(stream))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		inPieces, err := readAll(&pieces{stream, 1 + piece&7})
		if !errors.Is(err, io.EOF) || !slices.Equal(whole, inPieces) {
			t.Fatalf("%q in pieces, %q as a whole: %v", inPieces, whole, err)
		}
		if !bytes.ContainsRune(stream, '\n') && len(whole) > 0 {
			t.Fatalf("%q is no event", stream)
		}
		compareReaders(t, stream, whole)
	})
}

// compareReaders compares with the reader of test/sse what informerd writes: a space after
// each colon, and one line of data that is not empty.
func compareReaders(t *testing.T, stream []byte, whole []string) {
	for line := range bytes.Lines(stream) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		name, value, ok := bytes.Cut(line, []byte(": "))
		if len(line) > 0 && (!ok || len(value) == 0 || bytes.ContainsAny(line, "\r") || bytes.Contains(name, []byte(":"))) {
			return
		}
	}
	var other, ours []string
	_ = sse.Read(bytes.NewReader(stream), func(id, data string) error {
		other = append(other, id+"|"+data)
		return nil
	})
	for _, e := range whole {
		_, e, _ = strings.Cut(e, "|")
		ours = append(ours, strings.ReplaceAll(e, "\n", ""))
	}
	if !slices.Equal(other, ours) {
		t.Fatalf("%q: %q, and %q by the other reader", stream, ours, other)
	}
}

// pieces hands out a few bytes at a time.
type pieces struct {
	left []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[:min(p.size, len(p.left))])
	p.left = p.left[n:]
	return n, nil
}
