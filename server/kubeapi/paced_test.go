package kubeapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// dripping is a connection whose client sends n bytes every interval.
type dripping struct {
	http.ResponseWriter
	n        int
	interval time.Duration
	left     int
	deadline time.Time
}

func (d *dripping) SetReadDeadline(t time.Time) error { d.deadline = t; return nil }

func (d *dripping) Read(b []byte) (int, error) {
	if d.left <= 0 {
		return 0, io.EOF
	}
	wait := d.interval
	if !d.deadline.IsZero() {
		wait = min(wait, time.Until(d.deadline))
	}
	time.Sleep(wait)
	if wait < d.interval {
		return 0, os.ErrDeadlineExceeded
	}
	n := min(d.n, d.left, len(b))
	d.left -= n
	return n, nil
}

func (d *dripping) Close() error { return nil }

// TestPaced: a body that comes at a trickle does not hold a place for long, one that
// comes slowly because it is large may take its time.
func TestPaced(t *testing.T) {
	for name, test := range map[string]struct {
		n        int
		interval time.Duration
		size     int
		cut      bool
	}{
		"a byte a second":         {1, time.Second, 1000, true},
		"nothing at all":          {1, time.Hour, 1000, true},
		"a small one, slowly":     {1, time.Second, 9, false},
		"a large one on a modem":  {700, 100 * time.Millisecond, 3 << 20, false},
		"a large one, then never": {64 << 10, time.Second, 3 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dripping{ResponseWriter: httptest.NewRecorder(), n: test.n, interval: test.interval, left: test.size}
				r := httptest.NewRequest("POST", "/", nil)
				r.Body = d
				pace(d, r)
				began := time.Now()
				_, err := io.Copy(io.Discard, r.Body)
				if cut := errors.Is(err, os.ErrDeadlineExceeded); cut != test.cut || !cut && err != nil {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if took := time.Since(began); test.cut && took > 15*time.Second {
					t.Errorf("it took %v", took)
				}
				if d.deadline.IsZero() == test.cut {
					t.Errorf("the deadline is %v: without one the rest of a body would be waited for, with one the client be taken for gone", d.deadline)
				}
			})
		})
	}
}
