package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func openFile(t *testing.T, path string, maxSize int64, backups int) *file {
	t.Helper()
	f := &file{path: path, maxSize: maxSize, maxBackups: backups}
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close() })
	return f
}

func (f *file) mustWrite(t *testing.T, p string) {
	t.Helper()
	if n, err := f.write([]byte(p)); n != len(p) || err != nil {
		t.Fatalf("write(%q) = %d, %v", p, n, err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPrivate: who looks at what is for nobody else to read, and no file of somebody
// else's is written to.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	mode := func(path string) os.FileMode {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	fresh := filepath.Join(dir, "below", "audit.log")
	openFile(t, fresh, 0, 1)
	old := filepath.Join(dir, "old.log")
	if err := os.WriteFile(old, []byte("before\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	openFile(t, old, 0, 1).mustWrite(t, "after\n")
	if got := content(t, old); got != "before\nafter\n" {
		t.Errorf("the file holds %q", got)
	}
	if runtime.GOOS != "windows" {
		for _, path := range []string{fresh, old} {
			if got := mode(path); got != private {
				t.Errorf("%s has mode %o", path, got)
			}
		}
	}
	link := filepath.Join(dir, "link.log")
	if err := os.Symlink(old, link); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling.log")
	if err := os.Symlink(filepath.Join(dir, "none"), dangling); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link: "is a symbolic link", dangling: "is a symbolic link", os.DevNull: "not a regular file", dir: "not a regular file", old + "/x.log": "not a directory",
	} {
		if _, err := Open(Options{File: path}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "open audit log") {
			t.Errorf("Open(%s) = %v, want %s", path, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); err == nil {
		t.Error("what a link names was made")
	}
}

// TestRotation: no file is larger than it may be, no line is torn or lost but those of the
// oldest files, and there are no more of them than are to be kept.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f := openFile(t, path, 100, 3)
	var all strings.Builder
	for i := range 60 {
		batch := ""
		for j := range i % 7 {
			batch += fmt.Sprintf("line %d.%d %s\n", i, j, strings.Repeat("x", i%20))
		}
		f.mustWrite(t, batch)
		all.WriteString(batch)
	}
	kept := ""
	for _, name := range []string{".3", ".2", ".1", ""} {
		part := content(t, path+name)
		if len(part) > 100 || !strings.HasSuffix(part, "\n") {
			t.Errorf("%s has %d bytes and ends with %q", name, len(part), part[len(part)-1:])
		}
		kept += part
	}
	if !strings.HasSuffix(all.String(), kept) || len(kept) < 200 {
		t.Errorf("kept are %d bytes, which are not the last ones", len(kept))
	}
	if _, err := os.Stat(path + ".4"); err == nil {
		t.Error("more files are kept")
	}
	// A line larger than a file has one of its own.
	long := strings.Repeat("y", 150) + "\n"
	f.mustWrite(t, "short\n"+long+"short\n")
	if content(t, path+".1") != long || content(t, path) != "short\n" {
		t.Errorf("a long line is in %q and %q", content(t, path+".1"), content(t, path))
	}
	// Another process goes on with the file.
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	f = openFile(t, path, 100, 3)
	f.mustWrite(t, strings.Repeat("z", 90)+"\n")
	f.mustWrite(t, "more\n")
	if got := content(t, path+".1"); !strings.HasPrefix(got, "short\nz") {
		t.Errorf("begun anew: %q", got)
	}
}

// TestCannotRotate: the file grows, and says why, until it can be rotated.
func TestCannotRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.log")
		f := openFile(t, path, 10, 1)
		inTheWay := path + ".1/x"
		if err := os.MkdirAll(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		f.mustWrite(t, "0123456\n")
		for range 3 {
			if n, err := f.write([]byte("abcdefg\n")); n != 8 || err == nil || !strings.Contains(err.Error(), "rename") {
				t.Errorf("write() = %d, %v", n, err)
			}
		}
		if got := content(t, path); got != "0123456\n"+strings.Repeat("abcdefg\n", 3) {
			t.Errorf("the file holds %q", got)
		}
		if err := os.RemoveAll(path + ".1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * followEvery)
		f.mustWrite(t, "hijklmn\n")
		if got := content(t, path); got != "hijklmn\n" {
			t.Errorf("the file holds %q", got)
		}
	})
}

// TestRotatedByOthers: a file that was moved away is made anew, one that was emptied is
// filled from its beginning, and what cannot be opened is told while the old one is gone
// on with.
func TestRotatedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.log")
		f := openFile(t, path, 20, 1)
		f.mustWrite(t, "one\n")
		move := func() {
			t.Helper()
			if err := os.Rename(path, path+".moved"); err != nil {
				t.Fatal(err)
			}
		}
		move()
		f.mustWrite(t, "two\n") // within the second that it may take
		time.Sleep(followEvery)
		f.mustWrite(t, "three\n")
		if content(t, path+".moved") != "one\ntwo\n" || content(t, path) != "three\n" {
			t.Errorf("after it was moved: %q and %q", content(t, path+".moved"), content(t, path))
		}
		time.Sleep(followEvery)
		f.mustWrite(t, "four 4 4 4 4\n")
		if err := os.Truncate(path, 0); err != nil { // logrotate's copytruncate
			t.Fatal(err)
		}
		time.Sleep(followEvery)
		f.mustWrite(t, "five\n")
		if got := content(t, path); got != "five\n" {
			t.Errorf("after it was emptied: %q", got)
		}
		move()
		if err := os.Symlink(path+".moved", path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(followEvery)
		if n, err := f.write([]byte("six\n")); n != 4 || err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("behind a link: %d, %v", n, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(followEvery)
		f.mustWrite(t, "seven\n")
		if content(t, path+".moved") != "five\nsix\n" || content(t, path) != "seven\n" {
			t.Errorf("at last: %q and %q", content(t, path+".moved"), content(t, path))
		}
	})
}

// TestGoesOnAfterTornLine: the file of a process that was killed is gone on with.
func TestGoesOnAfterTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte("whole\nto"), 0o600); err != nil {
		t.Fatal(err)
	}
	openFile(t, path, 0, 1).mustWrite(t, "next\n")
	if got := content(t, path); got != "whole\nto\nnext\n" {
		t.Errorf("the file holds %q", got)
	}
}
