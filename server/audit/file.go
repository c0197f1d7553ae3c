package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// followEvery is how often it is looked at whether the file is still where it was.
const followEvery = time.Second

// private is the mode of the file: it says who looks at what.
const private = fs.FileMode(0o600)

// file is an output that rotates itself, and follows others who rotate it: when the file
// was moved away a new one is made in its place, and one that was emptied is filled anew.
// It belongs to one goroutine.
type file struct {
	path       string
	maxSize    int64
	maxBackups int

	f       *os.File // nil: could not be opened
	lines   appender // to f
	size    int64
	looked  time.Time // whether it is where it was
	lost    error     // why that cannot be gone after
	stuck   error     // why it could not be rotated
	keepsOn time.Time // until when it grows, since it could not
}

func (f *file) write(p []byte) (n int, err error) {
	f.follow(time.Now())
	for len(p) > 0 && err == nil {
		part := f.part(p, time.Now())
		if f.f == nil {
			break
		}
		var m int
		m, err = f.lines.append(part)
		f.size += int64(m)
		n += m
		p = p[m:]
	}
	return n, errors.Join(err, f.lost, f.stuck)
}

// part is how much of p goes into the file, in whole lines, after it was rotated if it is
// full. One that cannot be rotated grows.
func (f *file) part(p []byte, now time.Time) []byte {
	if f.f == nil || f.maxSize <= 0 || f.size+int64(len(p)) <= f.maxSize || now.Before(f.keepsOn) {
		return p
	}
	if part := fitting(p, f.maxSize-f.size); len(part) > 0 {
		return part
	}
	if f.size > 0 {
		if f.stuck = f.rotate(); f.stuck != nil {
			f.keepsOn = now.Add(followEvery)
			return p
		}
	}
	if part := fitting(p, f.maxSize); len(part) > 0 {
		return part
	}
	return p[:bytes.IndexByte(p, '\n')+1] // a line that is larger than a file
}

// fitting are the lines that p begins with and that there is room for.
func fitting(p []byte, room int64) []byte {
	return p[:bytes.LastIndexByte(p[:max(0, min(room, int64(len(p))))], '\n')+1]
}

// rotate renames the file and those before it, and begins a new one. If that is not
// possible the old one is gone on with.
func (f *file) rotate() error {
	// Not every system renames a file that is open.
	err := f.close()
	for i := f.maxBackups - 1; i >= 1 && err == nil; i-- {
		if err = os.Rename(f.backup(i), f.backup(i+1)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(f.path, f.backup(1))
	}
	return errors.Join(err, f.open())
}

func (f *file) backup(i int) string { return fmt.Sprintf("%s.%d", f.path, i) }

// follow opens the file if it is not the one at its path any more. If that is not
// possible the old one is gone on with.
func (f *file) follow(now time.Time) {
	if now.Sub(f.looked) >= followEvery {
		f.looked = now
		f.lost = f.reopen()
	}
}

func (f *file) reopen() error {
	if f.f == nil {
		f.stuck = nil
		return f.open()
	}
	own, err := f.f.Stat()
	if err != nil {
		return err
	}
	f.size = own.Size()
	there, err := os.Lstat(f.path)
	switch {
	case err == nil && os.SameFile(own, there):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	old := f.f
	if err := f.open(); err != nil {
		return err
	}
	return old.Close()
}

// open opens the file, or makes it. If it fails nothing has changed.
func (f *file) open() error {
	opened, err := openPrivate(f.path)
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	info, err := opened.Stat()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	f.f, f.size, f.lines = opened, info.Size(), appender{Writer: opened}
	if f.size > 0 { // whoever wrote it last may have been cut off
		last := make([]byte, 1)
		_, err := opened.ReadAt(last, f.size-1)
		f.lines.torn = err == nil && last[0] != '\n'
	}
	return nil
}

// openPrivate opens a file to append to, which nobody but its owner may read. Whoever may
// write to the folder must not have it name a file of somebody else's.
func openPrivate(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	found, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, private)
	case err != nil:
		return nil, err
	case found.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a symbolic link: name the file that is meant", path)
	case !found.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(found, info) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", path), err, f.Close())
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&^private != 0 {
		if err := f.Chmod(private); err != nil {
			return nil, errors.Join(fmt.Errorf("others may read or write %s (mode %04o), and that cannot be changed: %w", path, info.Mode().Perm(), err), f.Close())
		}
	}
	return f, nil
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
