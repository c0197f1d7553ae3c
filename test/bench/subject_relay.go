package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// startRelay is a program that passes watches of the API server on, line by line, and
// keeps, decodes and decides nothing. No read replica in a process of its own is sooner:
// how late it is on some machine is what two more hand-overs between processes cost there.
func startRelay(ctx context.Context, rc *rest.Config) (*synced, error) {
	client, err := plainClient(rc)
	if err != nil {
		return nil, err
	}
	host, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := relay(w, r, client, host.Scheme+"://"+host.Host); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
			}
		}),
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return &synced{address: "http://" + l.Addr().String()}, nil
}

// relay answers as the API server at host does, until either side ends. An error is from
// before the answer has begun.
func relay(w http.ResponseWriter, r *http.Request, client *http.Client, host string) error {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, host+r.URL.RequestURI(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	w.WriteHeader(resp.StatusCode)
	out := http.NewResponseController(w)
	_ = out.Flush()
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if _, werr := w.Write(line); werr != nil {
				return nil
			}
		}
		// What has come together leaves together, as from informerd.
		if lines.Buffered() == 0 {
			if out.Flush() != nil {
				return nil
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return nil // the watch is over, and so is the answer
		}
	}
}
