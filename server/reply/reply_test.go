package reply

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// appendText is an add of text.
func appendText(text string) func([]byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) { return append(dst, text...), nil }
}

// TestLengths: a client gets what was appended, with its length if it was held
// as a whole.
func TestLengths(t *testing.T) {
	for _, size := range []int{0, 1, writeSize, writeSize + 1, Whole, Whole + 1, 3*Whole + 7} {
		const piece = 1000
		want := strings.Repeat("informerd ", size/10+1)[:size]
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := New(r.Context(), w)
			defer out.Release()
			for part := range slices.Chunk([]byte(want), piece) {
				if err := out.Append(appendText(string(part))); err != nil {
					t.Error(err)
				}
			}
			if err := out.Finish(); err != nil {
				t.Error(err)
			}
		}))
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != want {
			t.Errorf("of %d bytes came %d, error %v", size, len(got), err)
		}
		resp.Body.Close()
		length := int64(size)
		if size > Whole {
			length = -1
		}
		if resp.ContentLength != length {
			t.Errorf("Content-Length of %d bytes is %d, want %d", size, resp.ContentLength, length)
		}
		server.Close()
	}
}

// TestReused: an answer shows nothing of the one before in its memory.
func TestReused(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 2000), "short", strings.Repeat("y", 3*Whole), "z"} {
		rec := httptest.NewRecorder()
		out := New(t.Context(), rec)
		if err := errors.Join(out.Append(appendText(text)), out.Finish()); err != nil {
			t.Fatal(err)
		}
		out.Release()
		if got := rec.Body.String(); got != text {
			t.Errorf("%d bytes were answered instead of the %d appended", len(got), len(text))
		}
	}
}

// TestBegun: what goes wrong before something has left can still be told.
func TestBegun(t *testing.T) {
	broken := errors.New("broken")
	for _, before := range []int{10, Whole + 1} {
		rec := httptest.NewRecorder()
		out := New(t.Context(), rec)
		if err := out.Append(appendText(strings.Repeat("x", before))); err != nil {
			t.Fatal(err)
		}
		err := out.Append(func(dst []byte) ([]byte, error) { return append(dst, "half"...), broken })
		if err != broken || out.Begun() != (before > Whole) || out.Gone() {
			t.Errorf("after %d bytes: error %v, begun %v, gone %v", before, err, out.Begun(), out.Gone())
		}
		if got := rec.Body.Len(); out.Begun() != (got > 0) || bytes.Contains(rec.Body.Bytes(), []byte("half")) {
			t.Errorf("after %d bytes: %d have left", before, got)
		}
		out.Release()
	}
}

// TestEnds: a client that cannot be written to, and a context that ends between
// two writes of what is held, end the answer.
func TestEnds(t *testing.T) {
	refuse := errors.New("refused")
	out := New(t.Context(), &writesThen{ResponseWriter: httptest.NewRecorder(), writes: 2, then: func() error { return refuse }})
	if err := out.Append(appendText(strings.Repeat("x", 2*Whole))); err != refuse || !out.Gone() || !out.Begun() {
		t.Errorf("error %v, gone %v, begun %v", err, out.Gone(), out.Begun())
	}
	out.Release()

	ctx, cancel := context.WithCancel(t.Context())
	w := &writesThen{ResponseWriter: httptest.NewRecorder(), writes: 2, then: func() error { cancel(); return nil }}
	out = New(ctx, w)
	defer out.Release()
	err := out.Append(appendText(strings.Repeat("x", 2*Whole)))
	if !errors.Is(err, context.Canceled) || out.Gone() || w.writes != -1 {
		t.Errorf("error %v, gone %v, %d writes left", err, out.Gone(), w.writes)
	}
}

// writesThen calls then with each write after the first few.
type writesThen struct {
	http.ResponseWriter
	writes int
	then   func() error
}

func (w *writesThen) Write(p []byte) (int, error) {
	if len(p) > writeSize {
		return 0, errors.New("too large a write")
	}
	if w.writes--; w.writes < 0 {
		if err := w.then(); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}
