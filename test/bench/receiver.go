package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// receiver is a webhook on loopback that notes what is delivered to it. It reads no more of it
// than it must before take: the time would be taken from what is measured.
type receiver struct {
	url    string
	server *http.Server

	mu      sync.Mutex // guards all below
	refused string     // the pod whose deliveries are refused, each time
	no      int        // how often that was
	taken   []arrival
	err     error // of what could not be read
}

// arrival is a delivery as it came.
type arrival struct {
	at   time.Time
	body []byte
}

// delivered is one delivery that was taken.
type delivered struct{ Transition, Namespace, Name string }

func startReceiver() (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + l.Addr().String()}
	r.server = &http.Server{Handler: r}
	go r.server.Serve(l)
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// ServeHTTP takes a delivery, as a binary CloudEvent.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	body := make([]byte, max(0, req.ContentLength))
	_, err := io.ReadFull(req.Body, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.err = errors.Join(r.err, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case r.refused != "" && bytes.Contains(body, []byte(`"name":"`+r.refused+`"`)):
		r.no++
		http.Error(w, "refused as always", http.StatusInternalServerError)
		return
	}
	r.taken = append(r.taken, arrival{at, body})
}

// refusals is how many deliveries were refused.
func (r *receiver) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.no
}

// take returns what was taken since the last call, and when each numbered change first was.
func (r *receiver) take() (got []delivered, arrived map[int]time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	arrived = map[int]time.Time{}
	for _, a := range r.taken {
		var d delivered
		r.err = errors.Join(r.err, json.Unmarshal(a.body, &d))
		got = append(got, d)
		if n, ok := changeOf(a.body); ok && arrived[n].IsZero() {
			arrived[n] = a.at
		}
	}
	err = r.err
	r.taken, r.err = nil, nil
	return got, arrived, err
}
