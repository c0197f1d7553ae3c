// Package control lets another process act on single components of a running
// devcluster: HTTP and JSON over a unix socket that only its owner can open.
// A request is answered when its action is done.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Actions are what can be done to a component.
var Actions = []string{"start", "stop", "kill", "restart", "pause", "resume"}

// Handler carries out action on component, and returns when it is done.
type Handler func(ctx context.Context, action, component string) error

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
	mux.HandleFunc("POST /components/{component}/{action}", func(w http.ResponseWriter, r *http.Request) {
		action := r.PathValue("action")
		if !slices.Contains(Actions, action) {
			reply(w, http.StatusBadRequest, unknownAction(action))
			return
		}
		if err := handle(r.Context(), action, r.PathValue("component")); err != nil {
			reply(w, http.StatusConflict, err)
			return
		}
		reply(w, http.StatusOK, nil)
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

// Do asks the devcluster behind socket to carry out action on component.
func Do(ctx context.Context, socket, action, component string) error {
	if !slices.Contains(Actions, action) {
		return unknownAction(action)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	url := fmt.Sprintf("http://devcluster/components/%s/%s", component, action)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Error == "" {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return errors.New(a.Error)
}

type answer struct {
	Error string `json:"error,omitempty"`
}

func reply(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	var a answer
	if err != nil {
		a.Error = err.Error()
	}
	_ = json.NewEncoder(w).Encode(a)
}

func unknownAction(action string) error {
	return fmt.Errorf("unknown action %q; there are: %s", action, strings.Join(Actions, ", "))
}
