package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// receiver is a webhook on loopback that notes what is delivered to it.
type receiver struct {
	url    string
	server *http.Server

	mu      sync.Mutex // guards all below
	refused string     // the pod whose deliveries are refused, each time
	no      int        // how often that was
	arrived map[int]time.Time
	got     []delivered
	err     error // of what could not be read
}

// delivered is one delivery that was taken.
type delivered struct{ Transition, Namespace, Name string }

func startReceiver() (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + l.Addr().String(), arrived: map[int]time.Time{}}
	r.server = &http.Server{Handler: r}
	go r.server.Serve(l)
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// ServeHTTP takes a delivery, as a binary CloudEvent.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(req.Body)
	var d delivered
	if err == nil {
		err = json.Unmarshal(body, &d)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.err = errors.Join(r.err, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case d.Name == r.refused:
		r.no++
		http.Error(w, "refused as always", http.StatusInternalServerError)
		return
	}
	r.got = append(r.got, d)
	if n, ok := changeOf(body); ok && r.arrived[n].IsZero() {
		r.arrived[n] = at
	}
}

// refusals is how many deliveries were refused.
func (r *receiver) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.no
}

// take returns what was taken since the last call, and when each numbered change first was.
func (r *receiver) take() ([]delivered, map[int]time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got, arrived, err := r.got, r.arrived, r.err
	r.got, r.arrived, r.err = nil, map[int]time.Time{}, nil
	return got, arrived, err
}
