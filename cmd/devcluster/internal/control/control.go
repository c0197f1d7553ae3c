// Package control lets another process give orders to a running devcluster: HTTP
// and JSON over a unix socket that only its owner can open. An order is answered
// when it is carried out. What orders there are is no business of this package.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Order is what is asked of a devcluster.
type Order struct {
	Action string          `json:"action"`
	Args   []string        `json:"args,omitempty"`
	Flags  map[string]int  `json:"flags,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"` // for orders that take a document
}

// Handler carries out an order and returns when it is done. Its result, if it is
// not nil, is sent as JSON.
type Handler func(ctx context.Context, order Order) (result any, err error)

// maxPath is the longest path of a unix socket that Linux and macOS both take.
const maxPath = 103

// Listen opens the control socket of the devcluster in dir: DIR/control.sock,
// or a socket in the directory for temporary files if that path is too long.
// The caller must hold the lock of dir: a socket left by a crash is replaced.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, "control.sock")
	if len(path) > maxPath {
		tmp, err := os.MkdirTemp("", "devcluster-")
		if err != nil {
			return nil, err
		}
		path = filepath.Join(tmp, "control.sock")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return listener, os.Chmod(path, 0o600)
}

// Serve answers requests until ctx ends. It closes the listener, which removes
// the socket, and the directory that Listen made for it.
func Serve(ctx context.Context, listener net.Listener, handle Handler) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var order Order
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			reply(w, http.StatusBadRequest, nil, fmt.Errorf("read order: %w", err))
			return
		}
		result, err := handle(r.Context(), order)
		if err != nil {
			reply(w, http.StatusConflict, nil, err)
			return
		}
		reply(w, http.StatusOK, result, nil)
	})
	server := &http.Server{Handler: mux}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = server.Close()
	}()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		err = nil
	}
	if dir := filepath.Dir(listener.Addr().String()); strings.HasPrefix(filepath.Base(dir), "devcluster-") {
		_ = os.Remove(dir) // stays if it holds anything else
	}
	return err
}

// Do has the devcluster behind socket carry out an order. The result is nil if
// the order has none.
func Do(ctx context.Context, socket string, order Order) (json.RawMessage, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	data, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://devcluster/orders", bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || resp.StatusCode != http.StatusOK && a.Error == "" {
		return nil, fmt.Errorf("%s: %s", resp.Status, body)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Result, nil
}

type answer struct {
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

func reply(w http.ResponseWriter, code int, result any, err error) {
	var a answer
	if result != nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(a)
}
