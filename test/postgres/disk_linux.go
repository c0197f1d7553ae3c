package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// StartOnDisk starts a server that has a disk of its own, of so many megabytes, for its tables
// and its log. Who may not mount one has the test skipped.
func StartOnDisk(tb testing.TB, megabytes int) *Server {
	tb.Helper()
	return start(tb, func(dir string) (release func() error) {
		if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
			_ = os.Remove(dir)
			tb.Skipf("a disk of its own takes more rights: %v", err)
		}
		return func() error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
	})
}

// Fill leaves no room on the disk of the server, until makeRoom is called.
func (s *Server) Fill() (makeRoom func()) {
	s.tb.Helper()
	path := filepath.Join(s.dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		s.tb.Fatal(err)
	}
	block := bytes.Repeat([]byte("full"), 1024)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.tb.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			s.tb.Error(err)
		}
	}
}
