package server

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
)

// page serves the files of the browser page. They change with the program only,
// and are asked for again each time: no-cache.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	if s.Web == nil || !fs.ValidPath(name) {
		return noRoute(w, r)
	}
	info, err := fs.Stat(s.Web, name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return noRoute(w, r)
	}
	if err != nil {
		return err
	}
	http.ServeFileFS(w, r, s.Web, name)
	return nil
}
