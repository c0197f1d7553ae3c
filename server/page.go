package server

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/informerd/informerd/server/reply"
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
	file, err := s.pageFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return noRoute(w, r)
	}
	if err != nil {
		return err
	}
	w.Header().Set("ETag", file.etag)
	text := file.text
	if file.packed != nil && reply.AcceptsGzip(r) && r.Header.Get("Range") == "" {
		text = file.packed
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
	return nil
}

// pageFile is a file of the page as it is sent.
type pageFile struct {
	text   []byte
	packed []byte // nil if that is no smaller
	etag   string
}

// pageFile reads a file and compresses it as well as can be, once: the files are the
// program's own and do not change. What is compressed for each answer, and so with
// little effort (compressor), is a sixth larger.
func (s *Server) pageFile(name string) (*pageFile, error) {
	if known, ok := s.pageFiles.Load(name); ok {
		return known.(*pageFile), nil
	}
	if info, err := fs.Stat(s.Web, name); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fs.ErrNotExist
	}
	text, err := fs.ReadFile(s.Web, name)
	if err != nil {
		return nil, err
	}
	// Weak, as the same file may be sent compressed or not.
	sum := sha256.Sum256(text)
	file := &pageFile{text: text, etag: fmt.Sprintf(`W/"%x"`, sum[:12])}
	var packed bytes.Buffer
	to, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := to.Write(text); err != nil {
		return nil, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	if packed.Len() < len(text) {
		file.packed = packed.Bytes()
	}
	s.pageFiles.Store(name, file)
	return file, nil
}
