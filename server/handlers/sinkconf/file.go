package sinkconf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

const (
	// fresh is for how long the content of a file is good before it is read again. Files that
	// are mounted from Secrets change rarely; deliveries are many.
	fresh = time.Second
	// maxFile is the largest file: what is larger is no secret and no certificate.
	maxFile = 1 << 20
)

// File is a file whose content may change. It is safe for concurrent use.
type File struct {
	Path string

	mu      sync.Mutex // guards all below
	content []byte
	err     error
	readAt  time.Time
}

// Open reads the file for the first time.
func Open(path string) (*File, error) {
	f := &File{Path: path}
	_, err := f.Content()
	return f, err
}

// Content is what is in the file, at most a second ago. Line breaks at its end are not part
// of it: editors add them. An error names the file and nothing of its content. A file that
// cannot be read any more is an error, though it could be read before: a secret that was
// taken away must not be used on.
func (f *File) Content() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.readAt.IsZero() || now.Sub(f.readAt) >= fresh {
		f.content, f.err = read(f.Path)
		f.readAt = now
	}
	return f.content, f.err
}

// Text is Content as a string.
func (f *File) Text() (string, error) {
	b, err := f.Content()
	return string(b), err
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("file %s cannot be read: %w", path, cause(err))
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("file %s cannot be read: %w", path, cause(err))
	case len(content) > maxFile:
		return nil, fmt.Errorf("file %s is larger than 1 MiB", path)
	}
	content = bytes.TrimRight(content, "\r\n")
	if len(content) == 0 {
		return nil, fmt.Errorf("file %s is empty", path)
	}
	return content, nil
}

// cause is err without the path, which is said already.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
