package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

// page serves the files of the browser page. They are asked for again each time
// (no-cache), since a page and its parts must be of one program, and answered with
// 304 as long as the program has the same: their ETag is a hash of what is in them.
// Names with hashes in them would save that question, but a page that was loaded
// before an upgrade would ask the new program for parts that it does not have.
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
	text, err := fs.ReadFile(s.Web, name)
	if err != nil {
		return err
	}
	// Weak, as the same file may be sent compressed or not.
	sum := sha256.Sum256(text)
	w.Header().Set("ETag", fmt.Sprintf(`W/"%x"`, sum[:12]))
	http.ServeFileFS(w, r, s.Web, name)
	return nil
}
