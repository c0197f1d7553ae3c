package discovery

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// direct calls a handler without a network, so that time can be simulated.
// Only answers that end can be had from it.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// simulate runs a Discoverer with default intervals in a bubble of fake time.
// CRDs and APIServices are forbidden.
func simulate(t *testing.T, f *fakeAPI, test func(*Discoverer)) {
	synctest.Test(t, func(t *testing.T) { test(simulated(t, f)) })
}

// simulated is a Discoverer that has run in a bubble for a moment.
func simulated(t *testing.T, server http.Handler) *Discoverer {
	d, err := New(Options{Config: &rest.Config{Host: "fake"}, HTTPClient: &http.Client{Transport: direct{server}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	synctest.Wait()
	return d
}

func restricted(lines ...string) *fakeAPI {
	f := &fakeAPI{
		api: says(lines...), version: "v1.36.3",
		status: map[string]int{crdsPath: http.StatusForbidden, servicesPath: http.StatusForbidden},
		body:   map[string]string{}, headers: map[string]http.Header{},
	}
	return f
}

func TestPace(t *testing.T) {
	f := restricted("v1: pods", "apps/v1: deployments")
	simulate(t, f, func(d *Discoverer) {
		time.Sleep(time.Minute)
		settled := d.Stats().Looks
		time.Sleep(time.Hour)
		if n := d.Stats().Looks - settled; n < 359 || n > 361 {
			t.Errorf("%d looks an hour, want one in 10s", n)
		}
		if n := f.count("GET " + crdsPath); n < 10 || n > 40 {
			t.Errorf("asked %d times an hour for forbidden CRDs, want a few", n)
		}
		if n := f.count("GET /version"); n > 15+surveyed {
			t.Errorf("asked %d times an hour for the version", n)
		}
	})
}

// Many triggers at once cost one look, and steady ones do not put it off.
func TestDebounce(t *testing.T) {
	simulate(t, restricted("v1: pods"), func(d *Discoverer) {
		time.Sleep(time.Minute + time.Second) // between two polls
		before := d.Stats().Looks
		for range 100 {
			d.Trigger()
		}
		time.Sleep(defaultDebounce - time.Millisecond)
		if n := d.Stats().Looks - before; n != 0 {
			t.Errorf("%d looks before the debounce was over", n)
		}
		time.Sleep(2 * time.Millisecond)
		if n := d.Stats().Looks - before; n != 1 {
			t.Errorf("%d looks for 100 triggers, want 1", n)
		}
		for range 100 {
			d.Trigger()
			time.Sleep(10 * time.Millisecond)
		}
		if n := d.Stats().Looks - before; n < 4 || n > 8 {
			t.Errorf("%d looks for a second of triggers, want one in 200ms", n)
		}
	})
}

func TestBackoff(t *testing.T) {
	f := restricted("v1: pods")
	simulate(t, f, func(d *Discoverer) {
		f.edit(func(f *fakeAPI) { f.status["/api"] = 500 })
		time.Sleep(time.Hour)
		if n := d.Stats().Failures; n < 240 || n > 720 {
			t.Errorf("%d attempts in an hour of failure, want about one in 10s", n)
		}
		f.edit(func(f *fakeAPI) { delete(f.status, "/api") })
		time.Sleep(16 * time.Second)
		if err := d.Err(); err != nil {
			t.Errorf("Err() = %v, 16s after the server came back", err)
		}
	})
}

// A resource that discovery leaves out for a while stays, with
// nobody but discovery to ask; one that stays away goes.
func TestAbsence(t *testing.T) {
	f := restricted("v1: pods", "apps/v1: deployments")
	simulate(t, f, func(d *Discoverer) {
		has := func(want string) {
			t.Helper()
			if s, _ := d.Current(); names(s) != want {
				t.Errorf("Current() = %s, want %s", names(s), want)
			}
		}
		time.Sleep(time.Minute)
		f.says("v1: pods")
		d.Trigger()
		time.Sleep(confirmBlindAfter / 2)
		has("pods.v1 deployments.v1.apps~")
		f.says("v1: pods", "apps/v1: deployments")
		d.Trigger()
		time.Sleep(time.Minute)
		has("pods.v1 deployments.v1.apps")
		f.says("v1: pods")
		time.Sleep(time.Minute)
		has("pods.v1")
	})
}
